"""The benchmark of held labels counts what was held, what was wrong and what was both."""

from pathlib import Path

from benchmarks.held_labels import measure
from benchmarks.hint3 import Bot

TOPICS = {"return": "send the parcel back", "price": "what does it cost", "size": "how wide is the bed"}


def test_a_wrong_label_is_held_and_counted_as_a_hit(tmp_path: Path) -> None:
    base = [(f"{text} {word}", label) for label, text in TOPICS.items() for word in ("now", "please", "today", "then")]
    training = tmp_path / "base.csv"
    training.write_text("sentence,label\n" + "".join(f"{text},{label}\n" for text, label in base), encoding="utf-8")
    said = [(f"{text} number {i}", label) for label, text in TOPICS.items() for i in range(10)]
    true = [label for _, label in said]
    bot = Bot("tiny", training, [text for text, _ in said], ["size", *true[1:]], true)

    found = measure(bot, seed=0)

    assert (found["rows"], found["wrong"], found["hits"], found["recall"]) == (30, 1, 1, 1.0)
