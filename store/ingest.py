"""Writes what a reader yields: each record once, each change once, each reject kept with its place and reason.

A batch is one transaction: rows, bodies and arrivals together.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from hashlib import blake2b
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Table, bindparam, func, insert, select, text

from store.bodies import encode, in_parts
from store.database import Clock, Store, insert_or_ignore, wall_clock
from store.records import Feedback, Rejected, Span, Trace, derived_id
from store.tables import arrivals, bodies, feedback, quarantine, spans, traces

BATCH = 2000
"""Records a transaction."""

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

    def __post_init__(self) -> None:
        self.columns = tuple(column.name for column in self.table.columns if column.name not in {"id", "digest"})


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
    batches = iter(items)
    while batch := list(islice(batches, BATCH)):
        total.add(_write(store, batch, clock()))
        stored(total)
    return total


def _write(store: Store, batch: list[Item], now_us: int) -> Tally:
    tally = Tally(read=len(batch))
    with store.write() as connection:
        touched: dict[tuple[str, str], None] = {}
        for kind in KINDS:
            records = [item for item in batch if type(item) is kind]
            changed = _write_kind(connection, store.project, KINDS[kind], records)
            tally.stored += len(changed)
            tally.duplicate += len(records) - len(changed)
            setattr(tally, "feedback" if kind is Feedback else KINDS[kind].name + "s", len(changed))
            touched.update({(KINDS[kind].name, trace_id): None for trace_id in changed})
        _append_arrivals(connection, store.project, list(touched), now_us)
        rejects = [item for item in batch if isinstance(item, Rejected)]
        tally.quarantined = len(rejects)
        _keep_rejects(connection, store.project, rejects, now_us)
    return tally


def _write_kind(connection: Connection, project: str, kind: _Kind, records: list[Any]) -> list[str]:
    """Insert or update the records; returns the trace id of each that was new or changed (the last of equal ids wins)."""
    rows: dict[str, tuple[dict[str, Any], bytes]] = {}
    for record in records:
        row, body = _lay_out(kind, record, project)
        rows[row["id"]] = (row, body)
    known = _digests(connection, kind.table, list(rows))
    fresh = [pair for id_, pair in rows.items() if id_ not in known]
    stale = [pair for id_, pair in rows.items() if id_ in known and known[id_] != pair[0]["digest"]]
    if fresh:
        connection.execute(insert(kind.table), [row for row, _ in fresh])
        connection.execute(insert(bodies), [_body_row(row, body) for row, body in fresh])
    for row, body in stale:
        connection.execute(kind.table.update().where(kind.table.c.id == row["id"]).values(row))
        connection.execute(bodies.update().where(bodies.c.id == row["id"]).values(data=body))
    return [row["id"] if kind.table is traces else row["trace_id"] for row, _ in fresh + stale]


def _lay_out(kind: _Kind, record: Any, project: str) -> tuple[dict[str, Any], bytes]:
    if record.project != project:
        record = record.model_copy(update={"project": project})
    row = {name: getattr(record, name) for name in kind.columns}
    body = encode({name: value for name in kind.text if (value := getattr(record, name)) not in (None, {}, ())})
    digest = blake2b(repr(tuple(row.values())).encode("utf-8", "surrogatepass"), digest_size=10)
    digest.update(body)
    row["id"] = record.id
    row["digest"] = digest.hexdigest()
    return row, body


def _body_row(row: dict[str, Any], body: bytes) -> dict[str, Any]:
    return {"id": row["id"], "project": row["project"], "data": body}


def _digests(connection: Connection, table: Table, ids: list[str]) -> dict[str, str]:
    statement = select(table.c.id, table.c.digest).where(table.c.id.in_(bindparam("ids", expanding=True)))
    found: dict[str, str] = {}
    for part in in_parts(ids):
        found.update({row.id: row.digest for row in connection.execute(statement, {"ids": part})})
    return found


def _append_arrivals(connection: Connection, project: str, touched: list[tuple[str, str]], now_us: int) -> None:
    """Number the touched traces in commit order: on PostgreSQL a lock per project, on SQLite there is one writer."""
    if not touched:
        return
    if connection.dialect.name == "postgresql":
        connection.execute(
            text("SELECT pg_advisory_xact_lock(hashtext(:key))"), {"key": "filmroom arrivals " + project}
        )
    rows = [{"project": project, "kind": kind, "trace_id": trace_id, "at_us": now_us} for kind, trace_id in touched]
    connection.execute(insert(arrivals), rows)


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
