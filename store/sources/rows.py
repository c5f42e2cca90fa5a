"""The rows of a table: CSV and TSV with true line numbers, JSONL and JSON arrays; a row that does not fit is rejected."""

import csv
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue

from store.errors import InputError
from store.records import Rejected
from store.sources.contract import BadRecord, Sample
from store.sources.files import MAX_RECORD_BYTES, Line, read_lines, reject
from store.sources.json_records import json_records
from store.sources.sanitise import clean_text, decode_utf8

_MAX_LINES = 10_000
"""Lines one quoted cell may span; more mean a quote that was never closed."""
_DELIMITERS = ",\t;|"
_HEADER_LINES = 100

csv.field_size_limit(MAX_RECORD_BYTES)


class Row(NamedTuple):
    """One row of a table."""

    line: int
    """1-based line where it starts."""
    cells: dict[str, JsonValue]
    """By column; a cell of CSV is a text."""
    data: bytes
    """As it stands in the file."""


def is_table(sample: Sample) -> bool:
    """Whether rows can be read of it: JSON objects, or text that is not JSON with a header of two columns or more."""
    return bool(sample.objects) or len(header_of(sample)) > 1


def header_of(sample: Sample) -> list[str]:
    """The columns of a CSV or TSV file; empty where it is neither."""
    first = sample.head.lstrip().split(b"\n", 1)[0]
    if first[:1] in (b"{", b"[") or b"\0" in first:
        return []
    lines = [_lenient(line) for line in sample.head.splitlines(keepends=True)[:_HEADER_LINES]]
    try:
        return next((cells for cells in csv.reader(lines, delimiter=_delimiter(sample), strict=True) if cells), [])
    except csv.Error:
        return []


def read_rows(path: Path, sample: Sample) -> Iterator[Row | Rejected]:
    """The rows in order, each with its line. Raises InputError where there is no header."""
    if sample.objects:
        for record in json_records(path):
            yield record if isinstance(record, Rejected) else Row(record.line, record.value, record.data)
        return
    header = header_of(sample)
    if not header:
        raise InputError(f"{path}: neither JSON nor a table with a header line")
    yield from _csv_rows(path, [clean_text(name.strip()) for name in header], _delimiter(sample))


def _delimiter(sample: Sample) -> str:
    """Tab for `.tsv`, else the one that occurs most in the first line."""
    if sample.suffix == ".tsv":
        return "\t"
    first = sample.head.lstrip().split(b"\n", 1)[0].decode("latin-1")
    return max(_DELIMITERS, key=first.count)


def _lenient(line: bytes) -> str:
    try:
        return decode_utf8(line)
    except BadRecord:
        return line.decode("latin-1")


def _csv_rows(path: Path, header: list[str], delimiter: str) -> Iterator[Row | Rejected]:
    """The rows below the header. Where a quote is broken, only the line it begins in is rejected, and the next ones are read."""
    feed = _Feed(path)
    rows = csv.reader(feed, delimiter=delimiter, strict=True)
    below_header = False
    while True:
        try:
            cells = next(rows, None)
            feed.check(cells, header if below_header else None)
        except csv.Error as error:
            first = feed.take_back()
            yield reject(path, first.number, f"broken CSV row: {error}", first.data)
            rows = csv.reader(feed, delimiter=delimiter, strict=True)
            continue
        yield from feed.take_rejected()
        if cells is None:
            return
        lines, wrong = feed.take_row()
        if cells and below_header:
            yield _row(path, header, cells, lines, wrong)
        below_header = below_header or bool(cells)


def _row(path: Path, header: list[str], cells: list[str], lines: list[Line], wrong: str | None) -> Row | Rejected:
    line, data = lines[0].number, b"".join(each.data for each in lines)
    if wrong is None and len(cells) != len(header):
        wrong = f"{len(cells)} cells, and the header has {len(header)}"
    if wrong is not None:
        return reject(path, line, wrong, data)
    return Row(line, dict(zip(header, map(clean_text, cells), strict=True)), data)


class _Feed(Iterator[str]):
    """Lines for `csv.reader`, which remembers those of the row at hand, so that they can be counted or given back."""

    def __init__(self, path: Path) -> None:
        self._source = read_lines(path)
        self._again: deque[Line] = deque()
        self._taken: list[Line] = []
        self._wrong: str | None = None
        self._rejected: list[Rejected] = []

    def __next__(self) -> str:
        if len(self._taken) >= _MAX_LINES:
            raise csv.Error(f"a quote is not closed within {_MAX_LINES} lines")
        line = self._again.popleft() if self._again else self._next_line()
        self._taken.append(line)
        try:
            return decode_utf8(line.data)
        except BadRecord as error:
            self._wrong = str(error)
            return line.data.decode("latin-1")

    def _next_line(self) -> Line:
        for piece in self._source:
            if isinstance(piece, Line):
                return piece
            self._rejected.append(piece)
        raise StopIteration

    def check(self, cells: list[str] | None, header: list[str] | None) -> None:
        """Raises csv.Error where a row of several lines does not fit the header: a stray quote joined them."""
        if cells and header and len(self._taken) > 1 and len(cells) != len(header):
            raise csv.Error(f"a quote joins {len(self._taken)} lines to {len(cells)} cells")

    def take_rejected(self) -> list[Rejected]:
        """Pieces that are no lines, such as the end of a damaged gzip stream."""
        rejected, self._rejected = self._rejected, []
        return rejected

    def take_row(self) -> tuple[list[Line], str | None]:
        """The lines of the row just read and, where they are not UTF-8, what is wrong with them."""
        lines, wrong = self._taken, self._wrong
        self._taken, self._wrong = [], None
        return lines, wrong

    def take_back(self) -> Line:
        """The first line of the row that failed; the lines after it will be read again."""
        first, *later = self._taken
        self._again.extendleft(reversed(later))
        self._taken, self._wrong = [], None
        return first
