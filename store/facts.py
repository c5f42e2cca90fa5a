"""Memory: an append-only list of facts per project; a release serves the facts up to its position."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, func, insert, or_, select, tuple_

from store.bodies import decode, put_new_bodies
from store.records import Fact
from store.tables import bodies, facts

Scope = tuple[str, str]
"""`user`, `tenant` or `global`, and whose."""
GLOBAL: Scope = ("global", "*")


def append_fact(connection: Connection, project: str, verb: str, fact: Fact, now_us: int) -> int:
    """Append `add`, `supersede` or `forget` of a fact; returns the new position. Holds only under the live pointer's swap."""
    statement = select(func.max(facts.c.position)).where(facts.c.project == project)
    position = (connection.execute(statement).scalar_one() or 0) + 1
    row = {
        "project": project,
        "position": position,
        "verb": verb,
        "fact_id": fact.id,
        **fact.model_dump(mode="json", exclude={"id", "value"}),
        "at_us": now_us,
    }
    connection.execute(insert(facts), [row])
    put_new_bodies(connection, project, {fact.id: fact.value})
    return position


def facts_at(connection: Connection, project: str, position: int, now_us: int, *, user: str | None = None,
             tenant: str | None = None) -> list[Fact]:  # fmt: skip
    """The facts in force at a position: of everybody, or global ones and those of one user and tenant. Oldest first.

    One query. Left out: forgotten, superseded and expired ones, and those whose text was erased.
    """
    if user is None:
        return _in_force(connection, project, position, now_us)
    scopes = [GLOBAL, ("user", user), *([("tenant", tenant)] if tenant else [])]
    return facts_in(connection, project, position, now_us, scopes=scopes)


def facts_in(
    connection: Connection, project: str, position: int, now_us: int, *, scopes: Collection[Scope]
) -> list[Fact]:
    """The facts in force in these scopes, oldest first; global ones in whichever scope a global one is asked for."""
    if not scopes:
        return []
    named = [scope for scope in scopes if scope[0] != "global"]
    wanted: list[ColumnElement[bool]] = []
    if named:
        wanted.append(tuple_(facts.c.scope, facts.c.scope_id).in_(named))
    if len(named) < len(scopes):
        wanted.append(facts.c.scope == "global")
    return _in_force(connection, project, position, now_us, or_(*wanted))


def fact_named(connection: Connection, project: str, fact_id: str) -> Fact | None:
    """The fact as it was last stated, in force or not; None: there is none, or its text was erased."""
    statement = (
        _with_values(project)
        .where(facts.c.fact_id == fact_id, facts.c.verb != "forget")
        .order_by(facts.c.position.desc())
        .limit(1)
    )
    row = connection.execute(statement).first()
    return None if row is None or row.data is None else _fact(row)


def is_forgotten(connection: Connection, project: str, fact_id: str, *, since: int = 0) -> bool:
    """Whether the fact was to be forgotten, by its name, after the position `since`, and was not stated again later."""
    statement = (
        select(facts.c.verb)
        .where(facts.c.project == project, facts.c.fact_id == fact_id, facts.c.position > since)
        .order_by(facts.c.position.desc())
        .limit(1)
    )
    return connection.execute(statement).scalar_one_or_none() == "forget"


def _in_force(
    connection: Connection, project: str, position: int, now_us: int, *where: ColumnElement[bool]
) -> list[Fact]:
    statement = _with_values(project).where(facts.c.position <= position, *where).order_by(facts.c.position)
    in_force: dict[str, Row[Any]] = {}
    for row in connection.execute(statement):
        if row.supersedes is not None:
            in_force.pop(row.supersedes, None)
        in_force.pop(row.fact_id, None)
        if row.verb != "forget":
            in_force[row.fact_id] = row
    return [_fact(row) for row in in_force.values() if row.data is not None and not _expired(row, now_us)]


def _with_values(project: str) -> Any:
    return (
        select(facts, bodies.c.data).outerjoin(bodies, bodies.c.id == facts.c.fact_id).where(facts.c.project == project)
    )


def _expired(row: Row[Any], now_us: int) -> bool:
    if row.ttl_s is None:
        return False
    since: int = row.at_us if row.valid_from_us is None else row.valid_from_us
    return bool(since + row.ttl_s * 1_000_000 < now_us)


def _fact(row: Row[Any]) -> Fact:
    kept = {name: each for name, each in row._mapping.items() if name in Fact.model_fields and name != "id"}
    return Fact(id=row.fact_id, value=decode(row.data), **{**kept, "depends_on": tuple(row.depends_on or ())})
