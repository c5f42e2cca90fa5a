"""Whatever is broken in a log: no traceback, nothing merged wrongly, each piece stored or in quarantine.

`FILMROOM_TEST_MUTATIONS=10000` tries so many; without it a few hundred are tried.
"""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from store.database import Store, open_store
from store.errors import InputError
from store.ingest import ingest
from store.sources import SourceOptions, read
from tests.mutations import mutated

SAMPLES = Path(__file__).parent.parent.parent / "shared" / "samples"
COUNT = int(os.environ.get("FILMROOM_TEST_MUTATIONS", "300"))
LARGEST = 60_000
"""Bytes of a sample that is mutated: larger ones only take longer."""

NATIVE = b"""\
{"type": "trace", "id": "1", "started": "2026-01-05T10:00:00Z", "user": "u", "input": {"a": [1, {}]}, "spans": [{"id": "a", \
"kind": "tool", "input": {"x": 1}, "confidence": 0.5}], "feedback": [{"name": "thumb", "score": 1, "given": 1767607200}]}
{"type": "feedback", "trace": "1", "id": "f", "score": 0.5, "corrected_output": {"a": null}}
{"type": "span", "trace": "1", "id": "b", "documents": [{"id": 1}], "input_tokens": 5}
"""
TABLE = b'id,timestamp,text,y_pred,confidence,label\n1,2026-01-05T10:00:00Z,hi,a,0.5,b\n2,2026-01-05T10:00:00Z,"x\ny",b,1,\n'


def files() -> list[tuple[str, bytes]]:
    """Name and bytes of what is mutated."""
    own = [("native.jsonl", NATIVE), ("table.csv", TABLE)]
    found = sorted(path for path in SAMPLES.rglob("*") if path.is_file() and path.stat().st_size < LARGEST)
    return own + [(path.name, path.read_bytes()) for path in found if path.suffix != ".md"]


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    opened = open_store("sqlite://", create=True)
    yield opened
    opened.close()


def test_a_broken_log_is_read_as_far_as_it_goes_and_breaks_nothing(store: Store, tmp_path: Path) -> None:
    chance, known = random.Random(11), files()
    for number in range(COUNT):
        name, data = chance.choice(known)
        path = tmp_path / f"{number}-{name}"
        path.write_bytes(mutated(data, chance))
        read_whole(store, path)
        path.unlink()
    with store.read() as connection:
        for table in ("traces", "spans", "feedback"):
            missing = f"SELECT count(*) FROM {table} t LEFT JOIN bodies b ON b.id = t.id WHERE b.id IS NULL"  # noqa: S608
            assert connection.execute(text(missing)).scalar_one() == 0


def read_whole(store: Store, path: Path) -> None:
    """Read a file; each record is stored, was there, or is in quarantine, or the whole file is refused with a reason.

    Read again, nothing more is stored.
    """
    options = SourceOptions(source=path.name)
    try:
        tally = ingest(store, read(path, options=options), clock=lambda: 1)
    except InputError:
        return
    assert tally.read == tally.stored + tally.duplicate + tally.quarantined, path.name
    assert tally.duplicate >= 0, path.name
    again = ingest(store, read(path, options=options), clock=lambda: 1)
    assert (again.stored, again.quarantined) == (0, tally.quarantined), path.name
