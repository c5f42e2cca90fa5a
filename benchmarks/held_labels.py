"""Which wrong labels are held for a person: HINT3's feedback (v1) against the publishers' correction of it (v2).

    python benchmarks/held_labels.py [--data FOLDER] [--quick] [--json FILE]

`models.dataset.suspect_labels` sees a bot's training rows and the v1 labels of its whole stream, and holds at most a
fifth of the stream's rows. A held row is a hit where v2 says otherwise; nothing is chosen on v2, which only scores. The
bar is the recall of a simple rule by confidence at the same budget. `--quick` takes the smallest bot only.
"""

import argparse
import csv
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.hint3 import Bot, find_bots  # noqa: E402
from models.dataset import suspect_labels  # noqa: E402
from store.records import DatasetRow  # noqa: E402

BUDGET = 0.2
"""Share of the stream's labels that may be held."""
SIMPLE_RULE = {"curekart": 0.58, "sofmattress": 0.33}
"""Recall of a rule by confidence at the same budget."""


def rows_of(bot: Bot) -> tuple[list[DatasetRow], int]:
    """The bot's training rows, then its stream as labelled by v1; and the position of the stream's first row."""
    with bot.training.open(encoding="utf-8", newline="") as file:
        base = [DatasetRow(input=r["sentence"], label=r["label"], source="base") for r in csv.DictReader(file)]
    labelled = zip(bot.texts, bot.labels, strict=True)
    return [*base, *(DatasetRow(input=text, label=label, source="feedback") for text, label in labelled)], len(base)


def measure(bot: Bot, *, seed: int) -> dict[str, float]:
    """Counts of held, wrong and hit rows, and precision and recall in [0, 1]."""
    rows, start = rows_of(bot)
    held = {position - start for position in suspect_labels(rows, share=BUDGET, seed=seed)}
    wrong = {i for i, (said, true) in enumerate(zip(bot.labels, bot.truth, strict=True)) if said != true}
    hits = len(held & wrong)
    return {
        "rows": len(bot.texts),
        "held": len(held),
        "wrong": len(wrong),
        "hits": hits,
        "precision": hits / len(held) if held else 0.0,
        "recall": hits / len(wrong) if wrong else 0.0,
    }


def report(bot: Bot, found: dict[str, float]) -> None:
    """One line of the table, and whether the bar is met."""
    bar = SIMPLE_RULE.get(bot.name)
    met = "no bar" if bar is None else f"{'PASS' if found['recall'] > bar else 'MISSED'}: the simple rule has {bar:.2f}"
    print(
        f"{bot.name:12} {found['rows']:5} {found['wrong']:6} {found['held']:5} {found['hits']:5} "
        f"{found['precision']:10.3f} {found['recall']:7.3f}  {met}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = ROOT.parent / "shared" / "data" / "hint3"
    parser.add_argument("--data", type=Path, default=default, help="folder with v1/ and v2/")
    parser.add_argument("--quick", action="store_true", help="the smallest bot only")
    parser.add_argument("--seed", type=int, default=0, help="of the folds")
    parser.add_argument("--json", type=Path, help="write the figures here")
    given = parser.parse_args()
    bots = find_bots(given.data)
    if not bots:
        raise SystemExit(
            f"no bots in {given.data}: it needs v1/BOT_subset_train.csv, v1/BOT_test.csv and v2/BOT_test.csv"
        )
    if given.quick:
        bots = [min(bots, key=lambda bot: len(bot.texts))]
    print(f"{'bot':12} {'rows':>5} {'wrong':>6} {'held':>5} {'hits':>5} {'precision':>10} {'recall':>7}")
    figures = {}
    for bot in bots:
        figures[bot.name] = measure(bot, seed=given.seed)
        report(bot, figures[bot.name])
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
