"""Classes that come later: intents are held back and released over the nights, and the loop has to learn them.

    python benchmarks/class_arrival.py [--data FOLDER] [--set NAME] [--base most|few] [--json FILE]

CLINC150 with 30 of its 150 intents held back, Banking77 with 10 of 77. The first model knows 70 % of the training rows of each
other class (`most`), or 12 of them (`few`: then all classes have much to learn, not the new ones alone). Each night brings
150 queries of the classes released so far, drawn from what is left of the train part, a new class three times as often in its
first two nights. Their labels come as feedback after they were answered. Policies and profile as in
`benchmarks/hint3.py`; the accuracy is that of the model live at the end on the test part, beside one of everything there was.
"""

import argparse
import csv
import gzip
import json
import random
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import hint3
from benchmarks.hint3 import MODEL, Bot, Stream
from benchmarks.nights import Nights
from flows.champion import found_model, live_model
from flows.training import training_rows
from flows.workspace import open_workspace
from models.arms import ARMS, DEFAULT_ARM, Model, Task, fit_arm
from store.records import DatasetRow

Pair = tuple[str, str]
BASE_ROWS = 12
"""Of each known class, in base `few`."""
BASE_SHARE = 0.7
"""Of each known class, in base `most`."""
NIGHTS = 20
A_NIGHT = 150
NEW_WEIGHT = 3


class Arrival(NamedTuple):
    """One data set as a stream."""

    bot: Bot
    test: list[Pair]


def clinc150(folder: Path) -> tuple[list[Pair], list[Pair], int]:
    with gzip.open(folder / "clinc150" / "data_full.json.gz", "rt", encoding="utf-8") as file:
        data = json.load(file)
    return [tuple(row) for row in data["train"]], [tuple(row) for row in data["test"]], 30


def banking77(folder: Path) -> tuple[list[Pair], list[Pair], int]:
    found = []
    for part in ("train", "test"):
        with (folder / "banking77" / f"{part}.csv").open(encoding="utf-8", newline="") as file:
            found.append([(row["text"], row["category"]) for row in csv.DictReader(file)])
    return found[0], found[1], 10


def arrival(
    name: str, train: list[Pair], test: list[Pair], held_back: int, folder: Path, *, base: str = "few"
) -> Arrival:
    """The base set as a file, and the queries of all nights; `base`: `most` or `few` rows of each known class."""
    rng = random.Random(7)
    by_class: dict[str, list[str]] = defaultdict(list)
    for text, label in train:
        by_class[label].append(text)
    for texts in by_class.values():
        rng.shuffle(texts)
    classes = sorted(by_class)
    rng.shuffle(classes)
    late, known = classes[:held_back], classes[held_back:]
    path = folder / f"{name}.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["sentence", "label"])
        for label in known:
            rows = BASE_ROWS if base == "few" else int(BASE_SHARE * len(by_class[label]))
            writer.writerows((by_class[label].pop(), label) for _ in range(rows))
    released = {label: i * (NIGHTS * 2 // 3) // len(late) for i, label in enumerate(late)}
    texts, labels = [], []
    for night in range(NIGHTS):
        open_ = [label for label in classes if released.get(label, -9) <= night and by_class[label]]
        weights = [NEW_WEIGHT if 0 <= night - released.get(label, -9) < 2 else 1 for label in open_]
        for label in rng.choices(open_, weights, k=A_NIGHT) if open_ else ():
            if by_class[label]:
                texts.append(by_class[label].pop())
                labels.append(label)
    return Arrival(Bot(name, path, texts, labels, labels), test)


def play(bot: Bot, policy: str) -> tuple[Model, Stream]:
    """The whole stream under one policy: the model live at the end."""
    played = Stream()
    with tempfile.TemporaryDirectory(prefix="filmroom-arrival-") as folder:
        nights = Nights()
        settings = hint3.settings_of(bot, Path(folder))
        with open_workspace(settings, actor="benchmark", clock=nights, create=True) as workspace:
            found_model(workspace, MODEL)
            model = live_model(workspace, MODEL)
            size = -(-len(bot.texts) // NIGHTS)
            for start in range(0, len(bot.texts), size):
                nights.number += 1
                block = range(start, min(start + size, len(bot.texts)))
                answers = hint3.answers_of(model, [bot.texts[i] for i in block])
                played.answers += answers
                started = time.process_time()
                model = hint3.NIGHTS[policy](workspace, bot, block, answers, played, is_last=False) or model
                played.cpu_s += time.process_time() - started
    return model, played


def everything(bot: Bot, folder: Path) -> Model:
    """The model of all rows there were."""
    rows = [DatasetRow(input=text, label=label) for text, label in zip(bot.texts, bot.labels, strict=True)]
    return fit_arm(ARMS[DEFAULT_ARM], training_rows(hint3.settings_of(bot, folder), MODEL), rows, task=Task())


def accuracy(model: Model, test: list[Pair]) -> float:
    """Of the label, whatever the reject threshold says: there is nothing out of scope here."""
    answers = model.predict([text for text, _ in test])
    return sum(answer.label == label for answer, (_, label) in zip(answers, test, strict=True)) / len(test)


def measure(given: Arrival, folder: Path) -> dict[str, Any]:
    """Accuracy at the end and fits, by policy."""
    found: dict[str, Any] = {"everything": {"accuracy": accuracy(everything(given.bot, folder), given.test), "fits": 1}}
    for policy in ("never", "nightly", "ours"):
        model, played = play(given.bot, policy)
        served = sum(a == b for a, b in zip(played.answers, given.bot.labels, strict=True)) / len(given.bot.labels)
        found[policy] = {"accuracy": accuracy(model, given.test), "fits": played.fits, "cpu_s": round(played.cpu_s, 1),
                         "on_the_way": served, "refused": len(played.refusals)}  # fmt: skip
    return found


def report(name: str, found: dict[str, Any]) -> None:
    print(f"\n{name}\n  {'policy':10} {'accuracy':>9} {'on the way':>11} {'fits':>5} {'refused':>8} {'cpu s':>7}")
    for policy, row in found.items():
        print(f"  {policy:10} {row['accuracy']:9.3f} {row.get('on_the_way', float('nan')):11.3f} {row['fits']:5d} "
              f"{row.get('refused', 0):8d} {row.get('cpu_s', 0):7.1f}")  # fmt: skip
    behind = found["everything"]["accuracy"] - found["ours"]["accuracy"]
    fewer = found["nightly"]["fits"] / max(1, found["ours"]["fits"])
    met = behind <= 0.01 and fewer >= 5
    print(f"  {'PASS' if met else 'MISSED'}: {100 * behind:.1f} points behind everything (1 allowed), {fewer:.1f} times fewer fits "
          "than nightly (5 asked)")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(__file__).resolve().parent.parent.parent / "shared" / "data")
    parser.add_argument("--set", choices=("banking77", "clinc150"), help="one of the two sets; both without it")
    parser.add_argument("--base", choices=("most", "few"), default="most")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    figures = {}
    with tempfile.TemporaryDirectory(prefix="filmroom-arrival-") as folder:
        for read in (banking77, clinc150):
            name = read.__name__
            if given.set not in (None, name):
                continue
            stream = arrival(name, *read(given.data), Path(folder), base=given.base)
            figures[name] = measure(stream, Path(folder))
            report(name, figures[name])
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
