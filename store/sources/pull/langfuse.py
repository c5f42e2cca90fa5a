"""Langfuse's public API: observations (version 2) by their start, scores (version 3) by when they were given.

A server without these answers 404; then its traces are listed and read one by one, and scores come by version 2.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import JsonValue

from store.records import Rejected
from store.sources.contract import Item
from store.sources.langfuse import items_of_page
from store.sources.pull.client import BrokenPage, Missing
from store.sources.pull.contract import Task
from store.sources.pull.slices import Pages, Slice, iso, pages_of, rejected

_FIELDS = "core,basic,time,io,metadata,model,usage,prompt,metrics,trace_context"
_MOST_SCORES = 100


def traces(task: Task) -> Iterator[Item]:
    """Observations of a page become traces where their root is among them."""
    if not _has(task, "/api/public/v2/observations", {"limit": 1}):
        yield from _older_traces(task)
        return

    def pages(part: Slice, tries: int) -> Iterable[JsonValue]:
        bounds = {"fromStartTime": iso(part.start_us), "toStartTime": iso(part.end_us)}
        yield from _by_cursor(task, "/api/public/v2/observations", bounds | {"fields": _FIELDS}, task.page_size, tries)

    yield from _items(task, task.fresh, pages, "/api/public/v2/observations")


def feedback(task: Task) -> Iterator[Item]:
    """Scores by their own time: a score that comes late for an old trace is a new score."""
    path = "/api/public/v3/scores"
    if not _has(task, path, {"limit": 1}):
        older = "/api/public/v2/scores"
        yield from _items(task, task.fresh, _numbered(task, older), older)
        return

    def pages(part: Slice, tries: int) -> Iterable[JsonValue]:
        bounds = {"fromTimestamp": iso(part.start_us), "toTimestamp": iso(part.end_us), "fields": "details,subject"}
        yield from _by_cursor(task, path, bounds, min(task.page_size, _MOST_SCORES), tries)

    yield from _items(task, task.fresh, pages, path)


def _items(task: Task, span: Slice, pages: Pages, place: str) -> Iterator[Item]:
    for page in pages_of(span, pages):
        if isinstance(page, Rejected):
            yield page
        else:
            yield from items_of_page(page, task.options, place=place)


def _by_cursor(task: Task, path: str, params: dict[str, str], limit: int, tries: int) -> Iterator[JsonValue]:
    cursor: str | None = None
    while True:
        more = {"cursor": cursor} if cursor else {}
        page: Any = task.client.get(path, {**params, "limit": limit, **more}, tries=tries)
        yield page
        cursor = _meta(page, path).get("cursor")
        if not cursor:
            return


def _numbered(task: Task, path: str) -> Pages:
    def pages(part: Slice, tries: int) -> Iterable[JsonValue]:
        bounds = {"fromTimestamp": iso(part.start_us), "toTimestamp": iso(part.end_us)}
        number = 1
        while True:
            page: Any = task.client.get(
                path, {**bounds, "limit": min(task.page_size, 100), "page": number}, tries=tries
            )
            yield page
            if number >= int(_meta(page, path).get("totalPages") or 0):
                return
            number += 1

    return pages


def _older_traces(task: Task) -> Iterator[Item]:
    """Each trace with its observations and scores; one that cannot be read is rejected alone."""
    for page in pages_of(task.fresh, _numbered(task, "/api/public/traces")):
        if isinstance(page, Rejected):
            yield page
            continue
        rows: Any = page.get("data") if isinstance(page, dict) else None
        for row in rows or ():
            path = f"/api/public/traces/{row['id']}"
            try:
                yield from items_of_page(task.client.get(path), task.options, place=path, whole=True)
            except BrokenPage as error:
                yield rejected(error)


def _has(task: Task, path: str, params: dict[str, str | int]) -> bool:
    try:
        task.client.get(path, params)
    except Missing:
        return False
    except BrokenPage:
        return True
    return True


def _meta(page: Any, path: str) -> dict[str, Any]:
    meta = page.get("meta") if isinstance(page, dict) else None
    if not isinstance(meta, dict):
        raise BrokenPage(path, "not a page of Langfuse: it has no `meta`", str(page))
    return meta
