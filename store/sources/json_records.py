"""The JSON objects of a file, one at a time: JSONL, one array, or documents one after the other; in constant memory.

Documents are cut at their brackets before they are parsed, so that a broken one is rejected by itself, with its line.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue

from store.records import Rejected
from store.sources.contract import BadRecord, Item, Sample
from store.sources.files import MAX_RECORD_BYTES, Line, read_chunks, read_head, read_lines, reject, too_long
from store.sources.sanitise import parse_json

HEAD_BYTES = 64 * 1024
_SAMPLE_VALUES = 20
_SAMPLE_BYTES = 4 * 1024 * 1024

_BETWEEN = b" \t\r\n,"

_NEXT_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+([\[\]{}])', re.DOTALL)
"""Up to the next bracket outside a string; no match where a string does not end in what has been read."""


_OUTSIDE = re.compile(rb'(?:[^"\[\]{}]++|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+', re.DOTALL)
"""Up to a bracket, or to a string that does not end in what has been read."""


class JsonRecord(NamedTuple):
    """One JSON object and where it stands."""

    line: int
    """1-based line where it starts."""
    value: dict[str, JsonValue]
    data: bytes
    """As it stands in the file."""


def json_records(path: Path) -> Iterator[JsonRecord | Rejected]:
    """The JSON objects of a file in order; what is none comes as `Rejected` and the rest goes on."""
    for piece in _pieces(path, read_head(path, HEAD_BYTES)):
        if isinstance(piece, Rejected):
            yield piece
            continue
        try:
            value = parse_json(piece.data)
        except BadRecord as error:
            yield reject(path, piece.number, str(error), piece.data)
            continue
        if not isinstance(value, dict):
            yield reject(path, piece.number, "not a JSON object", piece.data)
            continue
        yield JsonRecord(piece.number, value, piece.data)


def read_objects(path: Path, build: Callable[[JsonRecord], Iterable[Item]]) -> Iterator[Item]:
    """What `build` makes of each JSON object of a file; a record it refuses with BadRecord is rejected as a whole."""
    for record in json_records(path):
        if isinstance(record, Rejected):
            yield record
            continue
        try:
            items = tuple(build(record))
        except BadRecord as error:
            yield reject(path, record.line, str(error), record.data)
            continue
        yield from items


def take_sample(path: Path) -> Sample:
    """The beginning of a file, for recognising its format; what cannot be read there is left out."""
    head = read_head(path, HEAD_BYTES)
    name = path.name.lower().removesuffix(".gz")
    return Sample(path, head, Path(name).suffix, tuple(_sample_values(path, head)))


def _sample_values(path: Path, head: bytes) -> Iterator[JsonValue]:
    if head.lstrip()[:1] not in (b"{", b"["):
        return
    size = 0
    for piece in islice(_pieces(path, head), _SAMPLE_VALUES):
        if isinstance(piece, Rejected):
            continue
        try:
            yield parse_json(piece.data)
        except BadRecord:
            continue
        size += len(piece.data)
        if size > _SAMPLE_BYTES:
            return


def _pieces(path: Path, head: bytes) -> Iterator[Line | Rejected]:
    if _is_lines(head):
        return (piece for piece in read_lines(path) if isinstance(piece, Rejected) or piece.data.strip())
    return _documents(path)


def _is_lines(head: bytes) -> bool:
    """Whether each line is a record: the first is, or a later one at the left edge is (then the first is broken)."""
    lines = [line for line in head.split(b"\n")[:_SAMPLE_VALUES] if line.strip()]
    if not lines or lines[0].lstrip().startswith(b"["):
        return False
    if len(lines) == 1 or not lines[0].lstrip().startswith(b"{"):
        return True
    return any(line.startswith(b"{") and _is_object(line) for line in lines)


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(parse_json(line), dict)
    except BadRecord:
        return False


def _documents(path: Path) -> Iterator[Line | Rejected]:
    """The elements of top-level arrays and the top-level objects between them, cut at balanced brackets."""
    cutter = _Cutter()
    try:
        for chunk in read_chunks(path):
            yield from cutter.feed(chunk)
            if len(cutter.rest) > MAX_RECORD_BYTES:
                if not cutter.skipping:
                    yield reject(path, cutter.line, too_long("record"), cutter.rest[:1000])
                cutter.skip()
    except BadRecord as error:
        yield reject(path, cutter.line, str(error), cutter.rest)
        return
    if not cutter.complete:
        yield reject(path, cutter.line, "not JSON: it ends before it is closed, the file may be cut off", cutter.rest)


class _Cutter:
    """Cuts a stream of bytes into JSON records, and holds what is not complete yet."""

    def __init__(self) -> None:
        self.rest = b""
        self.line = 1
        """Line of the first byte of `rest`."""
        self._scanned = 0
        self._start = 0
        """Where the next record, or what stands between records, begins."""
        self._counted = 0
        """Up to here line ends are in `line`."""
        self._depth = 0
        self._base = 0
        """1 inside a top-level array, whose elements are the records; else 0."""
        self.skipping = False
        """Whether the record at hand is not wanted."""

    @property
    def complete(self) -> bool:
        """Whether nothing is held and every bracket is closed."""
        return not self.rest and self._base == 0

    def feed(self, chunk: bytes) -> list[Line]:
        """The records that `chunk` completes, and whatever else stands between them."""
        self.rest += chunk
        cuts: list[tuple[int, int]] = []
        while found := _NEXT_BRACKET.match(self.rest, self._scanned):
            self._scanned = found.end()
            if found.group(1) in b"[{":
                cuts += self._opened(found.group(1), found.end() - 1)
            else:
                cuts += self._closed(found.end() - 1)
        lines = [line for start, end in cuts if (line := self._piece(start, end)) is not None]
        self._drop()
        return lines

    def skip(self) -> None:
        """Leave the record at hand out, and hold no more of it than how it stands: inside a string, after a backslash."""
        self.skipping = True
        self._line_at(len(self.rest))
        outside = _OUTSIDE.match(self.rest, self._scanned)
        inside = self.rest[outside.end() + 1 :] if outside and outside.end() < len(self.rest) else None
        backslashes = len(inside) - len(inside.rstrip(b"\\")) if inside else 0
        self.rest = b"" if inside is None else b'"' + b"\\" * (backslashes % 2)
        self._start = self._scanned = self._counted = 0

    def _opened(self, bracket: bytes, at: int) -> list[tuple[int, int]]:
        outside = self._depth == self._base
        self._depth += 1
        if not outside:
            return []
        before = [] if self.skipping else [(self._start, at)]
        self.skipping = False
        self._start = at
        if bracket == b"[" and self._base == 0:
            self._base = 1
            self._start = at + 1
        return before

    def _closed(self, at: int) -> list[tuple[int, int]]:
        self._depth -= 1
        if self._depth > self._base:
            return []
        end = at + 1 if self._depth == self._base else at
        piece = (self._start, end)
        self._start = at + 1
        if self._depth < self._base:
            self._base = 0
        self._depth = max(self._depth, self._base)
        if self.skipping:
            self.skipping = False
            return []
        return [piece]

    def _piece(self, start: int, end: int) -> Line | None:
        """The bytes between the two offsets without the commas and spaces around them; None: there is nothing else."""
        kept = self.rest[start:end].lstrip(_BETWEEN)
        if not kept:
            return None
        return Line(self._line_at(end - len(kept)), kept.rstrip(_BETWEEN))

    def _line_at(self, offset: int) -> int:
        """The line of `offset`, which only ever grows between two calls."""
        self.line += self.rest.count(b"\n", self._counted, offset)
        self._counted = offset
        return self.line

    def _drop(self) -> None:
        kept = self.rest[self._start :]
        if self._depth == self._base:
            kept = kept.lstrip(_BETWEEN)
        dropped = len(self.rest) - len(kept)
        self._line_at(dropped)
        self.rest = kept
        self._scanned = max(self._scanned - dropped, 0)
        self._start = self._counted = 0
