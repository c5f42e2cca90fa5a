"""MLflow 2 and 3: traces as JSON, the records and the CSV of `search_traces`, assessments.

Every attribute of a span is JSON inside a text. The inputs and outputs of a trace are its root's; the copies in its metadata
are cut after 250 characters, the previews after 1,000.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import JsonValue

from store.records import Rejected, Status
from store.sources.assembly import Draft, assembled, root_of
from store.sources.context_fields import beside, from_metadata, unquoted
from store.sources.contract import BadRecord, Item, Sample, SourceOptions
from store.sources.fields import as_id, as_number, as_text
from store.sources.files import reject
from store.sources.held_apart import parted
from store.sources.json_records import take_sample
from store.sources.media import may_hold_media, shortened
from store.sources.mlflow_assessments import assessment_items
from store.sources.mlflow_spans import plain_value, span_draft
from store.sources.payload import Object, decoded, is_cut, list_of, object_of, packed
from store.sources.rows import header_of, read_rows
from store.sources.times import Moment, parse_time
from store.sources.usage import either

name = "mlflow"

_STATUS: dict[str, Status] = {"OK": "ok", "ERROR": "error"}
_COPIES = ("mlflow.traceInputs", "mlflow.traceOutputs")
_INTERNAL = (
    *(*_COPIES, "mlflow.trace.user", "mlflow.trace.session", "mlflow.trace.tokenUsage", "mlflow.trace.cost"),
    *("mlflow.trace.sizeStats", "mlflow.trace.sizeBytes", "mlflow.trace_schema.version", "mlflow.traceName"),
    *("mlflow.trace.infoFinalized", "mlflow.artifactLocation", "mlflow.trace.spansLocation", "mlflow.linkedPrompts"),
)
_UTC = ZoneInfo("UTC")


def recognise(sample: Sample) -> str | None:
    """Recognises traces with `info` and `data`, records with `spans` beside their metadata, and assessments."""
    for value in sample.objects:
        if _is_trace(value):
            return "MLflow traces"
        if "assessment_id" in value and "trace_id" in value:
            return "MLflow assessments"
    columns = set() if sample.values else {column.strip() for column in header_of(sample)}
    if {"spans", "request", "response"} <= columns and columns & {"trace_metadata", "request_metadata"}:
        return "a table of MLflow traces"
    return None


def read(path: Path, options: SourceOptions) -> Iterator[Item]:
    """The traces of a file with their spans and assessments; an assessment that was superseded is left out."""
    for row in read_rows(path, take_sample(path)):
        if isinstance(row, Rejected):
            yield row
            continue
        try:
            items = _items(row.cells, options, str(path), row.line, row.data)
        except BadRecord as error:
            yield reject(path, row.line, str(error), row.data)
            continue
        yield from items


def items_of_trace(trace: JsonValue, options: SourceOptions, *, place: str = "mlflow") -> list[Item]:
    """The records of one trace as the API or `Trace.to_json` gives it; what cannot be read as `Rejected` in `place`."""
    data = packed(trace)
    try:
        if not isinstance(trace, dict):
            raise BadRecord("not a JSON object")
        return _items(trace, options, place, None, data)
    except BadRecord as error:
        return [reject(Path(place), None, str(error), data)]


def _is_trace(value: Object) -> bool:
    info = value.get("info")
    if isinstance(info, dict):
        return bool({"trace_id", "request_id"} & info.keys()) and "data" in value
    named = {"trace_id", "request_id"} & value.keys() and {"trace_metadata", "request_metadata"} & value.keys()
    return bool(named) and ("spans" in value or "request" in value)


def _items(value: Object, options: SourceOptions, place: str, line: int | None, data: bytes) -> list[Item]:
    owner: Draft = {"project": options.project, "source": options.source or name}

    def refuse(reason: str) -> Rejected:
        return reject(Path(place), line, reason, data)

    if may_hold_media(data):
        short = shortened(value)
        value = short if isinstance(short, dict) else value
    if "assessment_id" in value:
        apart: Object = {}
        items = assessment_items([value], None, owner, apart, refuse)
        return items or [refuse("an expectation that no person gave, without its trace")] if apart else items
    if not _is_trace(value):
        raise BadRecord("neither a trace nor an assessment of MLflow")
    return _trace_items(value, owner, refuse)


def _trace_items(value: Object, owner: Draft, refuse: Any) -> list[Item]:
    info = object_of(value.get("info")) or value
    spans = list_of(object_of(value.get("data")).get("spans") if "data" in value else value.get("spans"))
    external_id = as_id(info.get("trace_id") or info.get("request_id"))
    if external_id is None:
        raise BadRecord("trace_id: missing")
    apart: Object = {}
    steps, items = [], list[Item]()
    for span in spans:
        try:
            steps.append(span_draft(object_of(span), external_id, apart))
        except BadRecord as error:
            items.append(refuse(f"span of trace {external_id!r}: {error}"))
    assessments = [object_of(item) for item in list_of(info.get("assessments"))]
    said = assessment_items(assessments, external_id, owner, apart, refuse)
    trace = _trace_draft(info, value, root_of(steps) or {}, apart) | {"external_id": external_id, "held_apart": apart}
    return [*assembled(trace, steps, owner, refuse), *said, *items]


def _trace_draft(info: Object, value: Object, root: Draft, apart: Object) -> Draft:
    metadata = object_of(info.get("trace_metadata") or info.get("request_metadata"))
    tags = object_of(info.get("tags"))
    data = object_of(value.get("data"))
    read = _io(root.get("input"), value.get("request"), data.get("request"), metadata.get(_COPIES[0]), "request", info)
    written = _io(
        root.get("output"), value.get("response"), data.get("response"), metadata.get(_COPIES[1]), "response", info
    )
    tokens = either(metadata.get("mlflow.trace.tokenUsage"))
    cut: list[JsonValue] = [side for side, said in (("input", read), ("output", written)) if is_cut(said)]
    started = _started(info)
    return {
        "name": as_text(tags.get("mlflow.traceName") or metadata.get("mlflow.traceName")) or None,
        "input": read,
        "output": written,
        "status": _STATUS.get(str(info.get("state") or info.get("status")), "unset"),
        "error": root.get("error"),
        **_people(metadata, tags),
        "cost_usd": as_number(object_of(metadata.get("mlflow.trace.cost")).get("total_cost")),
        **tokens.counts,
        **_times(info, started),
        "attributes": {
            **beside({"metadata": parted(beside(metadata, *_INTERNAL), apart)}),
            **beside({"tags": parted(beside(tags, *_INTERNAL), apart)}),
            **beside({"client_request_id": info.get("client_request_id"), "truncated": cut}),
            **tokens.attributes,
        },
    }


def _io(said: Any, whole: JsonValue, data: JsonValue, copy: JsonValue, side: str, info: Object) -> Any:
    """The root's own value, else the trace's, else the copy in its metadata, else the preview, which are cut."""
    if said is not None:
        return said
    for value in (whole, data, copy, info.get(f"{side}_preview")):
        if value not in (None, ""):
            return plain_value(value)
    return None


def _people(metadata: Object, tags: Object) -> Draft:
    """Users, sessions and versions; MLflow's own keys first, then the usual names in its metadata and tags."""
    found = from_metadata(tags) | from_metadata(metadata)
    own = {"user": metadata.get("mlflow.trace.user"), "session": metadata.get("mlflow.trace.session")}
    found |= {field: text for field, value in own.items() if (text := unquoted(value))}
    prompts = [object_of(item) for item in list_of(decoded(tags.get("mlflow.linkedPrompts")))]
    linked = [f"{prompt['name']}:{as_text(prompt.get('version'))}" for prompt in prompts if "name" in prompt]
    if linked:
        found["prompt_version"] = ", ".join(linked)
    commit = as_text(metadata.get("mlflow.source.git.commit"))
    if commit:
        found.setdefault("app_version", commit)
    return {**found}


def _started(info: Object) -> Moment | None:
    for key in ("request_time", "timestamp_ms"):
        try:
            if (found := parse_time(info.get(key), _UTC)) is not None:
                return found
        except BadRecord as error:
            raise BadRecord(f"{key}: {error}") from error
    return None


def _times(info: Object, started: Moment | None) -> Draft:
    if started is None:
        return {}
    keys = ("execution_duration_ms", "execution_time_ms", "execution_duration")
    duration = next((us for key in keys if (us := _microseconds(info.get(key))) is not None), None)
    fields: Draft = {"started_us": started.us, "started_ns": started.ns}
    if str(info.get("state") or info.get("status")) == "IN_PROGRESS":
        return fields | {"open": True}
    return fields if duration is None else fields | {"ended_us": started.us + duration}


def _microseconds(value: JsonValue) -> int | None:
    """A duration in milliseconds, or in seconds as `0.101s`, which is how protobuf writes it."""
    if isinstance(value, str) and value.endswith("s"):
        seconds = as_number(value[:-1])
        return None if seconds is None else round(seconds * 1e6)
    milliseconds = as_number(value)
    return None if milliseconds is None else round(milliseconds * 1e3)
