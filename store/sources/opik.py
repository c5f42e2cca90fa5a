"""Opik: traces, spans and scores as the SDK sends them, pages of the API, exports with `feedback_scores`.

The SDK sends a span or a trace first and what ended it later, under an address that alone names its id. Of requests
recorded as files, that carry the address in their names, those of one folder are joined.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from pydantic import JsonValue

from store.records import Rejected
from store.sources.assembly import Draft, assembled
from store.sources.contract import BadRecord, Item, Sample, SourceOptions
from store.sources.fields import as_id
from store.sources.files import reject
from store.sources.grouping import Grouping, read_grouped
from store.sources.json_records import JsonRecord, take_sample
from store.sources.media import may_hold_media, shortened
from store.sources.opik_records import score_feedback, score_list, span_draft, trace_draft
from store.sources.opik_requests import Recorded, address_of
from store.sources.payload import Object, list_of, packed
from store.sources.rows import header_of, read_rows

name = "opik"

_LISTS = ("traces", "spans", "scores", "content")
_OF_OPIK = (
    "project_name",
    "feedback_scores",
    "error_info",
    "total_estimated_cost",
    "last_updated_at",
    "visibility_mode",
)


def recognise(sample: Sample) -> str | None:
    """Recognises spans and traces with their project, batches and pages of them, scores, and exported tables."""
    for value in sample.objects:
        for item in (value, *_rows(value)):
            kind = _kind(item)
            if kind is not None:
                return f"Opik {kind}"
    if not sample.values:
        columns = {column.strip() for column in header_of(sample)}
        if {"id", "start_time"} <= columns and any(column.startswith("feedback_scores.") for column in columns):
            return "a table of Opik traces"
    if address_of(sample.path) is not None and sample.objects and sample.objects[0].get("source") == "sdk":
        return "an update of Opik"
    return None


def read(path: Path, options: SourceOptions) -> Iterator[Item]:
    """The traces, spans and scores of a file; spans of a trace that is in the same file are put together with it."""
    reading = _Reading(path, options)
    yield from read_grouped(path, _records(path), Grouping(reading.alone, _key_of, reading.together))


def _records(path: Path) -> Iterator[JsonRecord | Rejected]:
    """The objects one by one; batches and pages taken apart, what was sent later joined in."""
    recorded = Recorded(path)
    for row in read_rows(path, take_sample(path)):
        if isinstance(row, Rejected):
            yield row
            continue
        for value in _rows(row.cells) or [row.cells]:
            try:
                joined = recorded.joined(value)
            except BadRecord as error:
                yield reject(path, row.line, str(error), packed(value))
                continue
            if joined is not None:
                yield JsonRecord(row.line, joined, packed(joined))


def _rows(value: Object) -> list[Object]:
    """The elements of a batch or a page; empty where it is neither."""
    items = [item for key in _LISTS for item in list_of(value.get(key)) if isinstance(item, dict)]
    return items if not {"id", "start_time"} <= value.keys() else []


def _kind(value: Object) -> str | None:
    if {"name", "value", "id"} <= value.keys() and ({"category_name", "reason", "project_name"} & value.keys()):
        return "scores" if "source" in value else None
    ours = any(key in value for key in _OF_OPIK)
    if not ours or "start_time" not in value or "id" not in value or "run_type" in value or "context" in value:
        return None
    return "spans" if "trace_id" in value else "traces"


def _key_of(record: JsonRecord) -> str:
    found = as_id(record.value.get("trace_id")) or as_id(record.value.get("id"))
    if found is None:
        raise BadRecord("id: missing; an update alone does not say what it is of")
    return found


class _Reading:
    """Makes our records of the traces, spans and scores of one file."""

    def __init__(self, path: Path, options: SourceOptions) -> None:
        self._path = path
        self._owner: Draft = {"project": options.project, "source": options.source or name}

    def alone(self, record: JsonRecord) -> Iterable[Item] | None:
        if _kind(record.value) == "scores":
            return (score_feedback(record.value, self._owner),)
        if "id" not in record.value:
            raise BadRecord("neither a trace, a span nor a score of Opik")
        return None

    def together(self, records: list[JsonRecord]) -> list[Item]:
        def refuse(reason: str) -> Rejected:
            return reject(self._path, records[0].line, reason, b"\n".join(record.data for record in records))

        apart: Object = {}
        values = [_light(record) for record in records]
        spans = [value for value in values if "trace_id" in value]
        traces = [value for value in values if "trace_id" not in value]
        steps = [span_draft(value, apart) for value in spans]
        trace: Draft | None = None
        for value in traces:
            said = {key: item for key, item in trace_draft(value, apart).items() if item is not None}
            trace = (trace or {}) | said
        if trace is not None:
            trace["held_apart"] = apart
        items = assembled(trace, steps, self._owner, refuse)
        for value in values:
            for score in score_list(value):
                items.append(score_feedback(score, self._owner))
        return items


def _light(record: JsonRecord) -> Object:
    if not may_hold_media(record.data):
        return record.value
    value: JsonValue = shortened(record.value)
    return value if isinstance(value, dict) else record.value
