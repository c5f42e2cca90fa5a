"""Feedback that names a span or a conversation and not its trace comes home, at once or when its trace arrives.

Feedback on a span goes to the span's trace; feedback on a conversation to the newest trace of it that is known when both
are there, and stays with that one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from sqlalchemy import Connection, delete, func, select

from store.addresses import SESSION, SPAN, of_session, of_span
from store.bulk import listed
from store.kinds import KINDS, Row
from store.records import Feedback, Span, Trace
from store.tables import bodies, feedback, parked, spans, traces
from store.traces import feedback_of


def with_homes(connection: Connection, project: str, given: Sequence[Feedback]) -> Iterator[Feedback]:
    """The feedback, moved to its trace where that is known, else as it is."""
    if not given:
        return
    homes = _homes(connection, project, {item.trace_external_id for item in given})
    for item in given:
        yield _moved(item, homes)


def moved_home(
    connection: Connection, project: str, span_rows: Mapping[str, Row], trace_rows: Mapping[str, Row]
) -> Iterator[Feedback]:
    """The feedback that waited for one of these spans or conversations, taken from where it waited."""
    if connection.execute(select(feedback.c.id).where(feedback.c.project == project, parked).limit(1)).first() is None:
        return
    places = {of_span(value) for value in _column(Span, "external_id", span_rows)}
    places |= {of_session(value) for value in _column(Trace, "session", trace_rows) if value}
    if not places:
        return
    statement = select(feedback.c.trace_id).where(
        feedback.c.project == project, parked, feedback.c.trace_external_id.in_(listed(connection, places))
    )
    waiting = [item for found in feedback_of(connection, _ids(connection, statement)).values() for item in found]
    homes = _homes(connection, project, {item.trace_external_id for item in waiting})
    for item in waiting:
        moved = _moved(item, homes)
        if moved is not item:
            connection.execute(delete(feedback).where(feedback.c.id == item.id))
            connection.execute(delete(bodies).where(bodies.c.id == item.id))
            yield moved


def _moved(item: Feedback, homes: Mapping[tuple[str, str], str]) -> Feedback:
    home = homes.get((item.source, item.trace_external_id))
    return item if home is None else item.model_copy(update={"trace_external_id": home})


def _homes(connection: Connection, project: str, addresses: set[str]) -> dict[tuple[str, str], str]:
    """Source and address to the trace's external id, for those that are known."""
    by_span = [address.removeprefix(SPAN) for address in addresses if address.startswith(SPAN)]
    by_session = [address.removeprefix(SESSION) for address in addresses if address.startswith(SESSION)]
    found: dict[tuple[str, str], str] = {}
    if by_span:
        statement = select(spans.c.source, spans.c.external_id, func.min(spans.c.trace_external_id))
        statement = statement.where(spans.c.project == project, spans.c.external_id.in_(listed(connection, by_span)))
        for row in connection.execute(statement.group_by(spans.c.source, spans.c.external_id)):
            found[row[0], of_span(row[1])] = row[2]
    if by_session:
        wanted = select(traces.c.source, traces.c.session, traces.c.external_id)
        wanted = wanted.where(traces.c.project == project, traces.c.session.in_(listed(connection, by_session)))
        for row in connection.execute(wanted.order_by(func.coalesce(traces.c.started_us, 0), traces.c.external_id)):
            found[row[0], of_session(row[1])] = row[2]
    return found


def _column(kind: type, name: str, rows: Mapping[str, Row]) -> Iterable[str]:
    place = KINDS[kind].columns.index(name)
    return (row.values[place] for row in rows.values())


def _ids(connection: Connection, statement: object) -> list[str]:
    return list(connection.execute(statement).scalars())  # type: ignore[call-overload]  # a select of one column
