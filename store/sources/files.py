"""Bytes and lines of a log file: gzip by its magic bytes, line numbers, what cannot be read kept as `Rejected`."""

import codecs
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast
from weakref import WeakValueDictionary

from store.errors import InputError, SourceMissing
from store.records import Rejected
from store.sources.contract import BadRecord
from store.sources.sanitise import clean_text

MAX_RECORD_BYTES = 64 * 1024 * 1024
"""Longest record that is read; a longer one is rejected alone, so that rubbish without a line end does not fill the memory."""

GZIP_MAGIC = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"
DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile)

_NO_LOGS = frozenset(
    {"db", "db-wal", "db-shm", "db-journal", "sqlite", "sqlite3", "duckdb", "mdb"}
    | {"toml", "ini", "cfg", "conf", "yaml", "yml", "env", "lock", "key", "pem", "crt", "xml"}
    | {"py", "pyc", "ipynb", "js", "ts", "sh", "bat", "exe", "dll", "so", "sql", "css", "html", "htm", "whl"}
    | {"png", "jpg", "jpeg", "gif", "webp", "svg", "ico", "bmp", "tif", "tiff", "heic"}
    | {"mp3", "mp4", "wav", "ogg", "webm", "mov", "avi", "zip", "tar", "7z", "rar", "xz", "bz2", "zst"}
    | {"pdf", "md", "rst", "doc", "docx", "xls", "xlsx", "ppt", "pptx", "odt", "ods"}
    | {"pkl", "pickle", "joblib", "skops", "pt", "pth", "onnx", "safetensors", "npy", "npz"}
)
"""Ends of names that no log has."""

_BUFFER = 1 << 18
"""Bytes read from the disk at once: lines are longer than Python's 8 KiB."""
_SKIPPED = 1 << 20
"""Bytes of a line that is too long that are held at once."""
_OPEN: "WeakValueDictionary[str, BinaryIO]" = WeakValueDictionary()
"""The file on the disk behind each path that was opened last, for whoever shows how far the reading is."""


class Line(NamedTuple):
    """One line of a file."""

    number: int
    """1-based."""
    data: bytes
    """With its line end, without a byte order mark."""


def open_bytes(path: Path) -> BinaryIO:
    """The file's bytes, decompressed where it starts with gzip's magic bytes, whatever its name.

    Raises SourceMissing where there is no such file, InputError where it cannot be opened.
    """
    try:
        stream: BinaryIO = path.open("rb", buffering=_BUFFER)
    except FileNotFoundError as error:
        raise SourceMissing(f"{path}: no such file") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be opened: {error.strerror}") from error
    magic = stream.read(2)
    stream.seek(0)
    _OPEN[str(path)] = stream
    if magic != GZIP_MAGIC:
        return stream
    unpacked = gzip.GzipFile(fileobj=stream, mode="rb")
    unpacked.myfileobj = stream  # type: ignore[assignment]  # closing it closes any file, not a FileIO alone
    return cast(BinaryIO, unpacked)


def position_of(path: Path) -> int:
    """Bytes of the file that its last reader has taken from the disk so far; 0 where nobody is reading it."""
    stream = _OPEN.get(str(path))
    return 0 if stream is None or stream.closed else stream.tell()


def files_of(path: Path) -> list[Path]:
    """The file itself, or the logs below a folder in name order, without hidden files; none where there is no such path."""
    if not path.is_dir():
        return [path] if path.exists() else []
    return [file for file in _below(path) if not _is_no_log(file)]


def skipped_in(path: Path) -> list[Path]:
    """The files below a folder that by their name are no logs: databases, settings, pictures, programs and the like."""
    return [file for file in _below(path) if _is_no_log(file)] if path.is_dir() else []


def _below(folder: Path) -> list[Path]:
    inside = ((file, file.relative_to(folder).parts) for file in folder.rglob("*") if file.is_file())
    return sorted(file for file, parts in inside if not any(part.startswith(".") for part in parts))


def _is_no_log(file: Path) -> bool:
    return file.name.lower().rpartition(".")[2] in _NO_LOGS and "." in file.name


def reject(path: Path, line: int | None, reason: str, raw: bytes | str = "") -> Rejected:
    """A piece of `path` for the quarantine. Bytes that are not UTF-8 are kept as Latin-1, which loses none of them."""
    return Rejected(
        path=str(path), line=line, reason=reason, raw=clean_text(raw if isinstance(raw, str) else _text(raw))
    )


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def read_head(path: Path, size: int) -> bytes:
    """The first `size` bytes, decompressed; fewer where the file or an intact gzip stream ends before."""
    parts: list[bytes] = []
    left = size
    with open_bytes(path) as stream:
        while left > 0:
            try:
                part = stream.read(min(left, 4096))
            except DAMAGED:
                break
            if not part:
                break
            parts.append(part)
            left -= len(part)
    return b"".join(parts).removeprefix(BOM)


def is_binary(head: bytes) -> bool:
    """Whether the beginning of a file is no text, and no Parquet: bytes that are not UTF-8, with control characters among them.

    >>> is_binary(b"a,b\\n1,caf\\xe9\\n"), is_binary(b"a\\x00,b\\n"), is_binary(b"\\x00\\xff\\x01\\x9c")
    (False, False, True)
    """
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # the last character may be cut
    except UnicodeDecodeError:
        return not head.startswith(b"PAR1") and any(byte < 9 or 13 < byte < 27 for byte in head)
    return False


def read_lines(path: Path) -> Iterator[Line | Rejected]:
    """The lines of a file in order; a line that is too long comes as `Rejected`, a damaged gzip stream ends them with one."""
    number = 0
    with open_bytes(path) as stream:
        while True:
            try:
                data = stream.readline(MAX_RECORD_BYTES)
            except DAMAGED as error:
                yield reject(path, number + 1, _damage(error))
                return
            if not data:
                return
            number += 1
            if len(data) == MAX_RECORD_BYTES and not data.endswith(b"\n"):
                yield reject(path, number, too_long("line"), data[:1000])
                if (damage := _skip_line(stream)) is not None:
                    yield reject(path, number, damage)
                    return
                continue
            yield Line(number, data.removeprefix(BOM) if number == 1 else data)


def _skip_line(stream: BinaryIO) -> str | None:
    """Leave the rest of a line unread; what is wrong with the stream, where it is damaged on the way."""
    try:
        while (data := stream.readline(_SKIPPED)) and not data.endswith(b"\n"):
            pass
    except DAMAGED as error:
        return _damage(error)
    return None


def read_chunks(path: Path, size: int = 1 << 20) -> Iterator[bytes]:
    """The file in pieces of at most `size` bytes. Raises BadRecord where a gzip stream is damaged."""
    with open_bytes(path) as stream:
        first = True
        while True:
            try:
                data = stream.read1(size) if hasattr(stream, "read1") else stream.read(size)
            except DAMAGED as error:
                raise BadRecord(_damage(error)) from error
            if not data:
                return
            yield data.removeprefix(BOM) if first else data
            first = False


def too_long(piece: str) -> str:
    """The reason for which a line, a record or a file is rejected; the beginning of it is kept."""
    return f"the {piece} is longer than {MAX_RECORD_BYTES >> 20} MiB; it was not read, and its beginning is kept"


def _damage(error: Exception) -> str:
    return f"the gzip stream is damaged or ends early ({error}); copy the file again, and read it again"
