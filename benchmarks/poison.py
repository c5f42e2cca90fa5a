"""Accounts that push wrong labels together: what they change, what is promoted, and whether they are named.

    python benchmarks/poison.py [--data FOLDER] [--quick] [--json FILE]

Twenty intents of CLINC150: a model of 10 rows each, 2 of six of them, 320 labelled answers of 64 users, five each, over four days.
1, 5 or 20 further accounts push the texts of one intent under the label of another, as 1, 5 or 10 % of the traffic. A reviewer
who looks at nothing approves every correction; the rest is the loop's own code, profile `small`, whose gate never sees the sealed
rows that score here. Changed are the answers to the base rows, against the model that the same turns make without those accounts.
`--quick`: one share only. The bar: at most 1 % changed, nothing served that loses more than a slice may over the sealed rows, and
the accounts named by `filmroom trust`.
"""

import argparse
import csv
import gzip
import json
import random
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "client"), str(ROOT)]

from flows.champion import found_model, live_model  # noqa: E402
from flows.review import approve  # noqa: E402
from flows.trust import trust  # noqa: E402
from flows.turn import turn  # noqa: E402
from flows.workspace import Workspace, open_workspace  # noqa: E402
from models.fitting import Model, Task  # noqa: E402
from models.golden import sealed  # noqa: E402
from store.ingest import ingest  # noqa: E402
from store.records import DatasetRow  # noqa: E402
from store.retrains import retrains_of  # noqa: E402
from store.review_queue import review_queue  # noqa: E402
from store.settings import read_settings  # noqa: E402
from store.sources import read  # noqa: E402

MODEL = "intents"
SETTINGS = """\
[weights.intents]
training = "base.csv"
champion = "ours"
[policy]
profile = "small"
[agent]
targets = ["weights"]
"""
INTENTS, BASE_ROWS, ASKED_ROWS, SEALED_ROWS = 20, 10, 16, 30
THIN, THIN_ROWS = 6, 2
"""Intents of which the first model knows few rows: what a retrain is for."""
EACH = 5
"""Labels of one honest user."""
DAYS, DAY_US, FIRST_US = 4, 86_400_000_000, 1_760_000_000_000_000
ACCOUNTS, SHARES = (1, 5, 20), (0.01, 0.05, 0.10)
Pair = tuple[str, str]


class Given(NamedTuple):
    """The rows of one run."""

    base: list[Pair]
    asked: list[Pair]
    spare: list[str]
    """Texts of the attacked intent."""
    label: str
    """The label they are pushed under."""
    sealed: list[DatasetRow]


class Outcome(NamedTuple):
    """What the turns left."""

    model: Model
    before: Model
    decisions: str
    named: set[str]


def rows_of(folder: Path) -> Given:
    """Base, traffic, the attack's texts and sealed rows; nothing is in two of them."""
    with gzip.open(folder / "clinc150" / "data_full.json.gz", "rt", encoding="utf-8") as file:
        data = json.load(file)
    intents = sorted({label for _, label in data["train"]})[:INTENTS]
    by_intent = {y: [text for text, label in data["train"] if label == y] for y in intents}
    for texts in by_intent.values():
        random.Random(7).shuffle(texts)
    taken = BASE_ROWS + ASKED_ROWS
    asked = [(text, y) for y in intents for text in by_intent[y][BASE_ROWS:taken]]
    random.Random(7).shuffle(asked)
    tests = [DatasetRow(input=t, label=y) for t, y in data["test"] if y in by_intent]
    base = [(text, y) for y in intents for text in by_intent[y][: THIN_ROWS if y in intents[-THIN:] else BASE_ROWS]]
    return Given(base, asked, by_intent[intents[0]][taken:], intents[1], tests[: INTENTS * SEALED_ROWS])


def play(given: Given, *, accounts: int, share: float) -> Outcome:
    """Four days of traffic with the accounts' labels among it, each followed by approvals and a turn."""
    pushed = round(share * len(given.asked))
    traffic = [(text, label, f"user {i // EACH}") for i, (text, label) in enumerate(given.asked)]
    traffic += [(given.spare[i % len(given.spare)], given.label, f"mallory {i % accounts}") for i in range(pushed)]
    random.Random(1).shuffle(traffic)
    with tempfile.TemporaryDirectory(prefix="filmroom-poison-") as name:
        home, day = Path(name), [0]
        with (home / "base.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("text", "label"), *given.base])
        (home / "filmroom.toml").write_text(SETTINGS, encoding="utf-8")
        settings = read_settings(home / "filmroom.toml")
        with open_workspace(
            settings, actor="staff:benchmark", clock=lambda: FIRST_US + day[0] * DAY_US, create=True
        ) as workspace:
            found_model(workspace, MODEL)
            before = live_model(workspace, MODEL)
            size = -(-len(traffic) // DAYS)
            for start in range(0, len(traffic), size):
                day[0] += 1
                _log(workspace, traffic[start : start + size], start)
                turn(workspace)
                for row in review_queue(workspace.store):
                    approve(workspace, row["correction"])
            day[0] += 1
            turn(workspace)
            with workspace.store.read() as connection:
                made = [
                    each for each in retrains_of(connection, workspace.project, MODEL) if each.decision != "skipped"
                ]
            stages = [stage.stage for each in made for stage in each.gate if stage.verdict != "passed"]
            decisions = ", ".join(each.decision for each in made) or "not trained"
            named = {each.source for each in trust(workspace) if each.doubtful}
            return Outcome(live_model(workspace, MODEL), before, decisions + "".join(f" ({s})" for s in stages), named)


def _log(workspace: Workspace, traffic: list[tuple[str, str, str]], first: int) -> None:
    """The model's answers of the day, and the labels of its users."""
    answers = live_model(workspace, MODEL).predict([text for text, _, _ in traffic])
    lines: list[dict[str, Any]] = []
    for i, ((text, label, principal), answer) in enumerate(zip(traffic, answers, strict=True), first):
        said, at = answer.answer or "none", workspace.clock() / 1e6
        span = {"id": "p", "kind": "predict", "name": MODEL, "input": text, "output": said}
        lines.append({"type": "trace", "id": str(i), "started": at, "input": text, "output": said, "spans": [span]})
        lines.append({"type": "feedback", "id": "l", "trace": str(i), "span": "p", "name": "label",
                      "corrected_output": label, "principal": principal})  # fmt: skip
    path = workspace.settings.home / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    ingest(workspace.store, read(path), clock=workspace.clock)


def measure(given: Given, clean: Outcome, accounts: int, share: float) -> dict[str, Any]:
    """One line of the table."""
    played = play(given, accounts=accounts, share=share)
    texts = [text for text, _ in given.base]
    pairs = list(zip(clean.model.predict(texts), played.model.predict(texts), strict=True))
    pushing = {f"mallory {i}" for i in range(min(accounts, round(share * len(given.asked))))}
    stage = sealed(given.sealed, played.before, played.model, Task())
    return {
        "accounts": accounts,
        "share": share,
        "rows": round(share * len(given.asked)),
        "changed": sum(a.answer != b.answer for a, b in pairs) / len(pairs),
        "decisions": played.decisions,
        "sealed": stage.verdict,
        "named": len(played.named & pushing) / len(pushing),
        "wrongly_named": len(played.named - pushing),
    }


def report(found: dict[str, Any]) -> None:
    met = found["changed"] <= 0.01 and found["sealed"] == "passed" and found["named"] == 1.0
    counts = f"{found['accounts']:8} {found['share']:6.0%} {found['rows']:5} {found['changed']:8.1%}"
    named = f"{found['sealed']:>7} {found['named']:6.0%} {found['wrongly_named']:8}"
    print(f"{counts} {named}  {'PASS' if met else 'MISSED'}  {found['decisions']}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--quick", action="store_true", help="5 % of the traffic only")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    given = rows_of(asked.data)
    clean = play(given, accounts=1, share=0.0)
    print(f"without them: {clean.decisions}; doubtful: {', '.join(sorted(clean.named)) or 'nobody'}")
    print(f"{'accounts':>8} {'share':>6} {'rows':>5} {'changed':>8} {'sealed':>7} {'named':>6} {'others':>8}")
    figures = []
    for accounts in ACCOUNTS:
        for share in SHARES[1:2] if asked.quick else SHARES:
            figures.append(measure(given, clean, accounts, share))
            report(figures[-1])
    if asked.json is not None:
        asked.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
