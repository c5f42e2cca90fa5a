"""Writes what a reader yields: each record once, each change once, each reject kept with its place and reason.

A batch is one transaction: rows, bodies and arrivals together.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from hashlib import blake2b
from operator import attrgetter
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table, func, select, text

from store.bodies import encode, json_bytes, pack
from store.bulk import digests_of, insert_rows
from store.database import Clock, Store, insert_or_ignore, wall_clock
from store.records import Feedback, Rejected, Span, Trace, derived_id
from store.tables import arrivals, bodies, feedback, quarantine, spans, traces

BATCH = 5000
"""Records a transaction at the most."""
BATCH_BYTES = 16 * 1024 * 1024
"""Bytes of bodies, compressed, that end a batch early: it is held in memory."""

Item = Trace | Span | Feedback | Rejected


@dataclass
class Tally:
    """What became of the input. `read` = `stored` + `duplicate` + `quarantined`."""

    read: int = 0
    stored: int = 0
    """New or changed records."""
    duplicate: int = 0
    """Records that were there already, word for word."""
    quarantined: int = 0
    traces: int = 0
    spans: int = 0
    feedback: int = 0

    def add(self, other: "Tally") -> None:
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


@dataclass
class _Kind:
    """How one kind of record is laid into its table and its body."""

    name: str
    table: Table
    text: tuple[str, ...]
    """Fields that go to the body."""
    columns: tuple[str, ...] = field(init=False)
    values: Callable[[Any], tuple[Any, ...]] = field(init=False)
    """A record's values in the order of `columns`."""
    texts: Callable[[Any], tuple[Any, ...]] = field(init=False)
    """A record's values in the order of `text`."""

    def __post_init__(self) -> None:
        self.columns = tuple(column.name for column in self.table.columns if column.name not in {"id", "digest"})
        self.values = attrgetter(*self.columns)
        self.texts = attrgetter(*self.text)


KINDS: dict[type, _Kind] = {
    Trace: _Kind("trace", traces, ("input", "output", "error", "attributes", "held_apart")),
    Span: _Kind("span", spans, ("input", "output", "error", "documents", "memories", "attributes")),
    Feedback: _Kind("feedback", feedback, ("comment", "corrected_output", "attributes")),
}


def ingest(
    store: Store,
    items: Iterable[Item],
    *,
    clock: Clock = wall_clock,
    stored: Callable[[Tally], None] = lambda _tally: None,
) -> Tally:
    """Write the items in batches; `stored` is told the tally so far after each batch that is safely in the store."""
    total = Tally()
    batch = Batch(store.project)
    for item in items:
        batch.add(item)
        if batch.is_full:
            total.add(batch.write(store, clock()))
            stored(total)
            batch = Batch(store.project)
    if batch.read:
        total.add(batch.write(store, clock()))
        stored(total)
    return total


class Batch:
    """Records laid out as rows, for one transaction. Of records with the same id the last wins."""

    def __init__(self, project: str) -> None:
        self.project = project
        self.read = 0
        self.bytes = 0
        self._rows: dict[type, dict[str, _Row]] = {kind: {} for kind in KINDS}
        self._rejects: list[Rejected] = []

    @property
    def is_full(self) -> bool:
        return self.read >= BATCH or self.bytes >= BATCH_BYTES

    def add(self, item: Item) -> None:
        self.read += 1
        if isinstance(item, Rejected):
            self._rejects.append(item)
            self.bytes += len(item.raw)
            return
        row = _lay_out(KINDS[type(item)], item, self.project)
        self._rows[type(item)][row.id] = row
        self.bytes += len(row.body)

    def write(self, store: Store, now_us: int) -> Tally:
        """One transaction with all of it; the tally counts as stored what was new or changed."""
        tally = Tally(read=self.read, quarantined=len(self._rejects))
        with store.write() as connection:
            touched: dict[tuple[str, str], None] = {}
            for kind, rows in self._rows.items():
                changed = _write_kind(connection, self.project, KINDS[kind], rows)
                setattr(tally, "feedback" if kind is Feedback else KINDS[kind].name + "s", len(changed))
                touched.update({(KINDS[kind].name, trace_id): None for trace_id in changed})
                tally.stored += len(changed)
            _append_arrivals(connection, self.project, list(touched), now_us)
            _keep_rejects(connection, self.project, self._rejects, now_us)
        tally.duplicate = tally.read - tally.stored - tally.quarantined
        return tally


class _Row(NamedTuple):
    """One record as it is stored."""

    id: str
    trace_id: str
    values: tuple[Any, ...]
    """In the order of its kind's columns."""
    digest: str
    body: bytes


def _write_kind(connection: Connection, project: str, kind: _Kind, rows: dict[str, _Row]) -> list[str]:
    """Insert or update the rows; returns the trace id of each that was new or changed."""
    known = digests_of(connection, kind.table, rows)
    fresh = [row for row in rows.values() if row.id not in known]
    stale = [row for row in rows.values() if row.id in known and known[row.id] != row.digest]
    columns = (*kind.columns, "id", "digest")
    insert_rows(connection, kind.table, columns, [(*row.values, row.id, row.digest) for row in fresh])
    insert_rows(connection, bodies, ("id", "project", "data"), [(row.id, project, row.body) for row in fresh])
    for row in stale:
        values = dict(zip(columns, (*row.values, row.id, row.digest), strict=True))
        connection.execute(kind.table.update().where(kind.table.c.id == row.id).values(values))
        connection.execute(bodies.update().where(bodies.c.id == row.id).values(data=row.body))
    return [row.trace_id for row in fresh + stale]


def _lay_out(kind: _Kind, record: Any, project: str) -> _Row:
    if record.project != project:
        record = record.model_copy(update={"project": project})
    values = kind.values(record)
    texts = zip(kind.text, kind.texts(record), strict=True)
    body = json_bytes({name: value for name, value in texts if value not in (None, {}, ())})
    digest = blake2b(repr(values).encode("utf-8", "surrogatepass") + body, digest_size=10).hexdigest()
    id_ = record.id
    return _Row(id_, id_ if kind.table is traces else record.trace_id, values, digest, pack(body))


def _append_arrivals(connection: Connection, project: str, touched: list[tuple[str, str]], now_us: int) -> None:
    """Number the touched traces in commit order: on PostgreSQL a lock per project, on SQLite there is one writer."""
    if not touched:
        return
    if connection.dialect.name == "postgresql":
        connection.execute(
            text("SELECT pg_advisory_xact_lock(hashtext(:key))"), {"key": "filmroom arrivals " + project}
        )
    rows = [(project, kind, trace_id, now_us) for kind, trace_id in touched]
    insert_rows(connection, arrivals, ("project", "kind", "trace_id", "at_us"), rows)


def _keep_rejects(connection: Connection, project: str, rejects: list[Rejected], now_us: int) -> None:
    rows, raw = [], []
    for reject in rejects:
        id_ = derived_id("qua", project, reject.path, str(reject.line), reject.raw)
        rows.append(
            {
                "id": id_,
                "project": project,
                "path": reject.path,
                "line": reject.line,
                "reason": reject.reason,
                "at_us": now_us,
            }
        )
        raw.append({"id": id_, "project": project, "data": encode(reject.raw)})
    insert_or_ignore(connection, quarantine, rows)
    insert_or_ignore(connection, bodies, raw)


def quarantined(store: Store, limit: int = 100) -> list[dict[str, Any]]:
    """The newest rejected pieces: path, line, reason."""
    with store.read() as connection:
        statement = (
            select(quarantine.c.path, quarantine.c.line, quarantine.c.reason)
            .where(quarantine.c.project == store.project)
            .order_by(quarantine.c.at_us.desc(), quarantine.c.path, quarantine.c.line)
            .limit(limit)
        )
        return [dict(row._mapping) for row in connection.execute(statement)]


def quarantine_size(connection: Connection, project: str) -> int:
    """How many pieces of input wait in quarantine."""
    return connection.execute(
        select(func.count()).select_from(quarantine).where(quarantine.c.project == project)
    ).scalar_one()
