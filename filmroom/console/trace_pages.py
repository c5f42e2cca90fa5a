"""The log: search, one trace, and a text of it whole."""

from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError
from starlette.responses import PlainTextResponse, Response

from filmroom.console.ask import Ask, address_with
from filmroom.console.console import Console
from filmroom.console.format import pretty
from filmroom.console.guard import Page
from filmroom.console.timeline import episode_view
from store.errors import NotAllowed, NotFound
from store.failures import failure, failure_ids
from store.trace_page import TraceFilter, TracePage, is_mark, trace_page
from store.traces import episode

NAMES = ("text", "user", "session", "failed", "cluster", "after", "before")


def traces(ask: Ask) -> Response:
    """Search."""
    given = {name: ask.query(name) for name in NAMES}
    wanted = read_trace_filter(given)
    found = traces_view(ask.console, wanted, start=ask.query("start"))
    further = address_with("/traces", **given, start=found.following) if found.following else ""
    return ask.page("traces.html", given=given, found=found, further=further, first=not ask.query("start"),
                    address=address_with("/traces", **given))  # fmt: skip


def trace(ask: Ask) -> Response:
    """One trace."""
    return ask.page("trace.html", view=trace_view(ask.console, ask.part("id")))


def text(ask: Ask) -> Response:
    """The whole input or output of a trace or step, as plain text."""
    wanted = ask.part("what")
    with ask.console.store.read() as connection:
        found = episode(connection, ask.part("id"))
    if found is None or found.trace.project != ask.console.project:
        raise NotFound(f"no trace {ask.part('id')}")
    values: dict[str, Any] = {"input": found.trace.input, "output": found.trace.output}
    values |= {span.id: {"in": span.input, "out": span.output, "error": span.error} for span in found.spans}
    if wanted not in values:
        raise NotFound(f"{ask.part('id')} has no {wanted}")
    return PlainTextResponse(pretty(values[wanted]))


def read_trace_filter(given: dict[str, str]) -> TraceFilter:
    """The filter of these parameters. Raises NotAllowed for a time or value that cannot be read."""
    fields: dict[str, Any] = {name: given.get(name, "") for name in ("text", "user", "session", "failed", "cluster")}
    for name in ("after", "before"):
        if given.get(name):
            fields[f"{name}_us"] = _moment(given[name])
    try:
        return TraceFilter.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        raise NotAllowed(f"filter {'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def traces_view(console: Console, wanted: TraceFilter, *, start: str = "") -> TracePage:
    """A page of the log. Raises NotAllowed for a `start` that is no place in it."""
    if not is_mark(start):
        raise NotAllowed(f"{start[:40]!r} is no place that a page begins at")
    with console.store.read() as connection:
        return trace_page(connection, console.project, wanted, start=start)


def trace_view(console: Console, trace_id: str) -> dict[str, Any]:
    """One trace with its steps, feedback and, where it failed, failure and cluster. Raises NotFound."""
    with console.store.read() as connection:
        found = episode(connection, trace_id)
        if found is None or found.trace.project != console.project:
            raise NotFound(f"no trace {trace_id}")
        failed_id = failure_ids(connection, [trace_id]).get(trace_id)
        failed = failure(connection, failed_id) if failed_id else None
    view = episode_view(found, failing=failed.span_id if failed else None)
    return {**view, "failure": failed.id if failed else None, "cluster": failed.cluster_id if failed else None,
            "probability": failed.probability if failed else None}  # fmt: skip


def _moment(text_: str) -> int:
    try:
        found = datetime.fromisoformat(text_)
    except ValueError as error:
        raise NotAllowed(f"{text_[:40]!r} is no time: write 2026-01-31 or 2026-01-31T14:00") from error
    try:
        return round((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1_000_000)
    except (OverflowError, ValueError) as error:
        raise NotAllowed(f"{text_[:40]!r} is beyond what a log can hold") from error


PAGES = [Page("/traces", traces), Page("/traces/{id}", trace), Page("/traces/{id}/text/{what}", text)]
