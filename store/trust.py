"""What became of the changes that rest on each source's failures."""

from sqlalchemy import Connection, and_, select

from store.tables import changes, corrections, failures, holds


def outcomes_of_sources(connection: Connection, project: str) -> dict[str, tuple[int, int]]:
    """(changes that held, changes that failed to) by source; 0, 0 for one that only gave failures."""
    statement = (
        select(failures.c.source, changes.c.id, changes.c.state, holds.c.state)
        .select_from(failures)
        .outerjoin(corrections, corrections.c.cluster_id == failures.c.cluster_id)
        .outerjoin(changes, changes.c.correction_id == corrections.c.id)
        .outerjoin(holds, and_(holds.c.change_id == changes.c.id))
        .where(failures.c.project == project)
        .distinct()
    )
    found: dict[str, tuple[int, int]] = {}
    for source, _, change, hold in connection.execute(statement):
        held, reverted = found.get(source, (0, 0))
        failed = hold == "failed"
        found[source] = (held + (hold == "held" and change != "reverted"), reverted + failed)
    return found
