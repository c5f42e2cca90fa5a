"""Feedback that does not say which log's trace it is about comes home, at once or when its trace arrives.

Feedback on a span goes to the span's trace; feedback on a conversation to the newest trace of it that is known when both
are there, and stays with that one. Feedback on a trace of whatever log goes to the one that its own source calls so, else to
the one log that does; where several do, it waits.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from sqlalchemy import Connection, delete, func, select

from store.addresses import SESSION, SPAN, TRACE, of_session, of_span, of_trace
from store.bulk import listed
from store.kinds import KINDS, Row
from store.records import Feedback, Span, Trace
from store.tables import bodies, feedback, parked, spans, traces
from store.traces import feedback_of

Home = tuple[str, str]
"""Source and external id of a trace."""


def with_homes(
    connection: Connection, project: str, given: Sequence[Feedback], sources: Collection[str]
) -> Iterator[Feedback]:
    """The feedback, moved to its trace where that is known, else as it is; `sources` may have a trace of any name."""
    if not given:
        return
    addresses = {item.trace_external_id for item in given}
    homes = _homes(connection, project, addresses) | _named(connection, project, addresses, sources)
    for item in given:
        yield _moved(item, homes)


def moved_home(
    connection: Connection,
    project: str,
    span_rows: Mapping[str, Row],
    trace_rows: Mapping[str, Row],
    sources: Collection[str],
) -> Iterator[Feedback]:
    """The feedback that waited for one of these spans, conversations or traces, taken from where it waited."""
    if connection.execute(select(feedback.c.id).where(feedback.c.project == project, parked).limit(1)).first() is None:
        return
    places = {of_span(value) for value in _column(Span, "external_id", span_rows)}
    places |= {of_session(value) for value in _column(Trace, "session", trace_rows) if value}
    places |= {of_trace(value) for value in _column(Trace, "external_id", trace_rows)}
    if not places:
        return
    statement = select(feedback.c.trace_id).where(
        feedback.c.project == project, parked, feedback.c.trace_external_id.in_(listed(connection, places))
    )
    waiting = [item for found in feedback_of(connection, _ids(connection, statement)).values() for item in found]
    addresses = {item.trace_external_id for item in waiting}
    names = {*sources, *_column(Trace, "source", trace_rows)}
    homes = _homes(connection, project, addresses) | _named(connection, project, addresses, names)
    for item in waiting:
        moved = _moved(item, homes)
        if moved is not item:
            connection.execute(delete(feedback).where(feedback.c.id == item.id))
            connection.execute(delete(bodies).where(bodies.c.id == item.id))
            yield moved


def count_parked(connection: Connection, project: str) -> int:
    """How many feedback wait for their trace."""
    waiting = select(func.count()).select_from(feedback).where(feedback.c.project == project, parked)
    return connection.execute(waiting).scalar_one()


def _moved(item: Feedback, homes: Mapping[str, Sequence[Home]]) -> Feedback:
    """The feedback at the home of its own source, or, of a trace's name, at the only one there is."""
    found = homes.get(item.trace_external_id, ())
    own = [home for home in found if home[0] == item.source]
    if not own and len(found) == 1 and item.trace_external_id.startswith(TRACE):
        own = [*found]
    return item.model_copy(update={"source": own[0][0], "trace_external_id": own[0][1]}) if own else item


def may_be(project: str, address: str, sources: Collection[str]) -> set[str]:
    """The ids that the trace has which an address calls by its name, in each of these logs; of another address none."""
    return set(_may_be(project, address, sources))


def _may_be(project: str, address: str, sources: Collection[str]) -> dict[str, Home]:
    if not address.startswith(TRACE):
        return {}
    name = address.removeprefix(TRACE)
    return {Trace(project=project, source=each, external_id=name).id: (each, name) for each in sorted(sources)}


def _named(
    connection: Connection, project: str, addresses: Iterable[str], sources: Collection[str]
) -> dict[str, list[Home]]:
    """Address of a trace by its name to the logs that have one."""
    ids = {id_: home for address in addresses for id_, home in _may_be(project, address, sources).items()}
    found: dict[str, list[Home]] = defaultdict(list)
    if ids:
        known = set(_ids(connection, select(traces.c.id).where(traces.c.id.in_(listed(connection, ids)))))
        for id_, home in ids.items():
            if id_ in known:
                found[of_trace(home[1])].append(home)
    return found


def _homes(connection: Connection, project: str, addresses: set[str]) -> dict[str, list[Home]]:
    """Address of a span or a conversation to its trace, one a source, for those that are known."""
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
    homes: dict[str, list[Home]] = defaultdict(list)
    for (source, address), trace in found.items():
        homes[address].append((source, trace))
    return homes


def _column(kind: type, name: str, rows: Mapping[str, Row]) -> Iterable[str]:
    place = KINDS[kind].columns.index(name)
    return (row.values[place] for row in rows.values())


def _ids(connection: Connection, statement: object) -> list[str]:
    return list(connection.execute(statement).scalars())  # type: ignore[call-overload]  # a select of one column
