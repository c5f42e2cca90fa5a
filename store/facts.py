"""Memory: an append-only list of facts per project; a release serves the facts up to its position."""

from sqlalchemy import Connection, Row, func, insert, or_, select

from store.bodies import bodies_of, put_new_bodies
from store.records import Fact
from store.tables import facts

MAX_FACTS = 100_000


def append_fact(connection: Connection, project: str, verb: str, fact: Fact, now_us: int) -> int:
    """Append `add`, `supersede` or `forget` of a fact; returns the new position. Holds only under the live pointer's swap."""
    statement = select(func.max(facts.c.position)).where(facts.c.project == project)
    position = (connection.execute(statement).scalar_one() or 0) + 1
    row = {
        "project": project,
        "position": position,
        "verb": verb,
        "fact_id": fact.id,
        **fact.model_dump(exclude={"id", "value"}),
        "at_us": now_us,
    }
    connection.execute(insert(facts), [row])
    put_new_bodies(connection, project, {fact.id: fact.value})
    return position


def facts_at(connection: Connection, project: str, position: int, now_us: int, *, user: str | None = None,
             tenant: str | None = None) -> list[Fact]:  # fmt: skip
    """The facts in force at a position: of everybody, or global ones and those of one user and tenant. Oldest first.

    Left out: forgotten, superseded and expired ones, and those whose text was erased.
    """
    statement = (
        select(facts)
        .where(facts.c.project == project, facts.c.position <= position)
        .order_by(facts.c.position)
        .limit(MAX_FACTS)
    )
    if user is not None:
        statement = statement.where(
            or_(
                facts.c.scope == "global",
                (facts.c.scope == "user") & (facts.c.scope_id == user),
                (facts.c.scope == "tenant") & (facts.c.scope_id == (tenant or "")),
            )
        )
    in_force: dict[str, Row[tuple[object, ...]]] = {}
    for row in connection.execute(statement):
        if row.supersedes is not None:
            in_force.pop(row.supersedes, None)
        in_force.pop(row.fact_id, None)
        if row.verb != "forget":
            in_force[row.fact_id] = row
    values = bodies_of(connection, in_force)
    return [_fact(row, values[id_]) for id_, row in in_force.items() if id_ in values and not _expired(row, now_us)]


def _expired(row: Row[tuple[object, ...]], now_us: int) -> bool:
    if row.ttl_s is None:
        return False
    since: int = row.at_us if row.valid_from_us is None else row.valid_from_us
    return bool(since + row.ttl_s * 1_000_000 < now_us)


def _fact(row: Row[tuple[object, ...]], value: object) -> Fact:
    kept = {name: each for name, each in row._mapping.items() if name in Fact.model_fields and name != "id"}
    return Fact(id=row.fact_id, value=value, **kept)
