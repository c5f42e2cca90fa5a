"""Traces that were judged by anyone: what rates are computed over. Silence is not satisfaction."""

from sqlalchemy import Connection, exists, select

from store.records import Episode
from store.tables import failures, feedback, spans, traces
from store.traces import episodes


def judged(
    connection: Connection,
    project: str,
    *,
    after_us: int | None = None,
    before_us: int | None = None,
    dated: bool = True,
    limit: int = 1000,
) -> list[tuple[Episode, str | None]]:
    """Traces with feedback in a span of time, each with the cluster it failed in (None: it did not fail), newest first.

    `dated`: leave out traces without a start time, of which nobody knows whether they came before or after.
    """
    statement = (
        select(traces.c.id, failures.c.cluster_id)
        .outerjoin(failures, (failures.c.trace_id == traces.c.id) & failures.c.withdrawn.is_(False))
        .where(
            traces.c.project == project,
            exists().where(feedback.c.trace_id == traces.c.id) | failures.c.id.is_not(None),
        )
        .order_by(traces.c.started_us.desc(), traces.c.id)
        .limit(limit)
    )
    if dated:
        statement = statement.where(traces.c.started_us.is_not(None))
    if after_us is not None:
        statement = statement.where(traces.c.started_us > after_us)
    if before_us is not None:
        statement = statement.where(traces.c.started_us <= before_us)
    found = {row.id: row.cluster_id for row in connection.execute(statement)}
    return [(episode, found[episode.trace.id]) for episode in episodes(connection, list(found))]


def served_by_releases(connection: Connection, project: str, limit: int = 1000) -> list[Episode]:
    """The newest traces that say which release served them, newest first."""
    statement = (
        select(traces.c.id)
        .where(traces.c.project == project, traces.c.release.is_not(None))
        .order_by(traces.c.started_us.desc(), traces.c.id)
        .limit(limit)
    )
    return episodes(connection, list(connection.execute(statement).scalars()))


def predicting_steps(connection: Connection, project: str) -> set[tuple[str | None, str | None]]:
    """Name and model of the log's steps of kind `predict`. Reads all spans: for what is looked at seldom."""
    statement = (
        select(spans.c.name, spans.c.model).distinct().where(spans.c.project == project, spans.c.kind == "predict")
    )
    return {(row.name, row.model) for row in connection.execute(statement)}
