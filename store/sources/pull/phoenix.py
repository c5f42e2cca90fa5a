"""Phoenix: spans by their start, then the annotations of the spans and traces that are in the store.

Annotations are asked for by the ids they are on, since nothing lists those that have changed.
"""

from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

from pydantic import JsonValue

from store.records import Rejected
from store.sources.contract import Item
from store.sources.phoenix import items_of_page
from store.sources.pull.client import BrokenPage
from store.sources.pull.contract import Task
from store.sources.pull.slices import Slice, iso, pages_of, rejected

_MOST_SPANS = 1000
_IDS = 100
"""Ids a request: they stand in its address."""
_ANNOTATIONS = 1000


def traces(task: Task) -> Iterator[Item]:
    """The spans of each day in the order of their start, those of a trace together where a page holds them all."""

    def pages(part: Slice, tries: int) -> Iterable[JsonValue]:
        bounds = {"start_time": iso(part.start_us), "end_time": iso(part.end_us), "sort": "start_time", "order": "asc"}
        return _by_cursor(task, "spans", bounds, min(task.page_size, _MOST_SPANS), tries)

    for page in pages_of(task.fresh, pages):
        if isinstance(page, Rejected):
            yield page
        else:
            yield from items_of_page(page, task.options, place=_path(task, "spans"))


def feedback(task: Task) -> Iterator[Item]:
    """The annotations on spans and traces of the last weeks."""
    for part in (*task.settled.days(), *task.fresh.days()):
        known = task.spans(part)
        yield from _annotations(task, "span", [span for _, span in known])
        yield from _annotations(task, "trace", list(dict.fromkeys(trace for trace, _ in known)))


def _annotations(task: Task, kind: str, ids: list[str]) -> Iterator[Item]:
    name = f"{kind}_annotations"
    for start in range(0, len(ids), _IDS):
        try:
            for page in _by_cursor(task, name, {f"{kind}_ids": ids[start : start + _IDS]}, _ANNOTATIONS):
                yield from items_of_page(page, task.options, place=_path(task, name))
        except BrokenPage as error:
            yield rejected(error)


def _by_cursor(task: Task, name: str, params: dict[str, Any], limit: int, tries: int = 5) -> Iterator[JsonValue]:
    cursor: str | None = None
    while True:
        more = {"cursor": cursor} if cursor else {}
        page: Any = task.client.get(_path(task, name), {**params, "limit": limit, **more}, tries=tries)
        if not isinstance(page, dict):
            raise BrokenPage(_path(task, name), "not a page of Phoenix", str(page))
        yield page
        cursor = page.get("next_cursor")
        if not cursor:
            return


def _path(task: Task, name: str) -> str:
    return f"/v1/projects/{quote(task.space or 'default', safe='')}/{name}"
