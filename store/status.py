"""Where a project stands, in one read."""

from typing import Any

from sqlalchemy import Connection, Table, func, select

from store.database import Store
from store.failures import clusters_of, count_failures, cursor
from store.quarantine import quarantine_size
from store.releases import live_release
from store.tables import arrivals, changes, corrections, holds
from store.traces import count_traces
from store.turns import turns_of


def status(store: Store) -> dict[str, Any]:
    """Counts of the log, failures, corrections and holds by state, the live release, the last turn and the next command."""
    with store.read() as connection:
        log = count_traces(connection, store.project)
        log["quarantined"] = quarantine_size(connection, store.project)
        log["unread"] = _unread(connection, store.project)
        states = _by_state(connection, corrections, store.project)
        live = live_release(connection, store.project)
        turns = turns_of(connection, store.project, 1)
        return {
            "project": store.project,
            "log": log,
            "failures": count_failures(connection, store.project),
            "clusters": len(clusters_of(connection, store.project)),
            "corrections": states,
            "holds": _live_holds(connection, store.project),
            "release": live.id,
            "release_number": live.number,
            "release_us": live.created_us,
            "last_turn": turns[0] if turns else None,
            "next": _next(log, states, turns[0]["state"] if turns else ""),
        }


def _next(log: dict[str, int], states: dict[str, int], last_turn: str) -> str:
    if not log["traces"]:
        return "filmroom ingest LOG"
    if log["unread"] or last_turn == "interrupted":
        return "filmroom run"
    if states.get("proposed"):
        return "filmroom review list"
    return "filmroom ingest LOG, when there is more"


def _unread(connection: Connection, project: str) -> int:
    seen = cursor(connection, project, "pickup")
    statement = select(func.count()).select_from(arrivals).where(arrivals.c.project == project, arrivals.c.seq > seen)
    return connection.execute(statement).scalar_one()


def _live_holds(connection: Connection, project: str) -> dict[str, int]:
    """Holds by state, of changes that are live: what was undone neither holds nor fails."""
    statement = (
        select(holds.c.state, func.count())
        .join(changes, changes.c.id == holds.c.change_id)
        .where(holds.c.project == project, changes.c.state == "live")
        .group_by(holds.c.state)
        .order_by(holds.c.state)
    )
    return {row[0]: row[1] for row in connection.execute(statement)}


def _by_state(connection: Connection, table: Table, project: str) -> dict[str, int]:
    statement = select(table.c.state, func.count()).where(table.c.project == project).group_by(table.c.state)
    return {row[0]: row[1] for row in connection.execute(statement.order_by(table.c.state))}
