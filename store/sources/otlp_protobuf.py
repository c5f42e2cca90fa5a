"""OTLP as protobuf: one export request, or the collector's file of them with a length before each."""

from collections.abc import Iterable, Iterator
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from pydantic import JsonValue

from store.sources.contract import BadRecord
from store.sources.otel import SPAN_ID_BYTES, TRACE_ID_BYTES, Flat, RawEvent, RawSpan, hex_id, nanoseconds, status_of
from store.sources.sanitise import MAX_DEPTH, clean_text

_LENGTH = 4
"""Bytes of a message's length in the collector's files, the most significant first."""


def requests_in(data: bytes) -> Iterator[ExportTraceServiceRequest]:
    """The export requests in `data`. Raises BadRecord where it is none."""
    if int.from_bytes(data[:_LENGTH], "big") <= len(data) - _LENGTH and data[:1] == b"\0":
        yield from _delimited(data)
        return
    yield _parsed(data)


def spans_in(request: ExportTraceServiceRequest) -> Iterator[tuple[Any, Flat]]:
    """The spans of a request, each with its resource's attributes."""
    for holder in request.resource_spans:
        resource = _flat(holder.resource.attributes)
        for scope in holder.scope_spans:
            for span in scope.spans:
                yield span, resource


def raw_span(span: Any, resource: Flat) -> RawSpan:
    """A span of a request. Raises BadRecord where it has no id."""
    trace_id = hex_id(span.trace_id, TRACE_ID_BYTES)
    span_id = hex_id(span.span_id, SPAN_ID_BYTES)
    if trace_id is None or span_id is None:
        raise BadRecord(f"no {'trace' if trace_id is None else 'span'} id: the span {span.name[:60]!r}")
    return RawSpan(
        trace_id=trace_id,
        span_id=span_id,
        parent_id=hex_id(span.parent_span_id, SPAN_ID_BYTES),
        name=clean_text(span.name) or None,
        started=nanoseconds(span.start_time_unix_nano),
        ended=nanoseconds(span.end_time_unix_nano),
        status=status_of(span.status.code),
        message=clean_text(span.status.message) or None,
        attributes=_flat(span.attributes),
        events=tuple(
            RawEvent(clean_text(e.name), nanoseconds(e.time_unix_nano), _flat(e.attributes)) for e in span.events
        ),
        resource=resource,
        dropped=span.dropped_attributes_count,
    )


def _delimited(data: bytes) -> Iterator[ExportTraceServiceRequest]:
    place = 0
    while place < len(data):
        size = int.from_bytes(data[place : place + _LENGTH], "big")
        place += _LENGTH
        if size > len(data) - place:
            raise BadRecord(
                f"the protobuf messages end early: {size} bytes are announced, {len(data) - place} are there"
            )
        yield _parsed(data[place : place + size])
        place += size


def _parsed(data: bytes) -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    try:
        request.ParseFromString(data)
    except DecodeError as error:
        raise BadRecord(f"not an OTLP export request in protobuf: {error}") from error
    return request


def _flat(attributes: Iterable[Any]) -> Flat:
    return {clean_text(item.key): _value(item.value, 0) for item in attributes}


def _value(value: Any, depth: int) -> JsonValue:
    kind = value.WhichOneof("value")
    if kind == "string_value":
        return clean_text(value.string_value)
    if kind is None:
        return None
    if depth >= MAX_DEPTH:
        raise BadRecord(f"nested deeper than {MAX_DEPTH} levels")
    if kind == "array_value":
        return [_value(item, depth + 1) for item in value.array_value.values]
    if kind == "kvlist_value":
        return {clean_text(item.key): _value(item.value, depth + 1) for item in value.kvlist_value.values}
    found = getattr(value, kind)
    if kind == "bytes_value":
        return bytes(found).hex()
    if kind == "double_value" and not -1.7976931348623157e308 <= found <= 1.7976931348623157e308:
        return None
    return found  # type: ignore[no-any-return]  # a truth value, a whole number or a finite one
