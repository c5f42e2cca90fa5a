"""Changes as the console lists them: what, where, by whom, and whether the failure came back."""

from typing import Any

from sqlalchemy import Connection, func, select

from store.bodies import bodies_of
from store.console_tables import opinions
from store.tables import (
    changes,
    clusters,
    corrections,
    failures,
    feedback,
    holds,
    ledger,
    replays,
    reviews,
    routes,
    spans,
    traces,
)

PAGE = 50


def change_page(
    connection: Connection, project: str, *, target: str = "", state: str = "", offset: int = 0, limit: int = PAGE
) -> list[dict[str, Any]]:
    """Changes newest first, each with its cluster and hold."""
    statement = (
        select(
            changes, corrections.c.cluster_id, clusters.c.name, holds.c.state.label("hold"), holds.c.exposures,
            holds.c.recurrences, holds.c.needed, holds.c.baseline,
        )
        .join(corrections, corrections.c.id == changes.c.correction_id)
        .join(clusters, clusters.c.id == corrections.c.cluster_id)
        .outerjoin(holds, holds.c.change_id == changes.c.id)
        .where(changes.c.project == project)
        .order_by(changes.c.applied_us.desc(), changes.c.id)
        .offset(offset)
        .limit(limit)
    )  # fmt: skip
    if target:
        statement = statement.where(changes.c.target == target)
    if state in ("live", "reverted"):
        statement = statement.where(changes.c.state == state)
    elif state:
        statement = statement.where(holds.c.state == state)
        if state == "holding":
            statement = statement.where(changes.c.state == "live")
    rows = list(connection.execute(statement))
    proposals = bodies_of(connection, [row.correction_id for row in rows])
    return [
        {
            "change": row.id,
            "correction": row.correction_id,
            "cluster": row.cluster_id,
            "name": row.name,
            "target": row.target,
            "state": row.state,
            "summary": (proposals.get(row.correction_id) or {}).get("summary", ""),
            "actor": row.actor,
            "applied_us": row.applied_us,
            "release": row.release_id,
            "before": row.before,
            "after": row.after,
            "probation": row.probation,
            "hold": row.hold,
            "exposures": row.exposures,
            "recurrences": row.recurrences,
            "needed": row.needed,
            "baseline": row.baseline,
        }
        for row in rows
    ]


def recurrence(connection: Connection, project: str, cluster_id: str, *, limit: int = 500) -> list[int]:
    """When the newest failures of a cluster started, microseconds since 1970 UTC, oldest first."""
    statement = (
        select(traces.c.started_us)
        .select_from(failures)
        .join(traces, traces.c.id == failures.c.trace_id)
        .where(
            failures.c.project == project,
            failures.c.cluster_id == cluster_id,
            failures.c.withdrawn.is_(False),
            traces.c.started_us.is_not(None),
        )
        .order_by(traces.c.started_us.desc())
        .limit(limit)
    )
    return sorted(connection.execute(statement).scalars())


def cluster_corrections(connection: Connection, project: str, cluster_id: str) -> list[dict[str, Any]]:
    """The attempts to correct a cluster, first first: `correction, attempt, state, target, created_us`."""
    statement = (
        select(corrections)
        .where(corrections.c.project == project, corrections.c.cluster_id == cluster_id)
        .order_by(corrections.c.attempt)
    )
    return [
        {"correction": row.id, "attempt": row.attempt, "state": row.state, "target": row.target,
         "created_us": row.created_us}
        for row in connection.execute(statement)
    ]  # fmt: skip


def newest_events(connection: Connection, project: str, *, limit: int = 12) -> list[dict[str, Any]]:
    """The last things that happened, newest first."""
    statement = (
        select(ledger.c.at_us, ledger.c.actor, ledger.c.event, ledger.c.subject, ledger.c.reason)
        .where(ledger.c.project == project)
        .order_by(ledger.c.seq.desc())
        .limit(limit)
    )
    return [dict(row._mapping) for row in connection.execute(statement)]


def reviews_since(connection: Connection, project: str, since_us: int) -> dict[str, int]:
    """Reviewer to how many verdicts they gave since then."""
    statement = (
        select(reviews.c.reviewer, func.count())
        .where(reviews.c.project == project, reviews.c.at_us >= since_us)
        .group_by(reviews.c.reviewer)
    )
    return {row[0]: row[1] for row in connection.execute(statement)}


def cluster_names(connection: Connection, ids: list[str]) -> dict[str, str]:
    """Cluster id to its name."""
    statement = select(clusters.c.id, clusters.c.name).where(clusters.c.id.in_(ids))
    return {row.id: row.name for row in connection.execute(statement)}


def id_home(connection: Connection, project: str, any_id: str) -> str:
    """The id of what shows this one: of a failure, span or feedback its trace, of a route, review, opinion or replay its
    correction, of a hold its change; else the id itself."""
    owners = {
        "fail": (failures, failures.c.trace_id),
        "spn": (spans, spans.c.trace_id),
        "fbk": (feedback, feedback.c.trace_id),
        "rte": (routes, routes.c.correction_id),
        "rev": (reviews, reviews.c.correction_id),
        "opi": (opinions, opinions.c.correction_id),
        "rpl": (replays, replays.c.correction_id),
        "hld": (holds, holds.c.change_id),
    }
    table, owner = owners.get(any_id.split("_", 1)[0], (None, None))
    if table is None:
        return any_id
    statement = select(owner).where(table.c.project == project, table.c.id == any_id)  # type: ignore[arg-type]
    return connection.execute(statement).scalar_one_or_none() or any_id
