"""An import that is killed at any moment and run again gives the store that an undisturbed one gives."""

import gzip
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Table, select

from store.database import Store, open_store
from store.sources.meter import Meter
from store.sources.registry import read
from store.tables import bodies, feedback, quarantine, spans, traces

ROOT = Path(__file__).resolve().parent.parent
TRACES = 6_000
KILLS = 6


def lines(count: int) -> Iterator[str]:
    """Traces with two spans and a feedback each, every hundredth broken, every fiftieth sent twice."""
    text = "the order has not arrived and nobody answers " * 10
    for number in range(count):
        steps = [
            {"id": str(n), "kind": "tool", "name": "look_up", "input": {"order": number}, "output": text}
            for n in (0, 1)
        ]
        said = {"id": "f", "name": "thumb", "score": number % 2}
        line = {"type": "trace", "id": f"t{number}", "started": 1_767_225_600 + number, "input": text, "spans": steps,
                "feedback": [said]}  # fmt: skip
        whole = json.dumps(line) + "\n"
        yield whole[:-20] + "\n" if number % 100 == 99 else whole
        if number % 50 == 0:
            yield whole


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "log.jsonl"
    path.write_text("".join(lines(TRACES)))
    return path


APART = "import sys; from store import reading_apart; reading_apart.WORTH_BYTES = int(sys.argv.pop(1)); "
START = APART + "from filmroom.main import entry; entry()"


def importing(home: Path, log: Path, worth_bytes: int = 1) -> "subprocess.Popen[bytes]":
    """`filmroom ingest`; the log is read in a process of its own from so many bytes."""
    command = [sys.executable, "-c", START, str(worth_bytes), "ingest", str(log), "--format", "native"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, cwd=home, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def content(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of what was read, but when it was; without the secret that each store makes for itself."""
    with store.read() as connection:
        found = {table.name: rows(connection.execute(select(*told(table)))) for table in KEPT}
    return {name: [row for row in kept if not row[0].startswith("redaction key")] for name, kept in found.items()}


KEPT = (traces, spans, feedback, bodies, quarantine)


def told(table: Table) -> list[Any]:
    return [column for column in table.columns if column.name != "at_us"]


def rows(result: Any) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in result), key=repr)


def stored_in(home: Path) -> dict[str, list[tuple[Any, ...]]]:
    store = open_store(f"sqlite:///{home / 'filmroom.db'}")
    try:
        return content(store)
    finally:
        store.close()


@pytest.mark.slow
def test_an_import_killed_at_random_moments_ends_as_an_undisturbed_one(tmp_path: Path, log: Path) -> None:
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    undisturbed.mkdir()
    killed.mkdir()
    began = time.monotonic()
    assert importing(undisturbed, log).wait(300) == 0
    seconds = time.monotonic() - began
    chance = random.Random(7)
    ended = []
    for number in range(KILLS):
        process = importing(killed, log, worth_bytes=1 if number % 2 else 1 << 40)
        time.sleep(chance.uniform(0.2, 1.0) * seconds)
        process.kill()
        ended.append(process.wait())
    assert -signal.SIGKILL in ended
    assert importing(killed, log).wait(300) == 0
    assert stored_in(killed) == stored_in(undisturbed)


def test_progress_knows_the_end(log: Path) -> None:
    meter = Meter(log)
    seen = [meter.position() for _ in read(log, format="native", meter=meter)]
    assert (seen == sorted(seen), meter.position(), meter.total) == (True, log.stat().st_size, log.stat().st_size)
    assert abs(seen[len(seen) // 2] / meter.total - 0.5) < 0.05


def test_progress_of_a_folder_of_compressed_files_knows_the_end(tmp_path: Path) -> None:
    for name in ("a.jsonl.gz", "b.jsonl.gz"):
        (tmp_path / name).write_bytes(gzip.compress("".join(lines(300)).encode(), 1))
    meter = Meter(tmp_path)
    seen = [meter.position() for _ in read(tmp_path, format="native", meter=meter)]
    assert (seen == sorted(seen), meter.position()) == (True, meter.total)
    assert 0 < seen[len(seen) // 4] < meter.total
