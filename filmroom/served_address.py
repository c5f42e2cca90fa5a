"""Where this project's console is served now, for those who print a link to it. POSIX only.

The server keeps a lock on a file with its address inside for as long as it lives; the kernel lets go of it however the
server ends.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NAME = "console.address"


@contextmanager
def served_at(home: Path, url: str) -> Iterator[None]:
    """Say within the block that the console of this home is at `url`; a second server on one home keeps silent."""
    path = _path(home)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield
            return
        file.truncate(0)
        file.write(url)
        file.flush()
        yield


def served_address(home: Path) -> str | None:
    """The address of the console that runs on this home; None: none does."""
    path = _path(home)
    if not path.exists():
        return None
    with path.open(encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return file.read() or None
    return None


def _path(home: Path) -> Path:
    return home / ".filmroom" / _NAME
