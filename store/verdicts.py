"""Clusters whose right place is known: what a router learns from and is held to."""

from collections.abc import Collection

from sqlalchemy import Connection, select

from store.records import Record, Route, Target
from store.tables import changes, corrections, holds, reviews, routes


class DecidedCluster(Record):
    """One correction with the route that was judged, and what became of it."""

    correction_id: str
    cluster_id: str
    review_id: str
    """The newest verdict on it."""
    evidence: dict[str, float | None]
    """As it was when the route was decided."""
    place: Target | None
    """Where a person, or a hold that ended, says that it belongs; None: nothing was to be corrected."""
    held: bool | None
    """Whether the fix in that place held; None: no hold has ended."""
    audited: bool = False
    """Whether the judged decision was certified and drawn for the blind audit."""
    decided_us: int
    """When that was said, microseconds since 1970 UTC."""


def decided_clusters(connection: Connection, project: str, *, machines: Collection[str] = ()) -> list[DecidedCluster]:
    """Corrections with a person's verdict or an ended hold, oldest first.

    What one of the `machines` approved is no verdict: it counts only once its hold has ended. An approval that was taken
    back without a failed hold says nothing any more.
    """
    statement = (
        select(
            reviews.c.id, reviews.c.correction_id, reviews.c.verdict, reviews.c.target, reviews.c.reviewer, reviews.c.at_us,
            corrections.c.cluster_id, corrections.c.state, corrections.c.target.label("place"),
        )
        .join(corrections, corrections.c.id == reviews.c.correction_id)
        .where(reviews.c.project == project, reviews.c.verdict != "defer")
        .order_by(reviews.c.at_us, reviews.c.id)
    )  # fmt: skip
    newest = {row.correction_id: row for row in connection.execute(statement)}
    ended, judged = _ended_holds(connection, project), _judged_routes(connection, project)
    found = []
    for id, row in newest.items():
        held = ended.get(id)
        route = next((each for each in reversed(judged.get(id, [])) if each.decided_us <= row.at_us), None)
        is_open = held is None and (row.reviewer in machines or row.state == "reverted")
        if route is None or is_open:
            continue
        place = None if row.verdict == "reject" else row.target or row.place
        found.append(
            DecidedCluster(
                correction_id=id,
                cluster_id=row.cluster_id,
                review_id=row.id,
                evidence=route.evidence,
                place=place,
                held=held,
                audited=route.audited,
                decided_us=row.at_us,
            )
        )
    return found


def _ended_holds(connection: Connection, project: str) -> dict[str, bool]:
    """Correction id to whether its newest ended hold was held."""
    statement = (
        select(changes.c.correction_id, holds.c.state)
        .join(holds, holds.c.change_id == changes.c.id)
        .where(changes.c.project == project, holds.c.state.in_(("held", "failed")))
        .order_by(holds.c.updated_us)
    )
    return {row.correction_id: row.state == "held" for row in connection.execute(statement)}


def _judged_routes(connection: Connection, project: str) -> dict[str, list[Route]]:
    statement = (
        select(routes.c.correction_id, routes.c.decision)
        .where(routes.c.project == project, routes.c.correction_id.in_(select(reviews.c.correction_id)))
        .order_by(routes.c.decided_us, routes.c.failures)
    )
    found: dict[str, list[Route]] = {}
    for row in connection.execute(statement):
        found.setdefault(row.correction_id, []).append(Route(**row.decision))
    return found
