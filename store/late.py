"""Traces put together from spans that arrive in pieces: again, from all the spans that the store holds by then."""

from collections.abc import Container, Iterator, Mapping

from sqlalchemy import Connection, func, select

from store.assembled import assemble
from store.bulk import listed
from store.records import AssembledTrace
from store.tables import spans
from store.traces import spans_of


def assembled_again(
    connection: Connection, assembled: Mapping[str, int], in_batch: Mapping[str, int], merged: Container[str]
) -> Iterator[AssembledTrace]:
    """Those traces of which the store holds other spans than they were put together from, put together from them all.

    `assembled` has of how many spans each was; `in_batch` counts a trace's spans that were just written: where these are all
    there are, and none was `merged` with another, nothing need be read.
    """
    counts = _span_counts(connection, list(assembled))
    partial = [
        id_
        for id_, count in assembled.items()
        if id_ in merged or not in_batch.get(id_, 0) == count == counts.get(id_, 0)
    ]
    if partial:
        yield from map(assemble, spans_of(connection, partial).values())


def _span_counts(connection: Connection, trace_ids: list[str]) -> dict[str, int]:
    if not trace_ids:
        return {}
    statement = (
        select(spans.c.trace_id, func.count())
        .where(spans.c.trace_id.in_(listed(connection, trace_ids)))
        .group_by(spans.c.trace_id)
    )
    return {row[0]: row[1] for row in connection.execute(statement)}
