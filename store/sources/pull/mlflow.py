"""MLflow 3: traces are searched by their start; those that are new or open are read whole, the others' feedback is taken.

A search gives the assessments of each trace with it, and nothing that says which have changed: so older traces are listed
again as long as feedback may come.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import JsonValue

from store.records import Feedback, Rejected
from store.sources.contract import Item
from store.sources.mlflow import items_of_trace
from store.sources.otlp_json import attributes_of
from store.sources.pull.client import BrokenPage
from store.sources.pull.contract import Task
from store.sources.pull.slices import Slice, pages_of, rejected

_SEARCH = "/api/3.0/mlflow/traces/search"
_WHOLE = "/api/3.0/mlflow/traces/batchGet"
_MOST_LISTED = 500
_AT_ONCE = 20
"""Whole traces a request: they can be large."""


def traces(task: Task) -> Iterator[Item]:
    """Whole traces, and the feedback of those that are in the store and have not changed."""
    experiments = _experiments(task)
    for part, always in ((task.settled, False), (task.fresh, True)):

        def pages(piece: Slice, tries: int) -> Iterable[JsonValue]:
            return _search(task, experiments, piece, tries)

        for page in pages_of(part, pages):
            if isinstance(page, Rejected):
                yield page
            else:
                yield from _page(task, page, always=always)


def feedback(task: Task) -> Iterator[Item]:
    """None: it came with the traces."""
    yield from ()


def _page(task: Task, page: Any, *, always: bool) -> Iterator[Item]:
    infos: dict[str, Any] = {info["trace_id"]: info for info in page.get("traces", ()) if "trace_id" in info}
    known = set() if always else task.complete(list(infos))
    for id_ in known:
        items = items_of_trace({"info": infos[id_], "data": {"spans": []}}, task.options, place=f"{_SEARCH} {id_}")
        yield from (item for item in items if isinstance(item, Feedback | Rejected))
    wanted = [id_ for id_ in infos if id_ not in known]
    for start in range(0, len(wanted), _AT_ONCE):
        yield from _whole(task, wanted[start : start + _AT_ONCE], infos)


def _whole(task: Task, ids: list[str], infos: dict[str, Any]) -> Iterator[Item]:
    """Whole traces; where they cannot be read together, one by one."""
    try:
        answer: Any = task.client.get(_WHOLE, {"trace_ids": ids})
    except BrokenPage as error:
        if len(ids) == 1:
            yield rejected(error)
            return
        for id_ in ids:
            yield from _whole(task, [id_], infos)
        return
    found = {each["trace_info"]["trace_id"]: each for each in answer.get("traces", ())}
    for id_ in ids:
        whole = found.get(id_, {})
        spans = [{**span, "attributes": attributes_of(span.get("attributes"))} for span in whole.get("spans", ())]
        trace = {"info": infos[id_], "data": {"spans": spans}}
        yield from items_of_trace(trace, task.options, place=f"{_WHOLE} {id_}")


def _search(task: Task, experiments: list[str], part: Slice, tries: int) -> Iterator[JsonValue]:
    query: dict[str, Any] = {
        "locations": [
            {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": each}} for each in experiments
        ],
        "filter": f"timestamp_ms >= {part.start_us // 1000} AND timestamp_ms < {-(-part.end_us // 1000)}",
        "max_results": min(task.page_size, _MOST_LISTED),
        "order_by": ["timestamp_ms ASC"],
    }
    while True:
        page: Any = task.client.post(_SEARCH, query, tries=tries)
        if not isinstance(page, dict):
            raise BrokenPage(_SEARCH, "not a page of MLflow", str(page))
        yield page
        if not page.get("next_page_token"):
            return
        query["page_token"] = page["next_page_token"]


def _experiments(task: Task) -> list[str]:
    """Ids of the experiments: the named one, or all that are active."""
    if task.space is not None:
        return [task.space] if task.space.isdecimal() else [_experiment_named(task, task.space)]
    found: list[str] = []
    token: str | None = None
    while True:
        body: dict[str, JsonValue] = {"max_results": 1000, "view_type": "ACTIVE_ONLY", "page_token": token or ""}
        page: Any = task.client.post("/api/2.0/mlflow/experiments/search", body)
        found += [each["experiment_id"] for each in page.get("experiments", ())]
        token = page.get("next_page_token")
        if not token:
            return found


def _experiment_named(task: Task, name: str) -> str:
    answer: Any = task.client.get("/api/2.0/mlflow/experiments/get-by-name", {"experiment_name": name})
    return str(answer["experiment"]["experiment_id"])
