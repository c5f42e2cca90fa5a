"""Weave: calls as the SDK sends them or as they are exported, and feedback on calls.

Feedback names a call, not a trace; what is not said beside its call waits for the call's trace.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from store.records import Rejected
from store.sources.assembly import Draft, out_of_spans
from store.sources.contract import BadRecord, Item, Sample, SourceOptions
from store.sources.fields import as_id
from store.sources.files import reject
from store.sources.grouping import Grouping, read_grouped
from store.sources.json_records import JsonRecord, json_records
from store.sources.media import may_hold_media, shortened
from store.sources.payload import Object, list_of, object_of, packed
from store.sources.weave_calls import call_draft, claims_of
from store.sources.weave_feedback import call_feedback

name = "weave"


def recognise(sample: Sample) -> str | None:
    """Recognises calls by their `op_name`, feedback by its `weave_ref`, and batches of them."""
    for value in sample.objects:
        for item in (value, *_batch(value)):
            if _is_call(item):
                return "Weave calls"
            if _is_feedback(item):
                return "Weave feedback"
    return None


def read(path: Path, options: SourceOptions) -> Iterator[Item]:
    """The traces, spans and feedback of a file; the calls of a trace are put together."""
    reading = _Reading(path, options)
    yield from read_grouped(path, _records(path), Grouping(reading.alone, _key_of, reading.together))


def _records(path: Path) -> Iterator[JsonRecord | Rejected]:
    for record in json_records(path):
        batch = [] if isinstance(record, Rejected) else _batch(record.value)
        if isinstance(record, Rejected) or not batch:
            yield record
            continue
        for item in batch:
            yield JsonRecord(record.line, item, packed(item))


def _batch(value: Object) -> list[Object]:
    """The calls or the feedback of a batch, of starts and ends apart too, or of a page; empty where it is none."""
    items = [object_of(item) for key in ("batch", "calls", "result") for item in list_of(value.get(key))]
    return [_sent(item) for item in items if item]


def _sent(item: Object) -> Object:
    """A call's start or end without its envelope."""
    request = object_of(item.get("req"))
    return object_of(request.get("start")) or object_of(request.get("end")) or item


def _is_call(value: Object) -> bool:
    named = "op_name" in value and "trace_id" in value and ("started_at" in value or "inputs" in value)
    return named or ("ended_at" in value and "summary" in value and "project_id" in value)


def _is_feedback(value: Object) -> bool:
    return "weave_ref" in value and "feedback_type" in value


def _key_of(record: JsonRecord) -> str:
    found = as_id(record.value.get("trace_id")) or as_id(record.value.get("id"))
    if found is None:
        raise BadRecord("trace_id: missing")
    return found


class _Reading:
    """Makes our records of the calls and the feedback of one file."""

    def __init__(self, path: Path, options: SourceOptions) -> None:
        self._path = path
        self._owner: Draft = {"project": options.project, "source": options.source or name}

    def alone(self, record: JsonRecord) -> Iterable[Item] | None:
        if _is_feedback(record.value):
            return (call_feedback(record.value, self._owner, {}),)
        if _is_call(record.value):
            return None
        raise BadRecord("neither a call nor feedback of Weave")

    def together(self, records: list[JsonRecord]) -> list[Item]:
        def refuse(reason: str) -> Rejected:
            return reject(self._path, records[0].line, reason, b"\n".join(record.data for record in records))

        apart: Object = {}
        calls = _merged([_light(record) for record in records])
        root = next((call for call in calls if not call.get("parent_id")), None)
        trace_id = _key_of(records[0])
        parents = {as_id(call.get("parent_id")) for call in calls}
        steps = [call_draft(call, trace_id, apart, is_leaf=as_id(call.get("id")) not in parents) for call in calls]
        items = out_of_spans(claims_of(root or calls[0], apart), steps, self._owner, refuse, apart)
        owners = {as_id(call.get("id")) or "": trace_id for call in calls}
        for call in calls:
            for said in list_of(object_of(object_of(call.get("summary")).get("weave")).get("feedback")):
                items.append(call_feedback(object_of(said), self._owner, owners))
        return items


def _merged(calls: list[Object]) -> list[Object]:
    """One object a call: its start and its end."""
    by_id: dict[str, Object] = {}
    for call in calls:
        id_ = as_id(call.get("id"))
        if id_ is None:
            raise BadRecord("id: missing; it is the id of the call")
        by_id[id_] = {**by_id.get(id_, {}), **{key: value for key, value in call.items() if value is not None}}
    return list(by_id.values())


def _light(record: JsonRecord) -> Object:
    if not may_hold_media(record.data):
        return record.value
    value = shortened(record.value)
    return value if isinstance(value, dict) else record.value
