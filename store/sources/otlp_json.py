"""OTLP as JSON, in every spelling met: camel and snake case, ids in hexadecimal or base64, Go's oneofs, all members of a
value present with six of them null, older names of the scopes, spans as the SDK prints them."""

import re
from collections.abc import Iterator
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import JsonValue

from store.records.identity import canonical_json
from store.sources.contract import BadRecord
from store.sources.fields import as_text, short
from store.sources.otel import SPAN_ID_BYTES, TRACE_ID_BYTES, Flat, RawEvent, RawSpan, hex_id, nanoseconds, status_of
from store.sources.times import Moment, parse_time

Object = dict[str, JsonValue]

_RESOURCES = ("resourceSpans", "resource_spans", "batches")
_SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans", "instrumentation_library_spans")
_LOGS = ("resourceLogs", "resource_logs")
_SCOPE_LOGS = ("scopeLogs", "scope_logs")
_UNWORD = re.compile(r"[_\s]")


def is_request(value: Object) -> bool:
    """Whether it is an export of spans or logs, or a part of one."""
    inner = value.get("trace")
    names = (*_RESOURCES, *_SCOPES, *_LOGS)
    return any(isinstance(value.get(name), list) for name in names) or (isinstance(inner, dict) and is_request(inner))


def spans_in(request: Object) -> Iterator[tuple[JsonValue, Flat]]:
    """The spans of a request as they stand there, each with its resource's attributes."""
    inner = request.get("trace")
    if isinstance(inner, dict):
        request = inner
    holders = _lists(request, _RESOURCES) if any(name in request for name in _RESOURCES) else [request]
    for holder in holders:
        if not isinstance(holder, dict):
            continue
        resource = resource_of(holder)
        for scope in _lists(holder, _SCOPES):
            for span in _lists(scope, ("spans",)) if isinstance(scope, dict) else ():
                yield span, resource


def logs_in(request: Object) -> Iterator[tuple[JsonValue, Flat]]:
    """The log records of a request as they stand there, each with its resource's attributes."""
    for holder in _lists(request, _LOGS):
        if not isinstance(holder, dict):
            continue
        resource = resource_of(holder)
        for scope in _lists(holder, _SCOPE_LOGS):
            for record in _lists(scope, ("logRecords", "log_records")) if isinstance(scope, dict) else ():
                yield record, resource


def raw_span(span: JsonValue, resource: Flat) -> RawSpan:
    """A span of a request. Raises BadRecord where it is none, or has no id."""
    if not isinstance(span, dict):
        raise BadRecord(f"a span is not an object: {short(span)}")
    status = span.get("status")
    said: Any = status if isinstance(status, dict) else {"code": status}
    dropped = _get(span, "droppedAttributesCount", "dropped_attributes_count")
    return RawSpan(
        **ids_of(span),
        parent_id=hex_id(_get(span, "parentSpanId", "parent_span_id"), SPAN_ID_BYTES),
        name=as_text(span.get("name")),
        started=nanoseconds(_get(span, "startTimeUnixNano", "start_time_unix_nano")),
        ended=nanoseconds(_get(span, "endTimeUnixNano", "end_time_unix_nano")),
        status=status_of(said.get("code")),
        message=as_text(said.get("message")) or None,
        attributes=attributes_of(span.get("attributes")),
        events=tuple(_event(event) for event in _lists(span, ("events",)) if isinstance(event, dict)),
        resource=resource,
        dropped=int(dropped) if isinstance(dropped, (int, float, str)) and str(dropped).isdecimal() else 0,
    )


def raw_log(record: JsonValue, resource: Flat) -> tuple[RawSpan, RawEvent]:
    """A log record as an event, and the span that it is on. Raises BadRecord where it names none."""
    if not isinstance(record, dict):
        raise BadRecord(f"a log record is not an object: {short(record)}")
    attributes = attributes_of(record.get("attributes"))
    name = as_text(_get(record, "eventName", "event_name") or attributes.pop("event.name", None)) or ""
    body = any_value(record.get("body"))
    if isinstance(body, dict):
        attributes = body | attributes
    elif body is not None:
        attributes.setdefault("body", body)
    times = (
        _get(record, "timeUnixNano", "time_unix_nano"),
        _get(record, "observedTimeUnixNano", "observed_time_unix_nano"),
    )
    moment = next((found for time in times if (found := nanoseconds(time))), None)
    span = RawSpan(**ids_of(record), parent_id=None, name=name, started=moment, ended=moment, status="unset", message=None,
                   attributes={}, resource=resource)  # fmt: skip
    return span, RawEvent(name, moment, attributes)


def printed_span(span: Object, zone: ZoneInfo | None = None) -> RawSpan:
    """A span as an SDK prints it, or Phoenix's API gives it: ids in `context`, flat attributes, ISO times."""
    context: Any = span.get("context") if isinstance(span.get("context"), dict) else {}
    status: Any = span.get("status") if isinstance(span.get("status"), dict) else {}
    code = span.get("status_code", status.get("status_code"))
    message = span.get("status_message") or status.get("description")
    resource: Any = span.get("resource") if isinstance(span.get("resource"), dict) else {}
    attributes = attributes_of(span.get("attributes"))
    kind = span.get("span_kind")
    if isinstance(kind, str) and kind != "UNKNOWN":
        attributes.setdefault("openinference.span.kind", kind)
    return RawSpan(
        **ids_of(context),
        parent_id=hex_id(span.get("parent_id"), SPAN_ID_BYTES),
        name=as_text(span.get("name")),
        started=_printed_time(span.get("start_time"), zone),
        ended=_printed_time(span.get("end_time"), zone),
        status=status_of(code),
        message=as_text(message) or None,
        attributes=attributes,
        events=tuple(_event(event) for event in _lists(span, ("events",)) if isinstance(event, dict)),
        resource=attributes_of(resource.get("attributes")),
    )


def _printed_time(value: JsonValue, zone: ZoneInfo | None) -> Moment | None:
    """A time, None for 1970: a span that has not ended is shown so."""
    moment = parse_time(value, zone)
    return moment if moment and moment.us > 0 else None


def ids_of(span: Object) -> Any:
    """Trace and span id. Raises BadRecord where one is missing, or all zeros."""
    trace_id = hex_id(_get(span, "traceId", "trace_id"), TRACE_ID_BYTES)
    span_id = hex_id(_get(span, "spanId", "span_id"), SPAN_ID_BYTES)
    if trace_id is None or span_id is None:
        raise BadRecord(f"no {'trace' if trace_id is None else 'span'} id: {short(canonical_json(span))}")
    return {"trace_id": trace_id, "span_id": span_id}


def resource_of(holder: Object) -> Flat:
    resource = holder.get("resource")
    return attributes_of(resource.get("attributes")) if isinstance(resource, dict) else {}


def attributes_of(value: JsonValue) -> Flat:
    """Attributes of a list of keys and values, or of a plain object."""
    if isinstance(value, dict):
        return value
    if not isinstance(value, list):
        return {}
    return {
        as_text(item.get("key")) or "": any_value(item.get("value"))
        for item in value
        if isinstance(item, dict) and item.get("key")
    }


def any_value(value: JsonValue) -> JsonValue:
    """The plain value of an `AnyValue`, however its members are spelt; what is none as it is.

    >>> any_value({"intValue": "5"}), any_value({"Value": {"StringValue": "a"}}), any_value({"doubleValue": "NaN"})
    (5, 'a', None)
    >>> any_value({"array_value": {"values": [{"bool_value": True}]}, "string_value": None})
    [True]
    """
    if not isinstance(value, dict):
        return value
    for name, inner in value.items():
        if name in ("stringValue", "string_value"):
            if inner is not None:
                return inner
        elif inner is not None:
            found = _member(_UNWORD.sub("", name).lower(), inner)
            if found is not _UNKNOWN:
                return found
    return None


_UNKNOWN: Any = object()


def _member(kind: str, inner: JsonValue) -> JsonValue:
    if kind == "value":
        return any_value(inner)
    if kind in ("stringvalue", "boolvalue", "bytesvalue"):
        return inner
    if kind == "intvalue":
        return int(inner) if isinstance(inner, str) and inner.lstrip("-").isdecimal() else inner
    if kind == "doublevalue":
        return _double(inner)
    if kind == "arrayvalue":
        values: Any = inner if isinstance(inner, list) else inner.get("values") if isinstance(inner, dict) else None
        return [any_value(item) for item in values or []]
    if kind == "kvlistvalue":
        return attributes_of(inner.get("values") if isinstance(inner, dict) else inner)
    return _UNKNOWN  # type: ignore[no-any-return]  # a mark, not a value


def _double(value: JsonValue) -> JsonValue:
    if not isinstance(value, str):
        return value
    try:
        number = float(value)
    except ValueError:
        return value
    return number if number == number and abs(number) != float("inf") else None


def _event(event: Object) -> RawEvent:
    time = _get(event, "timeUnixNano", "time_unix_nano")
    moment = nanoseconds(time) if time is not None else parse_time(event.get("timestamp"))
    return RawEvent(as_text(event.get("name")) or "", moment, attributes_of(event.get("attributes")))


def _get(value: Object, camel: str, snake: str) -> JsonValue:
    found = value.get(camel)
    return value.get(snake) if found is None else found


def _lists(value: Object, names: tuple[str, ...]) -> list[JsonValue]:
    return [item for name in names if isinstance(found := value.get(name), list) for item in found]
