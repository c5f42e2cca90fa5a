"""The process of a schedule: one a home, known to the others, ended in order by a signal. POSIX only.

It holds a lock for life, with where it listens written inside. The kernel lets go of the lock when the process ends in
any way, so that it never needs clearing.
"""

import fcntl
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from pydantic import ValidationError

from store.errors import NotAllowed
from store.records import Record

_NAME = "schedule.lock"


class Running(Record):
    """The schedule that is running on a home."""

    pid: int
    port: int
    """Loopback port of its Prefect server."""


@contextmanager
def only_schedule(folder: Path, port: int) -> Iterator[None]:
    """Be the only schedule of `folder` for the length of the block. Raises NotAllowed when another one is."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / _NAME).open("a+", encoding="utf-8") as file:
        if not _locked(file, tries=10):
            raise NotAllowed(f"{_described(file)} is running on this home already: see `filmroom schedule list`")
        file.truncate(0)
        file.write(Running(pid=os.getpid(), port=port).model_dump_json())
        file.flush()
        yield


def running_schedule(folder: Path) -> Running | None:
    """The schedule that holds the lock of `folder` now; None: none does."""
    path = folder / _NAME
    if not path.exists():
        return None
    with path.open("a+", encoding="utf-8") as file:
        return None if _locked(file) else _read(file)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """End the block in order at SIGTERM or SIGINT: both are the ordinary end of a schedule. Main thread only."""
    before = signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(0)), signal.getsignal(signal.SIGINT)
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        return
    finally:
        signal.signal(signal.SIGTERM, before[0])
        signal.signal(signal.SIGINT, before[1])


def _locked(file: IO[str], *, tries: int = 1) -> bool:
    """Whether the lock could be taken; it is let go when `file` is closed.

    More tries than one outlast `running_schedule`, which takes the lock for an instant to see whether it is free.
    """
    for _ in range(tries):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.02)
        else:
            return True
    return False


def _read(file: IO[str]) -> Running | None:
    file.seek(0)
    try:
        return Running.model_validate_json(file.read())
    except ValidationError:
        # Its holder is between taking the lock and writing where it listens.
        return None


def _described(file: IO[str]) -> str:
    found = _read(file)
    return "a schedule" if found is None else f"a schedule (process {found.pid}, port {found.port})"
