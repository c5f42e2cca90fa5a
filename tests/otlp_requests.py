"""OTLP requests as programs send them, small."""

import json
from typing import Any

START_NS = 1_740_830_400_000_000_000


def value(plain: Any) -> dict[str, Any]:
    """A plain value as OTLP's JSON spells it."""
    if isinstance(plain, bool):
        return {"boolValue": plain}
    if isinstance(plain, int):
        return {"intValue": str(plain)}
    if isinstance(plain, float):
        return {"doubleValue": plain}
    if isinstance(plain, list):
        return {"arrayValue": {"values": [value(item) for item in plain]}}
    return {"stringValue": plain}


def attributes(plain: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": value(item)} for key, item in plain.items()]


def span(number: int, plain: dict[str, Any] | None = None, *, parent: int | None = None, trace: int = 1,
         **fields: Any) -> dict[str, Any]:  # fmt: skip
    """Span `number` of a trace: it starts `number` milliseconds in, and lasts one."""
    return {
        "traceId": f"{trace:032x}",
        "spanId": f"{number:016x}",
        **({"parentSpanId": f"{parent:016x}"} if parent else {}),
        "name": f"span {number}",
        "startTimeUnixNano": str(START_NS + number * 1_000_000),
        "endTimeUnixNano": str(START_NS + (number + 1) * 1_000_000),
        "attributes": attributes(plain or {}),
        **fields,
    }


def request(*spans: dict[str, Any], resource: dict[str, Any] | None = None) -> dict[str, Any]:
    holder = {"resource": {"attributes": attributes(resource or {})}, "scopeSpans": [{"spans": list(spans)}]}
    return {"resourceSpans": [holder]}


def body(*spans: dict[str, Any], resource: dict[str, Any] | None = None) -> bytes:
    return json.dumps(request(*spans, resource=resource)).encode()
