"""Retention: the text of old traces goes, their ids and what was decided of them stay."""

from sqlalchemy import Connection, or_, select

from store.bodies import drop_bodies
from store.bulk import listed
from store.failures import cursor
from store.tables import arrivals, bodies, corrections, dataset_rows, failures, feedback, spans, traces

DAY_US = 86_400_000_000
_PART = 1000
_OPEN = ("proposed", "deferred", "approved", "applied")
"""States of corrections whose traces are still needed: to be decided on, to be learnt from, or watched."""


def old_traces(connection: Connection, project: str, before_us: int) -> list[str]:
    """The next thousand traces that started before a moment, still have their text, and that nothing open needs.

    Kept are traces that were not looked at yet, those of corrections that wait or are live, and those that a model's training
    rows are made of. A trace whose
    log does not say when it was is never old.
    """
    needed = (
        select(failures.c.id)
        .join(corrections, corrections.c.cluster_id == failures.c.cluster_id)
        .where(failures.c.trace_id == traces.c.id, corrections.c.state.in_(_OPEN))
    )
    unrouted = select(failures.c.id).where(
        failures.c.trace_id == traces.c.id, failures.c.cluster_id.is_(None), failures.c.withdrawn.is_(False)
    )
    learnt = select(dataset_rows.c.id).where(dataset_rows.c.trace_id == traces.c.id)
    seen = cursor(connection, project, "pickup")
    unread = select(arrivals.c.seq).where(arrivals.c.trace_id == traces.c.id, arrivals.c.seq > seen)
    statement = (
        select(traces.c.id)
        .join(bodies, bodies.c.id == traces.c.id)
        .where(traces.c.project == project, traces.c.started_us < before_us)
        .where(~or_(needed.exists(), unrouted.exists(), learnt.exists(), unread.exists()))
        .order_by(traces.c.started_us)
        .limit(_PART)
    )
    return list(connection.execute(statement).scalars())


def drop_texts(connection: Connection, trace_ids: list[str]) -> None:
    """Drop the text of these traces, of their spans and of their feedback."""
    owners = list(trace_ids)
    for table in (spans, feedback):
        owners += connection.execute(
            select(table.c.id).where(table.c.trace_id.in_(listed(connection, trace_ids)))
        ).scalars()
    drop_bodies(connection, owners)
