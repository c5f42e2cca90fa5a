"""Writes what a reader yields: each record once, each change once, each reject kept with its place and reason.

A batch is in one transaction: rows, bodies and arrivals together. Batches that wait for the writer at the same time share one.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, fields

from sqlalchemy import Connection, select, text

from store.addresses import is_address
from store.bulk import digests_of, insert_rows, listed
from store.database import Clock, Store, upsert, wall_clock
from store.erasure import tombstones
from store.homes import may_be, moved_home, with_homes
from store.kinds import KINDS, Kind, Row, lay_out
from store.late import assembled_again
from store.merging import merged
from store.quarantine import keep_rejects
from store.records import AssembledTrace, Feedback, Rejected, Span, Trace
from store.redaction import KEYS_ALONE, Redactor, redacted_raw
from store.sources.registry import FORMATS
from store.tables import arrivals, bodies

BATCH = 5000
"""Records a batch at the most."""
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
    redacted: int = 0
    """Keys, tokens and what is personal, in whose place placeholders were stored."""

    def add(self, other: "Tally") -> None:
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


def ingest(
    store: Store,
    items: Iterable[Item],
    *,
    clock: Clock = wall_clock,
    redactor: Redactor = KEYS_ALONE,
    stored: Callable[[Tally], None] = lambda _tally: None,
    rejected: Callable[[Rejected], None] = lambda _reject: None,
) -> Tally:
    """Write the items in batches; `stored` is told the tally so far after each batch that is safely in the store, `rejected`
    each piece that cannot be read.
    """
    alone = ((batch,) for batch in batches(items, store.project, redactor))
    return write_batches(store, alone, clock=clock, stored=stored, rejected=rejected)


def batches(items: Iterable[Item], project: str, redactor: Redactor = KEYS_ALONE) -> "Iterator[Batch]":
    """The items in batches, each laid out for one transaction."""
    batch = Batch(project, redactor)
    for item in items:
        batch.add(item)
        if batch.is_full:
            yield batch
            batch = Batch(project, redactor)
    if batch.read:
        yield batch


def write_batches(
    store: Store,
    laid_out: "Iterable[Iterable[Batch]]",
    *,
    clock: Clock = wall_clock,
    stored: Callable[[Tally], None] = lambda _tally: None,
    rejected: Callable[[Rejected], None] = lambda _reject: None,
) -> Tally:
    """Write the batches, those that come together in one transaction; `stored` and `rejected` are told as `ingest` says."""
    total = Tally()
    for together in laid_out:
        written = Tally()
        with store.write() as connection:
            for batch in together:
                for item in batch.rejects:
                    rejected(item)
                written.add(batch.write_in(connection, clock()))
        total.add(written)
        stored(total)
    return total


class Batch:
    """Records laid out as rows, for one transaction. Records with the same id are merged."""

    def __init__(self, project: str, redactor: Redactor = KEYS_ALONE, sources: Collection[str] = FORMATS) -> None:
        self.project = project
        self.sources = sources
        """The logs in which feedback may find the trace that it calls by its name alone."""
        self.redactor = redactor
        self.read = 0
        self.redacted = 0
        self.bytes = 0
        self._rows: dict[type, dict[str, Row]] = {kind: {} for kind in KINDS}
        self.rejects: list[Rejected] = []
        self._assembled: dict[str, int] = {}
        """Traces put together from spans: of how many."""
        self._merged: set[str] = set()
        """Traces with a span that was merged with another."""
        self._addressed: list[Feedback] = []
        """Feedback that does not say which log's trace it is about."""

    @property
    def is_full(self) -> bool:
        return self.read >= BATCH or self.bytes >= BATCH_BYTES

    def add(self, item: Item) -> None:
        self.read += 1
        if isinstance(item, Rejected):
            raw, count = redacted_raw(self.redactor, item.raw)
            self.rejects.append(item.model_copy(update={"raw": raw}) if count else item)
            self.redacted += count
            self.bytes += len(item.raw)
            return
        if isinstance(item, Feedback) and is_address(item.trace_external_id):
            self._addressed.append(item)
            return
        self.bytes += len(self._lay(item).body)

    def _lay(self, record: Trace | Span | Feedback) -> Row:
        row, redacted = lay_out(record, self.project, self.redactor)
        self.redacted += redacted
        kind = Trace if isinstance(record, Trace) else type(record)
        known = self._rows[kind].get(row.id)
        if known is not None and known.digest != row.digest:
            row = merged(KINDS[kind], known, row)
            self._merged.add(row.trace_id)
        self._rows[kind][row.id] = row
        if isinstance(record, AssembledTrace):
            self._assembled[row.id] = record.span_count
        return row

    def write(self, store: Store, now_us: int) -> Tally:
        """One transaction with all of it; the tally counts as stored what was new or changed."""
        with store.write() as connection:
            return self.write_in(connection, now_us)

    def write_in(self, connection: Connection, now_us: int) -> Tally:
        """Write all of it in a transaction that others may share."""
        tally = Tally(read=self.read, quarantined=len(self.rejects))
        touched: dict[tuple[str, str], None] = {}
        _one_writer(connection, self.project)
        self._leave_out_erased(connection)
        tally.spans = self._write(connection, Span, touched)
        counts = Counter(self._span_traces())
        for trace in list(assembled_again(connection, self._assembled, counts, self._merged)):
            self._lay(trace)
        tally.traces = self._write(connection, Trace, touched)
        for given in with_homes(connection, self.project, self._addressed, self.sources):
            self._lay(given)
        tally.feedback = self._write(connection, Feedback, touched)
        self._rows[Feedback] = {}
        for given in moved_home(connection, self.project, self._rows[Span], self._rows[Trace], self.sources):
            self._lay(given)
        self._write(connection, Feedback, touched)
        _append_arrivals(connection, self.project, list(touched), now_us)
        keep_rejects(connection, self.project, self.rejects, now_us)
        tally.redacted = self.redacted
        tally.stored = tally.traces + tally.spans + tally.feedback
        tally.duplicate = tally.read - tally.stored - tally.quarantined
        return tally

    def _write(self, connection: Connection, kind: type, touched: dict[tuple[str, str], None]) -> int:
        """Write the rows of one kind; returns how many were new or changed."""
        changed = _write_kind(connection, self.project, KINDS[kind], self._rows[kind], self._merged)
        touched.update({(KINDS[kind].name, trace_id): None for trace_id in changed})
        return len(changed)

    def _leave_out_erased(self, connection: Connection) -> None:
        """What is said of traces that were erased is not stored again."""
        told = {row.trace_id for rows in self._rows.values() for row in rows.values()}
        meant = [(each, may_be(self.project, each.trace_external_id, self.sources)) for each in self._addressed]
        gone = tombstones(connection, self.project, told.union(*(ids for _, ids in meant)))
        self._addressed = [each for each, ids in meant if not ids & gone]
        for kind, rows in self._rows.items() if gone else ():
            self._rows[kind] = {id_: row for id_, row in rows.items() if row.trace_id not in gone}
        self._assembled = {id_: count for id_, count in self._assembled.items() if id_ not in gone}

    def _span_traces(self) -> Iterable[str]:
        """The trace of each span here, where it matters."""
        return (row.trace_id for row in self._rows[Span].values()) if self._assembled else ()


def _write_kind(connection: Connection, project: str, kind: Kind, rows: dict[str, Row], met: set[str]) -> list[str]:
    """Insert the rows, or merge them with what is known; returns the trace id of each that was new or changed.

    `rows` then has what is stored; `met` takes the traces of rows that met another of their id.
    """
    known = digests_of(connection, kind.table, rows)
    fresh = [row for row in rows.values() if row.id not in known]
    stale = [row for row in rows.values() if row.id in known and known[row.id] != row.digest]
    columns = (*kind.columns, "id", "digest")
    insert_rows(connection, kind.table, columns, [(*row.values, row.id, row.digest) for row in fresh])
    insert_rows(connection, bodies, ("id", "project", "data"), [(row.id, project, row.body) for row in fresh])
    changed = _merge(connection, kind, stale) if stale else []
    met.update(row.trace_id for row in stale)
    for row in changed:
        values = dict(zip(columns, (*row.values, row.id, row.digest), strict=True))
        connection.execute(kind.table.update().where(kind.table.c.id == row.id).values(values))
        upsert(connection, bodies, {"id": row.id, "project": project, "data": row.body})
        rows[row.id] = row
    return [row.trace_id for row in fresh + changed]


def _merge(connection: Connection, kind: Kind, rows: list[Row]) -> list[Row]:
    """The rows merged with those that are stored under their ids; those that say nothing new are left out."""
    columns = [kind.table.c[name] for name in kind.columns]
    ids = listed(connection, [row.id for row in rows])
    statement = (
        select(kind.table.c.id, kind.table.c.digest, bodies.c.data, *columns)
        .outerjoin(bodies, bodies.c.id == kind.table.c.id)
        .where(kind.table.c.id.in_(ids))
    )
    known = {row[0]: row for row in connection.execute(statement)}
    changed = []
    for row in rows:
        id_, digest, body, *values = known[row.id]
        stored = Row(id_, row.trace_id, tuple(values), digest, body or b"")
        together = merged(kind, stored, row)
        if together.digest != digest:
            changed.append(together)
    return changed


def _one_writer(connection: Connection, project: str) -> None:
    """Wait for this project's other writers: on PostgreSQL by a lock, on SQLite there is one by nature."""
    if connection.dialect.name == "postgresql":
        key = {"key": "filmroom arrivals " + project}
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext(:key))"), key)


def _append_arrivals(connection: Connection, project: str, touched: list[tuple[str, str]], now_us: int) -> None:
    """Number the touched traces in commit order; the caller is the one writer of the project."""
    if not touched:
        return
    rows = [(project, kind, trace_id, now_us) for kind, trace_id in touched]
    insert_rows(connection, arrivals, ("project", "kind", "trace_id", "at_us"), rows)
