"""The log a page at a time: newest first, by keyset, so that a page costs the same however long the log is.

Words are looked for in the stored text itself, newest first, for a bounded time; the answer says how far it got, and the
next page goes on from there. There is no second copy of what people wrote.
"""

import time
from collections.abc import Callable
from typing import Any, Literal

from pydantic import Field
from sqlalchemy import ColumnElement, Connection, Row, and_, exists, or_, select

from store.bodies import bodies_of
from store.records import Record
from store.tables import failures, spans, traces

PAGE = 50
CHUNK = 500
SEARCH_S = 0.15
"""How long one page looks for words."""
PREVIEW = 160
"""Characters of the input shown in a line."""


class TraceFilter(Record):
    """What somebody looks for in the log."""

    text: str = Field(default="", max_length=200)
    """Words in what was asked, answered or called; or an id."""
    user: str = Field(default="", max_length=300)
    session: str = Field(default="", max_length=300)
    failed: Literal["", "yes", "no"] = ""
    cluster: str = Field(default="", max_length=40)
    after_us: int | None = None
    """Started at or after this moment, microseconds since 1970 UTC."""
    before_us: int | None = None
    """Started before this moment."""


class TracePage(Record):
    """One page of traces."""

    rows: tuple[dict[str, Any], ...]
    """`trace, started_us, ended_us, name, user, session, status, failure, cluster, preview`."""
    following: str | None
    """Where the next page begins; None: this is the last."""
    looked: int | None
    """Traces whose text was looked through; None: no words were asked for."""
    looked_back_to_us: int | None = None
    """When the last of them started."""


def trace_page(
    connection: Connection,
    project: str,
    wanted: TraceFilter,
    *,
    start: str = "",
    limit: int = PAGE,
    timer: Callable[[], float] = time.perf_counter,
) -> TracePage:
    """The traces of the filter from `start` (a `following` of the page before) on, newest first, undated ones last."""
    if not wanted.text:
        found = _rows(connection, project, wanted, start, limit + 1)
        shown = found[:limit]
        following = _mark(shown[-1]) if len(found) > limit else None
        return TracePage(rows=_lines(connection, shown), following=following, looked=None)
    known = [] if start else _by_id(connection, project, wanted.text)
    if known:
        return TracePage(rows=_lines(connection, known), following=None, looked=0)
    return _searched(connection, project, wanted, start, limit, timer)


def _searched(
    connection: Connection, project: str, wanted: TraceFilter, start: str, limit: int, timer: Callable[[], float]
) -> TracePage:
    until = timer() + SEARCH_S
    words = wanted.text.casefold().split()
    hits: list[Row[Any]] = []
    looked, at, last_us = 0, start, None
    while True:
        chunk = _rows(connection, project, wanted, at, CHUNK)
        texts = _texts(connection, [row.id for row in chunk])
        for row in chunk:
            looked, at, last_us = looked + 1, _mark(row), row.started_us
            if all(word in texts.get(row.id, "") for word in words):
                hits.append(row)
            if len(hits) == limit:
                break
        ended = len(chunk) < CHUNK and len(hits) < limit
        if ended or len(hits) == limit or timer() > until:
            break
    return TracePage(rows=_lines(connection, hits), following=None if ended else at, looked=looked,
                     looked_back_to_us=last_us)  # fmt: skip


def _texts(connection: Connection, trace_ids: list[str]) -> dict[str, str]:
    """Trace id to all words of it and of its steps, case folded."""
    steps = {row.id: row.trace_id for row in connection.execute(
        select(spans.c.id, spans.c.trace_id).where(spans.c.trace_id.in_(trace_ids)))}  # fmt: skip
    found: dict[str, list[str]] = {}
    for owner, body in bodies_of(connection, [*trace_ids, *steps]).items():
        found.setdefault(steps.get(owner, owner), []).append(_words(body))
    return {id_: " ".join(parts).casefold() for id_, parts in found.items()}


def _words(value: Any) -> str:
    """The text in a JSON value, without its brackets.

    >>> _words({"a": ["x", {"b": 1}], "c": None})
    'a x b 1 c'
    """
    if isinstance(value, dict):
        return " ".join(f"{name} {_words(each)}".rstrip() for name, each in value.items())
    if isinstance(value, list):
        return " ".join(_words(each) for each in value)
    return "" if value is None else str(value)


def _rows(connection: Connection, project: str, wanted: TraceFilter, start: str, limit: int) -> list[Row[Any]]:
    """Dated traces by time, then undated ones by id."""
    found: list[Row[Any]] = []
    if not start.startswith("-"):
        dated = _select(project, wanted).where(traces.c.started_us.is_not(None))
        if start:
            moment, _, id_ = start.partition(".")
            at_us = int(moment)
            dated = dated.where(
                traces.c.started_us <= at_us,
                or_(traces.c.started_us < at_us, and_(traces.c.started_us == at_us, traces.c.id < id_)),
            )
        dated = dated.order_by(traces.c.started_us.desc(), traces.c.id.desc()).limit(limit)
        found = list(connection.execute(dated))
    if len(found) == limit or wanted.after_us is not None or wanted.before_us is not None:
        return found
    undated = _select(project, wanted).where(traces.c.started_us.is_(None))
    if start.startswith("-"):
        undated = undated.where(traces.c.id < start[2:])
    undated = undated.order_by(traces.c.id.desc()).limit(limit - len(found))
    return [*found, *connection.execute(undated)]


def _select(project: str, wanted: TraceFilter) -> Any:
    statement = select(
        traces.c.id, traces.c.started_us, traces.c.ended_us, traces.c.name, traces.c.user, traces.c.session,
        traces.c.status,
    ).where(traces.c.project == project)  # fmt: skip
    for condition in _conditions(project, wanted):
        statement = statement.where(condition)
    return statement


def _conditions(project: str, wanted: TraceFilter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    for column, value in ((traces.c.user, wanted.user), (traces.c.session, wanted.session)):
        if value:
            found.append(column == value)
    if wanted.after_us is not None:
        found.append(traces.c.started_us >= wanted.after_us)
    if wanted.before_us is not None:
        found.append(traces.c.started_us < wanted.before_us)
    if wanted.cluster:
        inside = select(failures.c.trace_id).where(
            failures.c.project == project, failures.c.cluster_id == wanted.cluster
        )
        found.append(traces.c.id.in_(inside))
    failed = exists().where(failures.c.trace_id == traces.c.id, failures.c.withdrawn.is_(False))
    if wanted.failed == "yes":
        found.append(failed)
    if wanted.failed == "no":
        found.append(~failed)
    return found


def _by_id(connection: Connection, project: str, text: str) -> list[Row[Any]]:
    statement = _select(project, TraceFilter()).where(traces.c.id == text)
    return list(connection.execute(statement))


def _mark(row: Row[Any]) -> str:
    return f"-.{row.id}" if row.started_us is None else f"{row.started_us}.{row.id}"


def is_mark(text: str) -> bool:
    """Whether it is a place that a page can begin at.

    >>> is_mark("17.trc_0"), is_mark("-.trc_0"), is_mark(""), is_mark("x")
    (True, True, True, False)
    """
    moment, dot, id_ = text.partition(".")
    return not text or bool(
        dot and id_ and (moment == "-" or (moment.removeprefix("-").isdecimal() and len(moment) < 19))
    )


def _lines(connection: Connection, rows: list[Row[Any]]) -> tuple[dict[str, Any], ...]:
    ids = [row.id for row in rows]
    texts = bodies_of(connection, ids)
    statement = select(failures.c.trace_id, failures.c.id, failures.c.cluster_id).where(
        failures.c.trace_id.in_(ids), failures.c.withdrawn.is_(False)
    )
    failed = {row.trace_id: row for row in connection.execute(statement)}
    return tuple(
        {
            "trace": row.id,
            "started_us": row.started_us,
            "ended_us": row.ended_us,
            "name": row.name,
            "user": row.user,
            "session": row.session,
            "status": row.status,
            "failure": failed[row.id].id if row.id in failed else None,
            "cluster": failed[row.id].cluster_id if row.id in failed else None,
            "preview": _words((texts.get(row.id) or {}).get("input"))[:PREVIEW],
        }
        for row in rows
    )
