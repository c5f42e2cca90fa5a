"""How far the reading of a log is, in bytes on the disk: of a compressed file, of its compressed bytes."""

from pathlib import Path

from store.sources.files import files_of, position_of


class Meter:
    """Follows the reading of a file or a folder. Given to `store.sources.read`, asked by whoever shows progress."""

    def __init__(self, path: Path) -> None:
        self._sizes = {file: file.stat().st_size for file in files_of(path)}
        self._done = 0
        self._file: Path | None = None
        self._told = 0
        self._elsewhere: int | None = None

    @property
    def total(self) -> int:
        """Bytes of all its files."""
        return sum(self._sizes.values())

    def begin(self, file: Path) -> None:
        """The reading has come to this file; the one before is done."""
        self._done += self._sizes.get(self._file, 0) if self._file else 0
        self._file = file

    def end(self) -> None:
        """Everything has been read."""
        self._done, self._file = self.total, None

    def told(self, position: int) -> None:
        """The reading is done elsewhere, and has come so far."""
        self._elsewhere = position

    def position(self) -> int:
        """Bytes read so far."""
        if self._elsewhere is not None:
            return self._elsewhere
        here = self._sizes.get(self._file, 0) if self._file else 0
        return self._done + min(position_of(self._file) if self._file else 0, here)

    def advanced(self) -> int:
        """Bytes read since it was last asked."""
        before, self._told = self._told, self.position()
        return self._told - before
