"""Which traces of the same user, or session, came shortly after which."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, FromClause, select

from store.bodies import in_parts
from store.records import Trace
from store.tables import traces

PAIRS = 20_000
"""Pairs that are looked at a batch."""


def followers(
    connection: Connection, project: str, seen: Sequence[Trace], *, least_us: int, most_us: int, most: int
) -> dict[str, list[str]]:
    """Trace to the traces of the same user that began `least_us` to `most_us` after it, oldest first; of an unnamed user, of the
    same session. Of `seen` and of what those followed; users with more than `most` of `seen` within `most_us` are left out."""
    quiet = _quiet(seen, most_us, most)
    first, second = traces.alias("first"), traces.alias("second")
    gap = second.c.started_us.between(first.c.started_us + least_us, first.c.started_us + most_us)

    def pairs(mine: FromClause, ids: list[str]) -> Iterator[Any]:
        for part in in_parts(ids):
            for same in _same(first, second):
                statement = select(first.c.id, second.c.id.label("later"), second.c.started_us)
                within = (first.c.project == project, second.c.project == project, same, gap, mine.c.id.in_(part))
                yield from connection.execute(statement.where(*within).limit(PAIRS))

    earlier = dict.fromkeys([*quiet, *(row.id for row in pairs(second, quiet))])
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for row in pairs(first, list(earlier)):
        found[row.id][row.later] = row.started_us
    return {id_: sorted(later, key=lambda each: (later[each], each)) for id_, later in found.items()}


def _same(first: FromClause, second: FromClause) -> tuple[ColumnElement[bool], ...]:
    by_session = (first.c.user.is_(None)) & (second.c.user.is_(None)) & (first.c.session == second.c.session)
    return (first.c.user == second.c.user, by_session)


def _quiet(seen: Sequence[Trace], most_us: int, most: int) -> list[str]:
    """Ids of the traces whose user or session has at most `most` of them in any such time."""
    visits: dict[tuple[str | None, str | None], list[Trace]] = defaultdict(list)
    for trace in seen:
        if trace.started_us is not None and (trace.user or trace.session):
            visits[trace.user, None if trace.user else trace.session].append(trace)
    found = []
    for them in visits.values():
        times = sorted(trace.started_us or 0 for trace in them)
        if all(late - early > most_us for early, late in zip(times, times[most:], strict=False)):
            found += [trace.id for trace in them]
    return found
