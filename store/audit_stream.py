"""The uniform audit stream: what was drawn, what people said of it, and how late labels come."""

from collections.abc import Sequence

from sqlalchemy import Connection, func, select

from store.bodies import in_parts
from store.records import Record, Signal
from store.tables import failures, feedback, signals, traces

AUDIT = "audit"
"""Name of the feedback that an audit leaves."""


class Drawable(Record):
    """A trace that an audit may draw."""

    trace_id: str
    started_us: int


class Audited(Record):
    """A trace that was audited."""

    trace_id: str
    good: bool
    found: bool
    """Whether it had been picked up as a failure before the audit said anything."""


def drawable(connection: Connection, project: str, *, since_us: int) -> list[Drawable]:
    """The traces with a time since then, in no order."""
    statement = select(traces.c.id, traces.c.started_us).where(
        traces.c.project == project, traces.c.started_us >= since_us
    )
    return [Drawable(trace_id=row.id, started_us=row.started_us) for row in connection.execute(statement)]


def audited(connection: Connection, project: str) -> list[Audited]:
    """What was said of the audited traces; of each the newest verdict."""
    statement = (
        select(feedback.c.trace_id, feedback.c.score, feedback.c.given_us, failures.c.picked_us, failures.c.withdrawn)
        .outerjoin(failures, failures.c.trace_id == feedback.c.trace_id)
        .where(feedback.c.project == project, feedback.c.name == AUDIT, feedback.c.score.is_not(None))
        .order_by(feedback.c.given_us)
    )
    found = {}
    for row in connection.execute(statement):
        early = row.picked_us is not None and not row.withdrawn and row.picked_us <= (row.given_us or 0)
        found[row.trace_id] = Audited(trace_id=row.trace_id, good=row.score >= 0.5, found=early)
    return list(found.values())


def label_delays(connection: Connection, project: str, *, since_us: int, now_us: int) -> tuple[list[int], list[int]]:
    """Microseconds from each trace to its first feedback but an audit's, and the ages of those without; since then."""
    first = (
        select(feedback.c.trace_id, func.min(feedback.c.given_us).label("given_us"))
        .where(feedback.c.project == project, feedback.c.name != AUDIT, feedback.c.given_us.is_not(None))
        .group_by(feedback.c.trace_id)
        .subquery()
    )
    statement = (
        select(traces.c.started_us, first.c.given_us)
        .outerjoin(first, first.c.trace_id == traces.c.id)
        .where(traces.c.project == project, traces.c.started_us >= since_us)
    )
    came, waiting = [], []
    for row in connection.execute(statement):
        if row.given_us is not None and row.given_us >= row.started_us:
            came.append(row.given_us - row.started_us)
        elif row.given_us is None:
            waiting.append(max(0, now_us - row.started_us))
    return came, waiting


def signals_without_audit(connection: Connection, trace_ids: Sequence[str]) -> dict[str, list[Signal]]:
    """Trace to its signals, without those that an audit's own verdict gave."""
    found: dict[str, list[Signal]] = {}
    for part in in_parts(list(trace_ids)):
        said = select(feedback.c.id).where(feedback.c.trace_id.in_(part), feedback.c.name == AUDIT)
        statement = (
            select(signals)
            .where(signals.c.trace_id.in_(part), signals.c.feedback_id.is_(None) | signals.c.feedback_id.not_in(said))
            .order_by(signals.c.id)
        )
        for row in connection.execute(statement):
            values = {name: value for name, value in row._mapping.items() if name not in ("id", "project")}
            found.setdefault(row.trace_id, []).append(Signal(**values))
    return found
