"""HINT3 as a stream: two live bots' queries in ten blocks, each answered by the release then live.

    python benchmarks/hint3.py [--data FOLDER] [--quick] [--json FILE]

A block is one night. Its queries are answered by the live model before their v1 labels arrive as feedback; nothing of
the loop opens v2, the truth, which only scores. Profile `benchmark`: no times and no users are invented, and a named
reviewer accepts what the feedback says. Policies: `never` retrains, `nightly` refits after every block, `ours` is the loop.
Bots are found by their files, `v1/BOT_subset_train.csv`. Scores are over blocks 6 to 10 with the reject threshold in force.
"""

import argparse
import csv
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.nights import HOUR_US, Nights
from flows.champion import found_model, live_model
from flows.training import training_rows
from flows.turn import turn
from flows.workspace import Workspace, open_workspace
from models.arms import ARMS, DEFAULT_ARM, Model, Task, fit_arm
from models.patch import PATCH
from models.sequential import mcnemar_one_sided
from store.ingest import ingest
from store.records import DatasetRow, Retrain
from store.retrains import retrains_of
from store.settings import Settings
from store.sources import read

OUT_OF_SCOPE = "NO_NODES_DETECTED"
MODEL = "bot"
BLOCKS = 10
SCORED_FROM = 5
"""Blocks are scored from this one on, counted from 0."""


@dataclass
class Stream:
    """What one policy answered, and what that took."""

    answers: list[str] = field(default_factory=list)
    fits: int = 0
    estimator_fits: int = 0
    cpu_s: float = 0.0
    flipped: int = 0
    """Answers of the next block that a new model got newly wrong."""
    formerly_right: int = 0
    refusals: list[Retrain] = field(default_factory=list)
    held: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Bot:
    name: str
    training: Path
    texts: list[str]
    labels: list[str]
    """v1: what users' feedback says."""
    truth: list[str]
    """v2: only for scoring."""

    @property
    def blocks(self) -> list[range]:
        size, rest = divmod(len(self.texts), BLOCKS)
        ends = [size * (i + 1) + min(i + 1, rest) for i in range(BLOCKS)]
        return [range(start, end) for start, end in zip([0, *ends], ends, strict=False)]


def find_bots(folder: Path) -> list[Bot]:
    """Every bot of the folder that has a subset to start from, a stream and its truth."""
    bots = []
    for training in sorted((folder / "v1").glob("*_subset_train.csv")):
        name = training.name.removesuffix("_subset_train.csv")
        stream, truth = folder / "v1" / f"{name}_test.csv", folder / "v2" / f"{name}_test.csv"
        if stream.exists() and truth.exists():
            said, right = _table(stream), _table(truth)
            bots.append(
                Bot(name, training, [t for t, _ in said], [label for _, label in said], [label for _, label in right])
            )
    return bots


def _table(path: Path) -> list[tuple[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return [(row["sentence"], row["label"]) for row in csv.DictReader(file)]


def play(bot: Bot, policy: str) -> Stream:
    """The whole stream under one policy."""
    played = Stream()
    with tempfile.TemporaryDirectory(prefix="filmroom-hint3-") as folder:
        settings = settings_of(bot, Path(folder))
        nights = Nights()
        with open_workspace(settings, actor="benchmark", clock=nights, create=True) as workspace:
            found_model(workspace, MODEL)
            model = live_model(workspace, MODEL)
            for number, block in enumerate(bot.blocks):
                nights.number = number + 1
                answers = answers_of(model, [bot.texts[i] for i in block])
                played.answers += answers
                started = time.process_time()
                following = NIGHTS[policy](workspace, bot, block, answers, played, is_last=number == BLOCKS - 1)
                played.cpu_s += time.process_time() - started
                if following is not None and number + 1 < BLOCKS:
                    _count_flips(bot, bot.blocks[number + 1], model, following, played)
                    model = following
    return played


def settings_of(bot: Bot, folder: Path) -> Settings:
    return Settings(
        home=folder,
        weights={
            MODEL: {
                "training": str(bot.training.resolve()),
                "input": "sentence",
                "out_of_scope": OUT_OF_SCOPE,
                "champion": "ours",
            }
        },
        policy={"profile": "benchmark"},
        agent={"targets": ("weights",)},
    )


def answers_of(model: Model, texts: list[str]) -> list[str]:
    return [prediction.answer or OUT_OF_SCOPE for prediction in model.predict(texts)]


def _never(*_: Any, is_last: bool) -> Model | None:
    return None


def _nightly(
    workspace: Workspace, bot: Bot, block: range, _answers: list[str], played: Stream, *, is_last: bool
) -> Model | None:
    if is_last:
        return None
    base = training_rows(workspace.settings, MODEL)
    rows = [DatasetRow(input=bot.texts[i], label=bot.labels[i]) for i in range(block.stop)]
    model = fit_arm(ARMS[DEFAULT_ARM], base, rows, task=Task(out_of_scope=OUT_OF_SCOPE))
    played.fits += 1
    played.estimator_fits += model.estimator_fits
    return model


def _ours(
    workspace: Workspace, bot: Bot, block: range, answers: list[str], played: Stream, *, is_last: bool
) -> Model | None:
    """The log of the day comes in, then the labels; then the loop turns."""
    log = workspace.settings.home / "night.jsonl"
    lines = [_trace(i, bot.texts[i], answer) for i, answer in zip(block, answers, strict=True)]
    lines += [_label(i, bot.labels[i]) for i in block]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    ingest(workspace.store, read(log), clock=workspace.clock)
    if is_last:
        return None
    turn(workspace)
    with workspace.store.read() as connection:
        past = retrains_of(connection, workspace.project, MODEL)
    now_us = workspace.clock()
    tonight = [each for each in past if each.at_us > now_us - 12 * HOUR_US]
    played.fits += sum(each.decision in ("promoted", "refused") for each in tonight if each.arm != PATCH)
    played.estimator_fits += sum(each.estimator_fits for each in tonight)
    played.refusals += [each for each in tonight if each.decision == "refused"]
    return live_model(workspace, MODEL) if any(each.decision == "promoted" for each in tonight) else None


NIGHTS: dict[str, Callable[..., Model | None]] = {"never": _never, "nightly": _nightly, "ours": _ours}


def _trace(number: int, text: str, answer: str) -> dict[str, Any]:
    span = {"id": "p", "kind": "predict", "name": MODEL, "input": text, "output": answer}
    return {"type": "trace", "id": str(number), "input": text, "output": answer, "spans": [span]}


def _label(number: int, label: str) -> dict[str, Any]:
    return {
        "type": "feedback",
        "id": "label",
        "trace": str(number),
        "span": "p",
        "name": "label",
        "corrected_output": label,
    }


def _count_flips(bot: Bot, block: range, before: Model, after: Model, played: Stream) -> None:
    texts = [bot.texts[i] for i in block]
    pairs = zip(answers_of(before, texts), answers_of(after, texts), [bot.truth[i] for i in block], strict=True)
    for old, new, right in pairs:
        played.formerly_right += old == right
        played.flipped += old == right != new


def score(bot: Bot, played: Stream) -> dict[str, Any]:
    """The figures of one policy over the scored blocks."""
    rows = range(bot.blocks[SCORED_FROM].start, len(bot.texts))
    inside = [i for i in rows if bot.truth[i] != OUT_OF_SCOPE]
    outside = [i for i in rows if bot.truth[i] == OUT_OF_SCOPE]
    return {
        "accuracy": _share(played.answers[i] == bot.truth[i] for i in inside),
        "fits": played.fits,
        "estimator_fits": played.estimator_fits,
        "cpu_s": round(played.cpu_s, 2),
        "negative_flip_rate": played.flipped / played.formerly_right if played.formerly_right else 0.0,
        "out_of_scope_recall": _share(played.answers[i] == OUT_OF_SCOPE for i in outside),
    }


def _share(hits: Any) -> float:
    found = list(hits)
    return sum(found) / len(found) if found else 0.0


def compare(bot: Bot, one: Stream, other: Stream) -> tuple[int, int, float]:
    """Scored in-scope rows that `one` has right and `other` wrong, the reverse, and the one-sided exact McNemar p."""
    rows = [i for i in range(bot.blocks[SCORED_FROM].start, len(bot.texts)) if bot.truth[i] != OUT_OF_SCOPE]
    wins = sum(one.answers[i] == bot.truth[i] != other.answers[i] for i in rows)
    losses = sum(other.answers[i] == bot.truth[i] != one.answers[i] for i in rows)
    return wins, losses, mcnemar_one_sided(wins, losses)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(__file__).resolve().parent.parent.parent / "shared" / "data" / "hint3"
    parser.add_argument("--data", type=Path, default=default, help="folder with v1/ and v2/")
    parser.add_argument("--quick", action="store_true", help="the smallest bot only")
    parser.add_argument("--json", type=Path, help="write the figures here")
    given = parser.parse_args()
    bots = find_bots(given.data)
    if not bots:
        raise SystemExit(
            f"no bots in {given.data}: it needs v1/BOT_subset_train.csv, v1/BOT_test.csv and v2/BOT_test.csv"
        )
    if given.quick:
        bots = [min(bots, key=lambda bot: len(bot.texts))]
    figures = {bot.name: report(bot) for bot in bots}
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2), encoding="utf-8")


def report(bot: Bot) -> dict[str, Any]:
    """Play all three policies, print their table and every refusal, and return the figures."""
    streams = {policy: play(bot, policy) for policy in NIGHTS}
    figures: dict[str, Any] = {policy: score(bot, played) for policy, played in streams.items()}
    print(f"\n{bot.name}: {len(bot.texts)} queries, blocks {SCORED_FROM + 1} to {BLOCKS} scored on v2")
    print(f"  {'policy':8} {'accuracy':>9} {'oos recall':>11} {'fits':>5} {'est. fits':>10} {'cpu s':>7} {'flips':>7}")
    for policy, row in figures.items():
        print(
            f"  {policy:8} {row['accuracy']:9.3f} {row['out_of_scope_recall']:11.3f} {row['fits']:5d} "
            f"{row['estimator_fits']:10d} {row['cpu_s']:7.1f} {row['negative_flip_rate']:7.3f}"
        )
    for refused in streams["ours"].refusals:
        print(f"  refused: {refused.arm}: {refused.reason}")
        for stage in refused.gate:
            print(f"    {stage.stage}: {stage.verdict}: {stage.sentence}")
        print(f"    shortest way to yes: {refused.to_yes}")
    print(f"  {verdict(bot, streams, figures)}")
    return figures


def verdict(bot: Bot, streams: dict[str, Stream], figures: dict[str, Any]) -> str:
    """Whether the bar is met, in a sentence with the numbers behind it."""
    wins, losses, p = compare(bot, streams["nightly"], streams["never"])
    ours_wins, ours_losses, _ = compare(bot, streams["ours"], streams["never"])
    behind = mcnemar_one_sided(ours_losses, ours_wins)
    gap = figures["nightly"]["accuracy"] - figures["never"]["accuracy"]
    closed = (figures["ours"]["accuracy"] - figures["never"]["accuracy"]) / gap if gap else 0.0
    met = closed >= 0.7 if p <= 0.05 else behind > 0.05
    met = met and figures["ours"]["out_of_scope_recall"] >= figures["never"]["out_of_scope_recall"]
    met = met and figures["ours"]["fits"] <= figures["nightly"]["fits"] / 3
    reason = (
        f"nightly beats never ({wins}-{losses}, p {p:.3f}) and ours closes {closed:.0%} of that"
        if p <= 0.05
        else f"nightly does not beat never ({wins}-{losses}, p {p:.3f}); ours against never {ours_wins}-{ours_losses}"
    )
    return (
        f"{'PASS' if met else 'MISSED'}: {reason}; {figures['ours']['fits']} fits against {figures['nightly']['fits']}"
    )


if __name__ == "__main__":
    main()
