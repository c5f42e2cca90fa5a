"""Turns of the loop: when each ran, and what it did."""

from typing import Any

from sqlalchemy import Connection, insert, select, update

from store.database import wall_clock
from store.leases import live_holder
from store.tables import turns


def begin_turn(connection: Connection, project: str, turn_id: str, actor: str, now_us: int) -> None:
    """Record the start of a turn; one that was left running is marked as interrupted."""
    connection.execute(
        update(turns).where(turns.c.project == project, turns.c.state == "running").values(state="interrupted")
    )
    row = {"id": turn_id, "project": project, "started_us": now_us, "ended_us": None, "actor": actor,
           "state": "running", "summary": None}  # fmt: skip
    connection.execute(insert(turns), [row])


def end_turn(connection: Connection, turn_id: str, now_us: int, state: str, summary: dict[str, Any]) -> None:
    connection.execute(update(turns).where(turns.c.id == turn_id).values(ended_us=now_us, state=state, summary=summary))


def turns_of(connection: Connection, project: str, limit: int = 20) -> list[dict[str, Any]]:
    """The newest turns, newest first; one whose process is gone is `interrupted`, be its row marked so or not yet."""
    statement = (
        select(turns).where(turns.c.project == project).order_by(turns.c.started_us.desc(), turns.c.id).limit(limit)
    )
    found = [dict(row._mapping) for row in connection.execute(statement)]
    left = [each for each in found if each["state"] == "running"]
    if left and live_holder(connection, project, "turn", now_us=wall_clock()) is None:
        for each in left:
            each["state"] = "interrupted"
    return found
