"""What can be taken out as a file: one JSON object a line, a page of the store at a time, so that size does not matter."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from starlette.responses import Response, StreamingResponse

from filmroom.console.console import Console
from store.audit import audit_page
from store.change_page import change_page
from store.errors import NotFound
from store.opinions import all_opinions
from store.queue_page import QueueFilter, items, matching
from store.retrain_page import retrain_page

_CHUNK = 500

EXPORTS = {
    "reviews": "every opinion and verdict: who, what, why, how long",
    "corrections": "every correction with its cluster, route and proposed change",
    "changes": "every applied change with its hold",
    "retrains": "every evaluation of the retrain trigger",
    "audit": "the audit log",
}

Rows = Iterator[dict[str, Any]]


def exported(console: Console, name: str) -> Response:
    """The file. Raises NotFound for a name that is not in EXPORTS."""
    makers: dict[str, Callable[[Console], Rows]] = {
        "reviews": _reviews, "corrections": _corrections, "changes": _changes, "retrains": _retrains, "audit": _audit,
    }  # fmt: skip
    if name not in makers:
        raise NotFound(f"no export {name[:40]}: {', '.join(EXPORTS)}")
    lines = (json.dumps(row, default=str) + "\n" for row in makers[name](console))
    headers = {
        "content-disposition": f'attachment; filename="filmroom-{console.project}-{name}.jsonl"'.encode(
            "ascii", "replace"
        ).decode()
    }
    return StreamingResponse(lines, headers=headers, media_type="application/x-ndjson")


def _reviews(console: Console) -> Rows:
    with console.store.read() as connection:
        found = all_opinions(connection, console.project, limit=10_000_000)
    for each in found:
        yield {"opinion": each.id, **each.model_dump(mode="json")}


def _corrections(console: Console) -> Rows:
    cap, reviewers = console.workspace.policy.queue_cap, console.settings.console.reviewers
    with console.store.read() as connection:
        ids = matching(connection, console.project, QueueFilter(show="all"), cap=cap, reviewers=reviewers, me="",
                       now_us=console.now_us())  # fmt: skip
    for start in range(0, len(ids), _CHUNK):
        with console.store.read() as connection:
            yield from items(connection, console.project, ids[start : start + _CHUNK], now_us=console.now_us())


def _changes(console: Console) -> Rows:
    yield from _paged(console, lambda connection, at: change_page(connection, console.project, offset=at, limit=_CHUNK))


def _retrains(console: Console) -> Rows:
    for found in _paged(
        console, lambda connection, at: retrain_page(connection, console.project, offset=at, limit=_CHUNK)
    ):
        yield {"retrain": found.id, **found.model_dump(mode="json")}


def _audit(console: Console) -> Rows:
    before: int | None = None
    while True:
        with console.store.read() as connection:
            lines = audit_page(connection, console.project, before=before, limit=_CHUNK)
        yield from lines
        if len(lines) < _CHUNK:
            return
        before = lines[-1]["seq"]


def _paged(console: Console, look: Callable[[Any, int], list[Any]]) -> Iterator[Any]:
    at = 0
    while True:
        with console.store.read() as connection:
            found = look(connection, at)
        yield from found
        if len(found) < _CHUNK:
            return
        at += _CHUNK
