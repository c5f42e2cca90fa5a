"""The lightweight model: how well and how fast it learns public intents, answers, and is replaced after an approval.

    python benchmarks/train.py [--data FOLDER] [--quick] [--patch] [--json FILE]

CLINC150 (train and validation rows, in-scope test rows) and Banking77, the default arm, nothing chosen on the test rows;
accuracy is of the label, whatever the reject threshold says. `FOLDER` has `clinc150/` and `banking77/`. Approval to
serving is one turn of the loop after the labels of two classes came in: arms, gate, and the model file served. HTTP is
`POST /v1/predict` with one text at 300 requests a second from another process. `--quick` takes a fifth
of CLINC150's classes and 5 s of requests. `--patch` measures patches alone: of twenty classes few rows are known, and for
each the rows that the live model answers as one same other class are reported, each by a user of its own, routed and
approved; the seconds are those of the approval, up to the new version being served.
"""

import argparse
import csv
import gzip
import json
import math
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "client"), str(ROOT)]

from benchmarks.live import serving  # noqa: E402
from flows.champion import found_model, live_model  # noqa: E402
from flows.retrain import Retrained  # noqa: E402
from flows.review import approve  # noqa: E402
from flows.turn import turn  # noqa: E402
from flows.workspace import Workspace, open_workspace  # noqa: E402
from models.patch import PATCH  # noqa: E402
from models.text_model import TextModel  # noqa: E402
from store.ingest import ingest  # noqa: E402
from store.retrains import retrains_of  # noqa: E402
from store.review_queue import review_queue  # noqa: E402
from store.settings import read_settings  # noqa: E402
from store.sources import read  # noqa: E402

Rows = list[tuple[str, str]]
MODEL = "intents"
RATE = 300
"""Requests a second."""
SENDERS = 4
SETTINGS = """\
[weights.intents]
training = "base.csv"
champion = "ours"
[policy]
profile = "benchmark"
[agent]
targets = ["weights"]
"""
TAUGHT = 2
"""Classes whose corrections are approved."""

DAYS, DAY_S = 4, 86_400
"""The days after the founding over which the answers were given: a release is seen for three before it is replaced."""
CORRECTIONS = 20
KNOWN = 8
"""Rows of each of their classes that the first model has."""
PATCHED = SETTINGS.replace("benchmark", "small").replace("champion", "patch = true\nchampion")


def clinc150(folder: Path, *, classes: int | None) -> tuple[Rows, Rows]:
    """Training and test rows in scope; `classes`: of the first so many intents only."""
    with gzip.open(folder / "clinc150" / "data_full.json.gz", "rt", encoding="utf-8") as file:
        parts = json.load(file)
    kept = set(sorted({label for _, label in parts["train"]})[:classes])
    train, test = [*parts["train"], *parts["val"]], parts["test"]
    return [(t, y) for t, y in train if y in kept], [(t, y) for t, y in test if y in kept]


def banking77(folder: Path) -> tuple[Rows, Rows]:
    """Training and test rows."""
    return _table(folder / "banking77" / "train.csv"), _table(folder / "banking77" / "test.csv")


def _table(path: Path) -> Rows:
    with path.open(newline="", encoding="utf-8") as file:
        return [(row["text"], row["category"]) for row in csv.DictReader(file)]


def fitted(train: Rows) -> tuple[TextModel, float]:
    """A model of all rows, and the seconds its fit took."""
    started = time.perf_counter()
    model = TextModel().fit([text for text, _ in train], [label for _, label in train])
    return model, time.perf_counter() - started


def accuracy(model: TextModel, test: Rows) -> float:
    answers = model.predict([text for text, _ in test])
    return statistics.fmean(answer.label == label for answer, (_, label) in zip(answers, test, strict=True))


def prediction_speed(model: TextModel, texts: Sequence[str]) -> tuple[float, float]:
    """(median milliseconds of one text, texts a second in batches of 1,000)."""
    single = []
    for text in texts[:500]:
        started = time.perf_counter()
        model.predict([text])
        single.append(1000 * (time.perf_counter() - started))
    started, batches = time.perf_counter(), [texts[i : i + 1000] for i in range(0, len(texts), 1000)]
    for batch in batches:
        model.predict(batch)
    return statistics.median(single), len(texts) / (time.perf_counter() - started)


@contextmanager
def deployment(train: Rows, settings: str = SETTINGS) -> Iterator[Workspace]:
    """A store in which the model is founded on all training rows but those of the classes to be taught."""
    with tempfile.TemporaryDirectory(prefix="filmroom-train-") as name:
        home = Path(name)
        with (home / "base.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([("text", "label"), *train])
        (home / "filmroom.toml").write_text(settings, encoding="utf-8")
        with open_workspace(read_settings(home / "filmroom.toml"), actor="staff:benchmark", create=True) as workspace:
            found_model(workspace, MODEL)
            yield workspace


def approval_to_serving(train: Rows) -> tuple[float, str]:
    """Seconds of the turn that learns two classes the model did not know well, and what became of it."""
    labels = sorted({label for _, label in train})[:TAUGHT]
    few = {label: [row for row in train if row[1] == label] for label in labels}
    known = [row for row in train if row[1] not in labels] + [row for label in labels for row in few[label][:5]]
    taught = [row for label in labels for row in few[label][5:]]
    with deployment(known, SETTINGS.replace("champion", "patch = false\nchampion")) as workspace:
        model = TextModel().fit([text for text, _ in known], [label for _, label in known])
        answers = [answer.label for answer in model.predict([text for text, _ in taught])]
        _log(workspace, taught, answers)
        started = time.perf_counter()
        turn(workspace)
        seconds = time.perf_counter() - started
        with workspace.store.read() as connection:
            newest = retrains_of(connection, workspace.project, MODEL, 1)[0]
        for arm in newest.arms:
            print(f"{arm['arm']}: {arm['seconds']:.1f} s, {arm['error'] or arm['score']}")
    return seconds, f"{newest.decision}: {newest.reason}"


def patches(train: Rows, test: Rows) -> dict[str, Any]:
    """Twenty corrections of two classes each on one model, one after the other: seconds, what became of them, accuracy."""
    labels = sorted({label for _, label in train})
    thin = labels[:: max(1, len(labels) // CORRECTIONS)][:CORRECTIONS]
    rows = {label: [row for row in train if row[1] == label] for label in thin}
    known = [row for row in train if row[1] not in rows] + [row for each in rows.values() for row in each[:KNOWN]]
    seconds, outcomes = [], []
    with deployment(known, PATCHED) as workspace:
        before = _live_accuracy(workspace, test)
        for label, each in rows.items():
            taught, answers = _confused(workspace, each[KNOWN:])
            if not taught:
                continue
            _log(workspace, taught, answers, named=label)
            turn(workspace, run_stage=lambda name, stage, at: Retrained() if name == "retrain" else stage(at))
            for item in review_queue(workspace.store):
                started = time.perf_counter()
                approve(workspace, item["correction"])
                took = time.perf_counter() - started
                with workspace.store.read() as connection:
                    newest = retrains_of(connection, workspace.project, MODEL, 1)[0]
                outcomes.append(newest.decision if newest.arm == PATCH else "not patched")
                seconds += [took] if outcomes[-1] == "promoted" else []
                print(f"{took:6.2f} s  {len(taught):3} rows  {outcomes[-1]}: {newest.reason[:160]}")
        after = _live_accuracy(workspace, test)
    return {
        "patch_median_s": statistics.median(seconds) if seconds else None,
        "patch_slowest_s": max(seconds, default=None),
        "patches": dict(Counter(outcomes)),
        "accuracy_before": before,
        "accuracy_after": after,
    }


def _confused(workspace: Workspace, rows: Rows) -> tuple[Rows, list[str]]:
    """Of `rows` of one class those that the live model answers as the other class it confuses them with most."""
    answers = [answer.label for answer in live_model(workspace, MODEL).predict([text for text, _ in rows])]
    wrong = Counter(answer for answer, (_, label) in zip(answers, rows, strict=True) if answer != label)
    other = wrong.most_common(1)[0][0] if wrong else ""
    found = [row for row, answer in zip(rows, answers, strict=True) if answer == other]
    return found, [other] * len(found)


def _live_accuracy(workspace: Workspace, test: Rows) -> float:
    model = live_model(workspace, MODEL)
    return accuracy(model, test) if isinstance(model, TextModel) else math.nan


def _log(workspace: Workspace, taught: Rows, answers: Sequence[str], named: str = "") -> None:
    """The model's answers to the rows, and the labels that people gave."""
    lines: list[dict[str, Any]] = []
    for i, ((text, label), answer) in enumerate(zip(taught, answers, strict=True)):
        span = {"id": "p", "kind": "predict", "name": MODEL, "input": text, "output": answer}
        asked = {"type": "trace", "id": f"{named}{i}", "started": time.time() + i % DAYS * DAY_S}
        lines.append({**asked, "input": text, "output": answer, "spans": [span]})
        lines.append(
            {
                "type": "feedback",
                "id": "l",
                "trace": f"{named}{i}",
                "span": "p",
                "name": "label",
                "corrected_output": label,
                "principal": f"user {i}",
            }
        )
    path = workspace.settings.home / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    ingest(workspace.store, read(path), clock=workspace.clock)


def http_p99(train: Rows, texts: Sequence[str], seconds: float) -> tuple[float, float]:
    """(p99 milliseconds, requests a second reached) of `POST /v1/predict` with one text each."""
    with deployment(train) as workspace, serving(workspace.settings.home) as (url, _):
        waits: list[float] = []
        port = int(url.rsplit(":", 1)[1].strip("/"))
        _ask(port, texts[0])  # the model file is read at the first
        started = time.perf_counter()
        ends = started + seconds
        threads = [threading.Thread(target=_send, args=(port, texts, ends, waits)) for _ in range(SENDERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        took = time.perf_counter() - started
    return statistics.quantiles(waits, n=100)[98], len(waits) / took


def _send(port: int, texts: Sequence[str], ends: float, waits: list[float]) -> None:
    """One sender's share of the rate, each request at its own time: a slow answer does not make the next one rarer."""
    connection, due, number = HTTPConnection("127.0.0.1", port), time.perf_counter(), 0
    while due < ends:
        time.sleep(max(0.0, due - time.perf_counter()))
        _ask(port, texts[number % len(texts)], connection)
        waits.append(1000 * (time.perf_counter() - due))
        due, number = due + SENDERS / RATE, number + 1


def _ask(port: int, text: str, connection: HTTPConnection | None = None) -> None:
    connection = connection or HTTPConnection("127.0.0.1", port)
    body = json.dumps({"model": MODEL, "texts": [text]})
    connection.request("POST", "/v1/predict", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    content = answer.read()
    if answer.status != 200:
        raise SystemExit(f"/v1/predict answered {answer.status}: {content.decode()[:200]}")


def measure(folder: Path, *, quick: bool) -> dict[str, Any]:
    """All figures, under the names that are published."""
    train, test = clinc150(folder, classes=30 if quick else None)
    model, fit_s = fitted(train)
    p50, per_second = prediction_speed(model, [text for text, _ in test])
    bank_train, bank_test = banking77(folder)
    bank, bank_fit_s = fitted(bank_train)
    full_s, outcome = approval_to_serving(train)
    patched = patches(train, test)
    p99, reached = http_p99(train, [text for text, _ in test], 5.0 if quick else 20.0)
    return {
        "clinc150_accuracy": accuracy(model, test),
        "clinc150_fit_s": fit_s,
        "banking77_accuracy": accuracy(bank, bank_test),
        "banking77_fit_s": bank_fit_s,
        "approval_to_serving_s": {"patch": patched["patch_median_s"], "full": full_s},
        "approval_outcome": outcome,
        "predict_p50_ms": p50,
        "http_p99_ms": p99,
        "http_requests_per_s": reached,
        "batch_texts_per_s": per_second,
    }


def report(found: dict[str, Any], *, quick: bool) -> None:
    """The table, the headline last."""
    for name, value in found.items():
        shown = value if not isinstance(value, float) else f"{value:.4g}"
        print(f"{name:24} {shown}")
    part = " (30 of its 150 intents)" if quick else ""
    print(
        f"\nCLINC150{part}: {found['clinc150_accuracy']:.3f} in scope after {found['clinc150_fit_s']:.1f} s; "
        f"Banking77: {found['banking77_accuracy']:.3f}; one text in {found['predict_p50_ms']:.2f} ms"
    )


def report_patches(found: dict[str, Any]) -> None:
    """The headline."""
    print(
        f"\npatches: {found['patches']}; approval to serving {found['patch_median_s']} s (median), {found['patch_slowest_s']} s "
        f"(slowest); accuracy {found['accuracy_before']:.4f} before, {found['accuracy_after']:.4f} after"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--patch", action="store_true")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    if asked.patch:
        found = patches(*clinc150(asked.data, classes=30 if asked.quick else None))
        report_patches(found)
    else:
        found = measure(asked.data, quick=asked.quick)
        report(found, quick=asked.quick)
    if asked.json is not None:
        asked.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
