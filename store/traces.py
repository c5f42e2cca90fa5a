"""What is known of traces: whole episodes, arrivals, and neighbours that did not fail."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, Row, Table, and_, bindparam, func, select

from store.bodies import bodies_of, in_parts
from store.kinds import KINDS, ORIGIN
from store.records import Episode, Feedback, Span, Trace
from store.tables import arrivals, failures, feedback, spans, traces


def trace_named(connection: Connection, project: str, external_id: str, sources: Iterable[str]) -> str | None:
    """The id of the trace that one of `sources` calls `external_id`; None: there is none."""
    ids = {Trace(project=project, source=source, external_id=external_id).id for source in sources}
    statement = select(traces.c.id).where(traces.c.id.in_(sorted(ids))).order_by(traces.c.started_us.desc()).limit(1)
    found: str | None = connection.execute(statement).scalar_one_or_none()
    return found


def episodes(connection: Connection, trace_ids: Sequence[str]) -> list[Episode]:
    """The traces with these ids, in the order asked, with their spans in order and all feedback; unknown ids are left out."""
    trace_rows = {row.id: row for row in _rows(connection, traces, "id", trace_ids)}
    span_rows = _rows(connection, spans, "trace_id", trace_ids)
    feedback_rows = _rows(connection, feedback, "trace_id", trace_ids)
    owners = [row.id for row in (*trace_rows.values(), *span_rows, *feedback_rows)]
    texts = bodies_of(connection, owners)
    steps = _grouped(_record(Span, row, texts) for row in span_rows)
    said = _grouped(_record(Feedback, row, texts) for row in feedback_rows)
    return [
        Episode(
            trace=_record(Trace, trace_rows[id_], texts),
            spans=tuple(sorted(steps.get(id_, []), key=_order)),
            feedback=tuple(sorted(said.get(id_, []), key=lambda f: (f.given_us or 0, f.external_id))),
        )
        for id_ in dict.fromkeys(trace_ids)
        if id_ in trace_rows
    ]


def episode(connection: Connection, trace_id: str) -> Episode | None:
    """One trace with its spans and feedback; None: there is no such trace."""
    found = episodes(connection, [trace_id])
    return found[0] if found else None


def traces_of(connection: Connection, trace_ids: Sequence[str]) -> list[Trace]:
    """The traces with these ids, without their spans."""
    rows = _rows(connection, traces, "id", trace_ids)
    texts = bodies_of(connection, [row.id for row in rows])
    return [_record(Trace, row, texts) for row in rows]


def spans_of(connection: Connection, trace_ids: Sequence[str]) -> dict[str, list[Span]]:
    """The spans of these traces in no order, by trace id; a trace without spans is left out."""
    rows = _rows(connection, spans, "trace_id", trace_ids)
    texts = bodies_of(connection, [row.id for row in rows])
    return _grouped(_record(Span, row, texts) for row in rows)


def feedback_of(connection: Connection, trace_ids: Sequence[str]) -> dict[str, list[Feedback]]:
    """The feedback on these traces in no order, by trace id."""
    rows = _rows(connection, feedback, "trace_id", trace_ids)
    texts = bodies_of(connection, [row.id for row in rows])
    return _grouped(_record(Feedback, row, texts) for row in rows)


def arrived_after(
    connection: Connection, project: str, seq: int, *, before_us: int, limit: int
) -> tuple[int, list[str]]:
    """The traces touched by the next `limit` arrivals after `seq`, and the last arrival's number.

    Stops short of the first arrival at or after `before_us`, so that a trace has settled when it is looked at.
    """
    statement = (
        select(arrivals.c.seq, arrivals.c.trace_id, arrivals.c.at_us)
        .where(arrivals.c.project == project, arrivals.c.seq > seq)
        .order_by(arrivals.c.seq)
        .limit(limit)
    )
    last, touched = seq, dict[str, None]()
    for row in connection.execute(statement):
        if row.at_us >= before_us:
            break
        last = row.seq
        touched[row.trace_id] = None
    return last, list(touched)


def satisfied_ids(connection: Connection, project: str, *, limit: int, before_us: int | None = None) -> list[str]:
    """Ids of the newest traces with feedback that did not fail: the neighbours a cluster is compared with."""
    statement = (
        select(traces.c.id)
        .join(feedback, feedback.c.trace_id == traces.c.id)
        .outerjoin(failures, failures.c.trace_id == traces.c.id)
        .where(traces.c.project == project, failures.c.id.is_(None))
        .group_by(traces.c.id, traces.c.started_us)
        .order_by(traces.c.started_us.desc(), traces.c.id)
        .limit(limit)
    )
    if before_us is not None:
        statement = statement.where(traces.c.started_us < before_us)
    return list(connection.execute(statement).scalars())


def user_counts(connection: Connection, project: str) -> dict[str, int]:
    """Traces per user, for those that name one."""
    statement = (
        select(traces.c.user, func.count())
        .where(traces.c.project == project, traces.c.user.is_not(None))
        .group_by(traces.c.user)
    )
    return {row[0]: row[1] for row in connection.execute(statement)}


def earlier_of_users(connection: Connection, project: str, users: Iterable[str], *, per_user: int) -> list[str]:
    """Ids of each user's newest `per_user` traces."""
    found: list[str] = []
    for user in dict.fromkeys(users):
        statement = (
            select(traces.c.id)
            .where(traces.c.project == project, traces.c.user == user)
            .order_by(traces.c.started_us.desc(), traces.c.id)
            .limit(per_user)
        )
        found += connection.execute(statement).scalars()
    return found


def count_traces(connection: Connection, project: str) -> dict[str, int]:
    """How many traces, spans and feedback the store holds."""
    return {
        name: connection.execute(select(func.count()).select_from(table).where(table.c.project == project)).scalar_one()
        for name, table in (("traces", traces), ("spans", spans), ("feedback", feedback))
    }


def trace_rows_after(connection: Connection, project: str, since_us: int, *, limit: int = 100_000) -> list[str]:
    """Ids of the traces that started after `since_us`, oldest first."""
    statement = (
        select(traces.c.id)
        .where(and_(traces.c.project == project, traces.c.started_us > since_us))
        .order_by(traces.c.started_us, traces.c.id)
        .limit(limit)
    )
    return list(connection.execute(statement).scalars())


def _rows(connection: Connection, table: Table, column: str, ids: Sequence[str]) -> list[Row[Any]]:
    statement = select(table).where(table.c[column].in_(bindparam("ids", expanding=True)))
    return [row for part in in_parts(list(ids)) for row in connection.execute(statement, {"ids": part})]


def _record(kind: type[Any], row: Row[Any], texts: dict[str, Any]) -> Any:
    said = row._mapping  # made anew at each access
    values = {name: said[name] for name in KINDS[kind].columns if name != "trace_id"}
    body = {name: tuple(value) if isinstance(value, list) and name in ("documents", "memories") else value
            for name, value in (texts.get(row.id) or {}).items() if name != ORIGIN}  # fmt: skip
    return kind(**values, **body)


def _grouped(records: Iterable[Any]) -> dict[str, list[Any]]:
    groups: dict[str, list[Any]] = {}
    for record in records:
        groups.setdefault(record.trace_id, []).append(record)
    return groups


def _order(span: Span) -> tuple[int, int, int, str]:
    return (span.started_us or 0, span.started_ns, span.position, span.external_id)
