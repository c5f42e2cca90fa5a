"""Records of one trace brought together, however far apart they stand in a file, in bounded memory.

Exports of steps come one step a line, in the order of the steps. What does not fit into memory waits in a temporary
SQLite file (in SQLITE_TMPDIR, TMPDIR or /var/tmp), which is gone when the reading ends.
"""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import orjson
from pydantic import JsonValue

from store.records import Rejected
from store.sources.contract import BadRecord, Item
from store.sources.files import reject
from store.sources.json_records import JsonRecord
from store.sources.sanitise import parse_json

MEMORY_BYTES = 16 * 1024 * 1024
"""Bytes of records that wait in memory; beyond them all wait on disk."""
_MOST = 100_000
"""Records of one trace that are put together; more are read in several parts."""


class Grouping(NamedTuple):
    """How the records of a file become items."""

    alone: Callable[[JsonRecord], Iterable[Item] | None]
    """What a record is by itself; None: it waits for the others of its trace."""
    key_of: Callable[[JsonRecord], str]
    """The trace that a record which waits belongs to."""
    together: Callable[[list[JsonRecord]], Iterable[Item]]
    """What the records of one trace are."""


def read_grouped(path: Path, records: Iterable[JsonRecord | Rejected], grouping: Grouping) -> Iterator[Item]:
    """The records that stand alone as they come, then those of each trace together.

    A record or a trace that is refused with BadRecord is rejected as a whole.
    """
    with closing(_Waiting()) as waiting:
        for record in records:
            if isinstance(record, Rejected):
                yield record
                continue
            try:
                items = grouping.alone(record)
                if items is None:
                    waiting.add(grouping.key_of(record), record)
                    continue
                items = tuple(items)
            except BadRecord as error:
                yield reject(path, record.line, str(error), record.data)
                continue
            yield from items
        for group in waiting.groups():
            try:
                items = tuple(grouping.together(group))
            except BadRecord as error:
                yield reject(path, group[0].line, str(error), b"\n".join(record.data for record in group))
                continue
            yield from items


class _Waiting:
    """Records by key, in memory or on disk."""

    def __init__(self) -> None:
        self._held: list[tuple[str, JsonRecord]] = []
        self._size = 0
        self._database: sqlite3.Connection | None = None

    def add(self, key: str, record: JsonRecord) -> None:
        self._held.append((key, record))
        self._size += len(record.data)
        if self._size > MEMORY_BYTES:
            self._spill()

    def groups(self) -> Iterator[list[JsonRecord]]:
        if self._database is None:
            by_key: dict[str, list[JsonRecord]] = {}
            for key, record in self._held:
                by_key.setdefault(key, []).append(record)
            yield from by_key.values()
            return
        self._spill()
        yield from self._groups_on_disk(self._database)

    def _groups_on_disk(self, database: sqlite3.Connection) -> Iterator[list[JsonRecord]]:
        database.execute("CREATE INDEX by_key ON held (key, number)")
        group: list[JsonRecord] = []
        current: str | None = None
        for key, line, data in database.execute("SELECT key, line, data FROM held ORDER BY key, number"):
            if group and (key != current or len(group) >= _MOST):
                yield group
                group = []
            current = key
            value = _again(data)
            group.append(JsonRecord(line, value if isinstance(value, dict) else {}, data))
        if group:
            yield group

    def _spill(self) -> None:
        if self._database is None:
            self._database = sqlite3.connect("", isolation_level=None)  # a file without a name: a kill leaves nothing
            self._database.execute("PRAGMA journal_mode = OFF")
            self._database.execute("PRAGMA synchronous = OFF")
            self._database.execute("CREATE TABLE held (number INTEGER PRIMARY KEY, key TEXT, line INTEGER, data BLOB)")
        rows = ((key, record.line, record.data) for key, record in self._held)
        self._database.execute("BEGIN")
        self._database.executemany("INSERT INTO held (key, line, data) VALUES (?, ?, ?)", rows)
        self._database.execute("COMMIT")
        self._held, self._size = [], 0

    def close(self) -> None:
        self._held = []
        if self._database is not None:
            self._database.close()


def _again(data: bytes) -> JsonValue:
    """What has been read once: quickly, unless it holds what only the careful reader mends."""
    try:
        value: JsonValue = orjson.loads(data) if b"\\u" not in data else parse_json(data)
    except orjson.JSONDecodeError:
        return parse_json(data)
    return value
