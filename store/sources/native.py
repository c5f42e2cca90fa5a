"""filmroom's own JSONL: one trace, span or feedback a line (`docs/format.md` describes every field)."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, get_args
from zoneinfo import ZoneInfo

from pydantic import JsonValue

from store.addresses import of_trace
from store.records import Feedback, Rejected, Span, SpanKind, Trace
from store.records.identity import canonical_json
from store.sources.contract import BadRecord, Item, Sample, SourceOptions
from store.sources.fields import Occurrences, as_count, as_id, as_number, as_text, make, short
from store.sources.files import reject
from store.sources.json_records import JsonRecord, read_objects
from store.sources.times import Moment, parse_time

name = "native"

_TYPES = ("trace", "span", "feedback")
_KINDS = frozenset(get_args(SpanKind))

Values = dict[str, Any]
Convert = Callable[[JsonValue], Any] | None
"""From the value in the line to ours; None: as it stands."""


def recognise(sample: Sample) -> str | None:
    """Recognises JSON objects that name one of our types."""
    found = {value["type"] for value in sample.objects if value.get("type") in _TYPES and _names_a_trace(value)}
    return "objects of type " + ", ".join(sorted(str(kind) for kind in found)) if found else None


def read(path: Path, options: SourceOptions) -> Iterator[Item]:
    """The traces, spans and feedback of a native file; an inline span or feedback that is wrong is rejected alone."""
    lines = _Lines(path, options)
    return read_objects(path, lines.items)


def feedback_items(values: Iterable[JsonValue], options: SourceOptions, *, place: str) -> list[Item]:
    """The feedback in JSON values as they were sent to `place`; a value that is none is rejected alone, with its number."""
    lines = _Lines(Path(place), options)
    items: list[Item] = []
    for number, value in enumerate(values, 1):
        try:
            items.append(lines.feedback(value))
        except BadRecord as error:
            alone = {"type": "feedback", **value} if isinstance(value, dict) else value
            items.append(reject(Path(place), number, str(error), canonical_json(alone)))
    return items


def _names_a_trace(value: dict[str, JsonValue]) -> bool:
    return value["type"] == "trace" or "trace" in value


def _as_object(value: JsonValue) -> dict[str, JsonValue]:
    if not isinstance(value, dict):
        raise BadRecord(f"not an object: {short(value)}")
    return value


def _as_status(value: JsonValue) -> str:
    status = str(value).lower()
    if status not in ("ok", "error", "unset"):
        raise BadRecord(f"{short(value)} is none of ok, error, unset")
    return status


_COMMON: dict[str, tuple[str, Convert]] = {
    "id": ("external_id", as_id),
    "source": ("source", as_id),
    "name": ("name", as_text),
}
_STEP: dict[str, tuple[str, Convert]] = _COMMON | {
    "status": ("status", _as_status),
    "error": ("error", as_text),
    "input": ("input", None),
    "output": ("output", None),
    "model": ("model", as_text),
    "input_tokens": ("input_tokens", as_count),
    "output_tokens": ("output_tokens", as_count),
    "cost_usd": ("cost_usd", as_number),
    "attributes": ("attributes", _as_object),
}
_TRACE: dict[str, tuple[str, Convert]] = _STEP | {
    **{field: (field, as_text) for field in ("session", "user", "tenant", "channel")},
    **{field: (field, as_text) for field in ("release", "app_version", "prompt_version")},
    "held_apart": ("held_apart", _as_object),
}
_SPAN: dict[str, tuple[str, Convert]] = _STEP | {
    "trace": ("trace_external_id", as_id),
    "parent": ("parent_external_id", as_id),
    "kind": ("kind", as_text),
    "position": ("position", as_count),
    "error_type": ("error_type", as_text),
    "tool_call_id": ("tool_call_id", as_text),
    "confidence": ("confidence", as_number),
    "documents": ("documents", None),
    "memories": ("memories", None),
}
_FEEDBACK: dict[str, tuple[str, Convert]] = _COMMON | {
    "trace": ("trace_external_id", as_id),
    "span": ("span_external_id", as_id),
    "score": ("score", as_number),
    "label": ("label", as_text),
    "comment": ("comment", as_text),
    "corrected_output": ("corrected_output", None),
    "source_kind": ("source_kind", as_text),
    "principal": ("principal", as_text),
    "attributes": ("attributes", _as_object),
}


class _Lines:
    """Makes our records of the lines of one file."""

    def __init__(self, path: Path, options: SourceOptions) -> None:
        self._path = path
        self._defaults = {"project": options.project, "source": options.source or name}
        self._occurrences = Occurrences()
        moment = partial(_moment, options.zone)
        self._trace = _TRACE | {"started": ("started", moment), "ended": ("ended", moment)}
        self._span = _SPAN | {"started": ("started", moment), "ended": ("ended", moment)}
        self._feedback = _FEEDBACK | {"given": ("given", moment)}

    def items(self, record: JsonRecord) -> Iterable[Item]:
        kind = record.value.get("type")
        if kind == "trace":
            return self._with_inline(record)
        if kind == "span":
            return (self._make_span(record.value, {}, 0),)
        if kind == "feedback":
            return (self._make_feedback(record.value, {}),)
        raise BadRecord(f"type: {short(kind)} is none of {', '.join(_TYPES)}")

    def feedback(self, value: JsonValue) -> Feedback:
        """The feedback in a value that may leave out its type, and the log that its trace is in. Raises BadRecord."""
        line = _as_object(value)
        if line.get("type", "feedback") != "feedback":
            raise BadRecord(f"type: {short(line['type'])} is not feedback")
        made = self._make_feedback(line, {})
        if line.get("source") is not None:
            return made
        return made.model_copy(update={"trace_external_id": of_trace(made.trace_external_id)})

    def _with_inline(self, record: JsonRecord) -> list[Item]:
        spans = _inline(record.value, "spans")
        feedback = _inline(record.value, "feedback")
        trace = self._make_trace(record.value)
        owner = {"source": trace.source, "trace_external_id": trace.external_id}
        items: list[Item] = [trace]
        for place, value in enumerate(spans):
            try:
                items.append(self._make_span(_as_object(value), owner, place))
            except BadRecord as error:
                items.append(self._reject_inline(record, "span", value, error))
        for value in feedback:
            try:
                items.append(self._make_feedback(_as_object(value), owner))
            except BadRecord as error:
                items.append(self._reject_inline(record, "feedback", value, error))
        return items

    def _reject_inline(self, record: JsonRecord, kind: str, value: JsonValue, error: BadRecord) -> Rejected:
        """The rejection of an inline record as a line of its own, which can be retried."""
        trace = record.value.get("id")
        raw = {"type": kind, "trace": trace, **(value if isinstance(value, dict) else {kind: value})}
        return reject(self._path, record.line, f"{kind} inside trace {short(trace)}: {error}", canonical_json(raw))

    def _make_trace(self, line: dict[str, JsonValue]) -> Trace:
        values = self._values(line, self._trace, ("type", "spans", "feedback"))
        _set_times(values)
        if values.get("external_id") is None:
            values["external_id"] = self._occurrences.id_of(line)
        return make(Trace, values)

    def _make_span(self, line: dict[str, JsonValue], given: Values, place: int) -> Span:
        values = self._values(line, self._span, ("type",)) | given
        _set_times(values)
        _need_trace(values)
        values.setdefault("position", place)
        if values.get("external_id") is None:
            values["external_id"] = str(values["position"])
        if values.get("kind", "other") not in _KINDS:
            values["attributes"] = {**values.get("attributes", {}), "kind": values.pop("kind")}
        return make(Span, values)

    def _make_feedback(self, line: dict[str, JsonValue], given: Values) -> Feedback:
        values = self._values(line, self._feedback, ("type",)) | given
        _need_trace(values)
        moment: Moment | None = values.pop("given", None)
        values["given_us"] = moment.us if moment else None
        if values.get("external_id") is None:
            values["external_id"] = self._occurrences.id_of({**line, "trace": values["trace_external_id"]})
        return make(Feedback, values)

    def _values(
        self, line: dict[str, JsonValue], fields: dict[str, tuple[str, Convert]], apart: tuple[str, ...]
    ) -> Values:
        """Our fields and their values; what we have no field for goes to `attributes`."""
        values: Values = self._defaults.copy()
        unknown: dict[str, JsonValue] = {}
        key = ""
        try:
            for key, value in line.items():
                if value is None:
                    continue
                field = fields.get(key)
                if field is not None:
                    target, convert = field
                    values[target] = value if convert is None else convert(value)
                elif key not in apart:
                    unknown[key] = value
        except BadRecord as error:
            raise BadRecord(f"{key}: {error}") from error
        if unknown:
            values["attributes"] = _merged(values.get("attributes", {}), unknown)
        return values


def _inline(line: dict[str, JsonValue], key: str) -> list[JsonValue]:
    found = line.get(key)
    if found is None:
        return []
    if not isinstance(found, list):
        raise BadRecord(f"{key}: not a list: {short(found)}")
    return found


def _merged(attributes: dict[str, JsonValue], unknown: dict[str, JsonValue]) -> dict[str, JsonValue]:
    both = attributes.keys() & unknown.keys()
    if both:
        raise BadRecord(f"{min(both)}: stands both in the record and in its attributes")
    return {**attributes, **unknown}


def _need_trace(values: Values) -> None:
    if values.get("trace_external_id") is None:
        raise BadRecord("trace: missing; it is the id of the trace that this belongs to")


def _set_times(values: Values) -> None:
    started: Moment | None = values.pop("started", None)
    ended: Moment | None = values.pop("ended", None)
    if started:
        values["started_us"], values["started_ns"] = started
    if ended:
        values["ended_us"] = ended.us


def _moment(zone: ZoneInfo | None, value: JsonValue) -> Moment | None:
    return parse_time(value, zone)
