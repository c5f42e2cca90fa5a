"""What could not be read: kept with its place, the reason and its text, until it is read after all or discarded."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, delete, func, select

from store.bodies import bodies_of, drop_bodies, encode, in_parts
from store.database import Store, insert_or_ignore
from store.records import Record, Rejected, derived_id
from store.tables import bodies, quarantine


class Quarantined(Record):
    """One piece of input in quarantine."""

    id: str
    path: str
    """Where it came from: a file, an address, or the path of an endpoint."""
    line: int | None
    """1-based line or record number; None: the whole file."""
    reason: str
    at_us: int
    """When it was kept."""
    format: str | None = None
    """The format it was read as; None: none was recognised."""
    section: str | None = None
    """The `[sources.NAME]` whose mapping applied; None: none was named."""
    source: str | None = None
    """The system that its traces are from; None: the format's name."""


def piece_id(project: str, reject: Rejected) -> str:
    """The id of a piece in quarantine, from its place and its text, so that reading a file again keeps it once."""
    return derived_id("qua", project, reject.path, str(reject.line), reject.raw)


def keep_rejects(connection: Connection, project: str, rejects: Sequence[Rejected], now_us: int) -> None:
    """Keep the rejected pieces; one that is there already stays as it is."""
    rows, raw = [], []
    for reject in rejects:
        id_ = piece_id(project, reject)
        origin = reject.model_dump(include={"format", "section", "source"}, exclude_none=True)
        kept = reject.model_dump(include={"path", "line", "reason"})
        rows.append({"id": id_, "project": project, "at_us": now_us, "origin": origin, **kept})
        raw.append({"id": id_, "project": project, "data": encode(reject.raw)})
    insert_or_ignore(connection, quarantine, rows)
    insert_or_ignore(connection, bodies, raw)


def quarantined(store: Store, limit: int = 100, offset: int = 0) -> list[dict[str, Any]]:
    """The rejected pieces, the newest first: `quarantine` (its id), path, line, reason, format, at_us."""
    with store.read() as connection:
        statement = (
            select(quarantine)
            .where(quarantine.c.project == store.project)
            .order_by(quarantine.c.at_us.desc(), quarantine.c.path, quarantine.c.line, quarantine.c.id)
            .limit(limit)
            .offset(offset)
        )
        found = [_piece(row) for row in connection.execute(statement)]
    return [
        {"quarantine": each.id, **each.model_dump(include={"path", "line", "reason", "format", "at_us"})}
        for each in found
    ]


def quarantine_size(connection: Connection, project: str) -> int:
    """How many pieces of input wait in quarantine."""
    return connection.execute(
        select(func.count()).select_from(quarantine).where(quarantine.c.project == project)
    ).scalar_one()


def pieces_of(connection: Connection, project: str) -> list[Quarantined]:
    """Every piece in quarantine, by path and line; without the text."""
    statement = (
        select(quarantine)
        .where(quarantine.c.project == project)
        .order_by(quarantine.c.path, quarantine.c.line, quarantine.c.id)
    )
    return [_piece(row) for row in connection.execute(statement)]


def piece(connection: Connection, project: str, id_: str) -> Quarantined | None:
    """One piece; None: it is not, or no longer, in quarantine."""
    statement = select(quarantine).where(quarantine.c.project == project, quarantine.c.id == id_)
    row = connection.execute(statement).first()
    return None if row is None else _piece(row)


def texts_of(connection: Connection, ids: Sequence[str]) -> dict[str, str]:
    """The text of these pieces; empty for a file that was rejected as a whole."""
    return {id_: str(text) for id_, text in bodies_of(connection, ids).items()}


def release(connection: Connection, project: str, ids: Sequence[str]) -> int:
    """Take these pieces out of quarantine, their text with them; returns how many there were."""
    gone = 0
    for part in in_parts(list(ids)):
        done = connection.execute(
            delete(quarantine).where(quarantine.c.project == project, quarantine.c.id.in_(part))
        ).rowcount
        gone += done
    drop_bodies(connection, ids)
    return gone


def _piece(row: Any) -> Quarantined:
    kept = {name: getattr(row, name) for name in ("id", "path", "line", "reason", "at_us")}
    return Quarantined(**kept, **(row.origin or {}))
