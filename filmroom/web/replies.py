"""Answers in the encoding of the request: JSON, or the protobuf messages that OTLP names."""

from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from starlette.responses import JSONResponse, Response

PROTOBUF = "application/x-protobuf"

_LONGEST = 4000
"""Characters of a message; a response is no place for a log."""


def accepted_traces(media_type: str, rejected: int, message: str) -> Response:
    """OTLP's answer to an export: empty where all was taken, else how many spans were not, and why."""
    message = message[:_LONGEST]
    if media_type != PROTOBUF:
        partial: dict[str, Any] = {"partialSuccess": {"rejectedSpans": str(rejected), "errorMessage": message}}
        return JSONResponse(partial if message else {})
    answer = ExportTraceServiceResponse()
    if message:
        answer.partial_success.rejected_spans = rejected
        answer.partial_success.error_message = message
    return Response(answer.SerializeToString(), media_type=PROTOBUF)


def refused(media_type: str, status: int, reason: str) -> Response:
    """A refusal with its reason: `{"message": ...}`, or google.rpc.Status as OTLP asks for."""
    headers = {"Retry-After": "1"} if status in (429, 503) else {}
    if media_type != PROTOBUF:
        return JSONResponse({"message": reason[:_LONGEST]}, status, headers)
    return Response(_status_message(reason[:_LONGEST]), status, headers, PROTOBUF)


def _status_message(reason: str) -> bytes:
    """google.rpc.Status with field 2, the message, alone: too small a message to depend on a package for.

    >>> _status_message("no")
    b'\\x12\\x02no'
    """
    data = reason.encode("utf-8", "replace")
    length, rest = bytearray(), len(data)
    while rest > 127:
        length.append(rest & 127 | 128)
        rest >>= 7
    length.append(rest)
    return b"\x12" + bytes(length) + data
