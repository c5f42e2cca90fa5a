"""A large log is read in another process, with the same end."""

import time
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from store import handover, reading_apart
from store.database import open_store
from store.errors import UnknownFormat
from store.handover import Handover
from store.ingest import Batch, Tally, write_batches
from store.reading_apart import Reading, read_batches
from store.records import Rejected
from store.redaction import KEYS_ALONE
from store.sources.contract import SourceOptions
from store.sources.meter import Meter
from store.tables import bodies, quarantine
from tests.shop_log import bad_argument, satisfied, write_lines


def log(folder: Path) -> Path:
    path = write_lines(
        folder / "log.jsonl", *(satisfied(n) for n in range(20)), *(bad_argument(n) for n in range(20, 25))
    )
    with path.open("a", encoding="utf-8") as file:
        file.write('{"type": "trace", "id": "cut"\n')
    return path


def read_into(folder: Path, path: Path, *, format: str = "native") -> tuple[Tally, list[Any], list[Rejected], Meter]:
    folder.mkdir()
    store = open_store(f"sqlite:///{folder / 'a.db'}", create=True)
    meter, rejected = Meter(path), list[Rejected]()
    reading = Reading(path, format, SourceOptions(), "default", KEYS_ALONE, place="-")
    tally = write_batches(store, read_batches(reading, meter), clock=lambda: 1, rejected=rejected.append)
    with store.read() as connection:
        found = [list(connection.execute(select(table).order_by(table.c.id))) for table in (bodies, quarantine)]
    store.close()
    return tally, found, rejected, meter


def test_another_process_reads_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = log(tmp_path)
    here = read_into(tmp_path / "here", path)
    monkeypatch.setattr(reading_apart, "WORTH_BYTES", 1)
    apart = read_into(tmp_path / "apart", path)
    assert apart[:3] == here[:3]
    assert (apart[0].read, apart[0].quarantined, apart[2][0].path) == (56, 1, "-")
    assert apart[3].position() == path.stat().st_size


def test_what_goes_wrong_in_another_process_is_raised_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.json"
    path.write_text('{"what": "is this"}', encoding="utf-8")
    monkeypatch.setattr(reading_apart, "WORTH_BYTES", 1)
    with pytest.raises(UnknownFormat, match="what"):
        read_into(tmp_path / "apart", path, format="auto")


def test_batches_that_wait_are_written_together() -> None:
    receiver, sender = Pipe(duplex=False)
    for number in range(3):
        sender.send((number, Batch(f"batch {number}")))
    sender.send((3, None))
    waiting = Handover(receiver)
    wait_for(waiting, 4)
    meter = Meter(Path("none"))
    first = reading_apart._taken(waiting, meter)
    assert first is not None
    assert [each.project for each in reading_apart._together(first, waiting, meter)] == [
        "batch 0",
        "batch 1",
        "batch 2",
    ]
    assert (reading_apart._taken(waiting, meter), meter.position()) == (None, 3)
    sender.close()
    assert waiting.take() is None
    waiting.end()


def test_no_more_is_taken_ahead_than_may_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handover, "AHEAD_BYTES", 20)
    receiver, sender = Pipe(duplex=False)
    waiting = Handover(receiver)
    for _ in range(4):
        sender.send_bytes(b"ten bytes.")
    wait_for(waiting, 2)
    assert receiver.poll()
    sender.close()
    waiting.end()
    assert len(waiting._waiting) == 2


def wait_for(waiting: Handover, count: int) -> None:
    end = time.monotonic() + 5
    while len(waiting._waiting) < count and time.monotonic() < end:
        time.sleep(0.001)
