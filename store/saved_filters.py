"""Filters that people keep under a name."""

from typing import Any

from sqlalchemy import Connection, delete, or_, select

from store.console_tables import saved_filters
from store.database import upsert
from store.errors import NotAllowed, NotFound
from store.records import derived_id

LONGEST = 80


def save_filter(
    connection: Connection, project: str, owner: str, name: str, query: str, *, shared: bool, now_us: int
) -> str:
    """Keep a filter, in place of the owner's of the same name. Raises NotAllowed without a name."""
    name = name.strip()
    if not name or len(name) > LONGEST:
        raise NotAllowed(f"a filter needs a name of up to {LONGEST} characters")
    id_ = derived_id("flt", project, owner, name)
    row = {"id": id_, "project": project, "owner": owner, "name": name, "query": query, "shared": shared,
           "created_us": now_us}  # fmt: skip
    upsert(connection, saved_filters, row)
    return id_


def filters_for(connection: Connection, project: str, owner: str) -> list[dict[str, Any]]:
    """The owner's filters and those that others share, by name."""
    statement = (
        select(saved_filters)
        .where(
            saved_filters.c.project == project,
            or_(saved_filters.c.owner == owner, saved_filters.c.shared.is_(True)),
        )
        .order_by(saved_filters.c.name, saved_filters.c.id)
    )
    return [{k: v for k, v in row._mapping.items() if k != "project"} for row in connection.execute(statement)]


def drop_filter(connection: Connection, project: str, owner: str, filter_id: str) -> None:
    """Forget one of the owner's filters. Raises NotFound."""
    gone = connection.execute(
        delete(saved_filters).where(
            saved_filters.c.project == project, saved_filters.c.owner == owner, saved_filters.c.id == filter_id
        )
    )
    if not gone.rowcount:
        raise NotFound(f"you have no filter {filter_id}")
