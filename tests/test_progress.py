"""The numbers that the progress bar of an import is told: bytes of the file, compressed ones where it is compressed."""

import contextlib
import gzip
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from filmroom.commands import ingest as command
from filmroom.main import main
from store import ingest, reading_apart
from store.sources import files

TRACES = 600


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[list[int | None], list[int]]:
    """The ends and the advances of the bars that a command in an empty folder shows."""
    totals, advances = list[int | None](), list[int]()

    @contextlib.contextmanager
    def bar(_label: str, total: int | None) -> Iterator[Callable[[int], None]]:
        totals.append(total)
        yield advances.append

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "progress", bar)
    return totals, advances


def log() -> bytes:
    """Traces that barely compress."""
    chance = random.Random(1)
    lines = ({"type": "trace", "id": str(n), "input": chance.randbytes(500).hex()} for n in range(TRACES))
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


@pytest.mark.parametrize("name", ["log.jsonl", "log.jsonl.gz"])
def test_the_bar_is_as_far_as_the_file_is_read(
    told: tuple[list[int | None], list[int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    file = tmp_path / name
    file.write_bytes(gzip.compress(log(), 1) if name.endswith("gz") else log())
    monkeypatch.setattr(files, "_BUFFER", 4096)
    monkeypatch.setattr(ingest, "BATCH", 60)
    assert main(["ingest", name, "--json"]) == 0
    totals, advances = told
    size = file.stat().st_size
    assert (totals, sum(advances)) == ([size], size)
    shares = [sum(advances[: n + 1]) / size for n in range(TRACES // 60)]
    assert shares == pytest.approx([(n + 1) / 10 for n in range(10)], abs=0.05)


def test_the_bar_of_a_file_that_another_process_reads_ends_at_its_end(
    told: tuple[list[int | None], list[int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "log.jsonl").write_bytes(log())
    monkeypatch.setattr(reading_apart, "WORTH_BYTES", 1)
    assert main(["ingest", "log.jsonl", "--json"]) == 0
    totals, advances = told
    assert totals == [sum(advances)] == [(tmp_path / "log.jsonl").stat().st_size]
    assert min(advances) >= 0
