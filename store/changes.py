"""Applied corrections, and the watch on each."""

from typing import Any, Literal

from sqlalchemy import Connection, Row, delete, func, select, update

from store.bodies import bodies_of, put_body
from store.database import insert_or_ignore, upsert
from store.errors import NotFound
from store.records import Change, Hold
from store.tables import changes, holds


def put_change(connection: Connection, value: Change) -> None:
    """Keep a change with its operations."""
    insert_or_ignore(connection, changes, [{"id": value.id, **value.model_dump(mode="json", exclude={"operations"})}])
    put_body(connection, value.project, value.id, [each.model_dump(mode="json") for each in value.operations])


def set_change_state(connection: Connection, change_id: str, state: Literal["live", "reverted"]) -> None:
    connection.execute(update(changes).where(changes.c.id == change_id).values(state=state))


def change(connection: Connection, project: str, change_id: str) -> Change:
    """The change with this id. Raises NotFound."""
    row = connection.execute(select(changes).where(changes.c.project == project, changes.c.id == change_id)).first()
    if row is None:
        raise NotFound(f"no change {change_id}")
    return _built(connection, [row])[0]


def changes_of(connection: Connection, project: str, *, correction_id: str | None = None, after: str | None = None,
               release_id: str | None = None, target: str | None = None, state: str | None = None) -> list[Change]:  # fmt: skip
    """The changes that match all that is given, oldest first."""
    statement = select(changes).where(changes.c.project == project).order_by(changes.c.applied_us, changes.c.id)
    given = {"correction_id": correction_id, "after": after, "release_id": release_id, "target": target, "state": state}
    for name, value in given.items():
        if value is not None:
            statement = statement.where(changes.c[name] == value)
    return _built(connection, list(connection.execute(statement)))


def applied_times(connection: Connection, project: str, target: str) -> dict[str, int]:
    """Correction to the time its newest change in the target was applied, microseconds since 1970 UTC."""
    statement = (
        select(changes.c.correction_id, func.max(changes.c.applied_us))
        .where(changes.c.project == project, changes.c.target == target)
        .group_by(changes.c.correction_id)
    )
    return {row[0]: row[1] for row in connection.execute(statement)}


def put_hold(connection: Connection, value: Hold) -> None:
    upsert(connection, holds, {"id": value.id, **value.model_dump()})


def remove_hold(connection: Connection, change_id: str) -> None:
    """End the watch on a change that is served no more; history keeps what was seen."""
    connection.execute(delete(holds).where(holds.c.change_id == change_id))


def holds_of(connection: Connection, project: str, state: str | None = None) -> list[Hold]:
    """The holds, oldest first; or only those in a state."""
    statement = select(holds).where(holds.c.project == project).order_by(holds.c.since_us, holds.c.id)
    if state is not None:
        statement = statement.where(holds.c.state == state)
    return [Hold(**{k: v for k, v in row._mapping.items() if k != "id"}) for row in connection.execute(statement)]


def live_holds(connection: Connection, project: str) -> list[tuple[Change, Hold]]:
    """The changes that are live and watched, each with its hold, oldest first."""
    statement = (
        select(holds).join(changes, changes.c.id == holds.c.change_id)
        .where(holds.c.project == project, changes.c.state == "live").order_by(holds.c.since_us, holds.c.id)
    )  # fmt: skip
    found = [Hold(**{k: v for k, v in row._mapping.items() if k != "id"}) for row in connection.execute(statement)]
    ids = [each.change_id for each in found]
    rows = list(connection.execute(select(changes).where(changes.c.id.in_(ids)))) if ids else []
    known = {each.id: each for each in _built(connection, rows)}
    return [(known[each.change_id], each) for each in found]


def holds_by_key(connection: Connection, project: str) -> dict[str, Hold]:
    """Rule, fact, tool or ticket to the hold of the newest live change of it."""
    return {operation.key: hold for made, hold in live_holds(connection, project) for operation in made.operations}


def hold_of(connection: Connection, correction_id: str) -> Hold | None:
    """The hold of a correction's newest change; None: nothing of it is watched."""
    statement = (
        select(holds).join(changes, changes.c.id == holds.c.change_id)
        .where(changes.c.correction_id == correction_id).order_by(holds.c.since_us.desc()).limit(1)
    )  # fmt: skip
    row = connection.execute(statement).first()
    return None if row is None else Hold(**{k: v for k, v in row._mapping.items() if k != "id"})


def hold_of_change(connection: Connection, change_id: str) -> Hold | None:
    """The hold of a change; None: nothing of it is watched."""
    row = connection.execute(select(holds).where(holds.c.change_id == change_id)).first()
    return None if row is None else Hold(**{k: v for k, v in row._mapping.items() if k != "id"})


def is_undone(connection: Connection, change_id: str) -> bool:
    """Whether a change was taken back: then its hold is what was seen while it was live."""
    return (
        connection.execute(select(changes.c.state).where(changes.c.id == change_id)).scalar_one_or_none() == "reverted"
    )


def _built(connection: Connection, rows: list[Row[Any]]) -> list[Change]:
    operations = bodies_of(connection, [row.id for row in rows])
    return [
        Change(**{k: v for k, v in row._mapping.items() if k != "id"}, operations=tuple(operations.get(row.id, ())))
        for row in rows
    ]
