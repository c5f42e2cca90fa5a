"""Traces put together from spans that arrive in pieces: again, from all the spans that the store holds by then."""

from collections.abc import Iterator, Mapping

from sqlalchemy import Connection, func, select

from store.assembled import assemble
from store.bulk import listed
from store.records import AssembledTrace
from store.tables import spans
from store.traces import spans_of, traces_of


def assembled_again(
    connection: Connection, assembled: Mapping[str, AssembledTrace], in_batch: Mapping[str, int]
) -> Iterator[AssembledTrace]:
    """Those traces of which the store holds other spans than they were put together from, put together from them all.

    `in_batch` counts a trace's spans that were just written: where these are all there are, nothing need be read.
    """
    counts = _span_counts(connection, list(assembled))
    partial = [
        id_ for id_, trace in assembled.items() if not in_batch.get(id_, 0) == trace.span_count == counts.get(id_, 0)
    ]
    if not partial:
        return
    known = {trace.id: trace.held_apart for trace in traces_of(connection, partial)}
    for id_, found in spans_of(connection, partial).items():
        yield assemble(found, {**known.get(id_, {}), **assembled[id_].held_apart})


def _span_counts(connection: Connection, trace_ids: list[str]) -> dict[str, int]:
    if not trace_ids:
        return {}
    statement = (
        select(spans.c.trace_id, func.count())
        .where(spans.c.trace_id.in_(listed(connection, trace_ids)))
        .group_by(spans.c.trace_id)
    )
    return {row[0]: row[1] for row in connection.execute(statement)}
