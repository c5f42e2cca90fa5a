"""One OpenTelemetry span as its exporter wrote it, before it is ours; its ids, times and status in one form.

Ids come as hexadecimal text (the JSON rule of OTLP), as bytes, as base64 (`MessageToDict`, Go's `encoding/json`), as
base64 of the hexadecimal text (Swift), and as bytes that were hexadecimal text read as base64.
"""

import base64
import binascii
import re
from typing import NamedTuple

from pydantic import JsonValue

from store.records import Status
from store.sources.contract import BadRecord
from store.sources.fields import short
from store.sources.times import Moment, parse_time

TRACE_ID_BYTES, SPAN_ID_BYTES = 16, 8

Flat = dict[str, JsonValue]
"""Attributes by their dotted names."""

_HEX = re.compile(r"[0-9a-fA-F]+")
_LONGEST_ID = 128
_ERROR, _OK = ("2", "error", "status_code_error"), ("1", "ok", "status_code_ok")


class RawEvent(NamedTuple):
    """Something that happened within a span."""

    name: str
    time: Moment | None
    attributes: Flat


class RawSpan(NamedTuple):
    """A span with its attributes still under their foreign names."""

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str | None
    started: Moment | None
    ended: Moment | None
    status: Status
    message: str | None
    """What the status says; None: nothing."""
    attributes: Flat
    events: tuple[RawEvent, ...] = ()
    resource: Flat = {}  # noqa: RUF012  # never written to
    dropped: int = 0
    """Attributes that the exporter threw away, the oldest first."""


def hex_id(value: JsonValue | bytes, size: int) -> str | None:
    """The id of `size` bytes as lower-case hexadecimal digits, however it is spelled; None: there is none.

    An id of another length is kept as it is. Raises BadRecord for what is neither text nor bytes.

    >>> hex_id("0x" + "AB" * 8, 8), hex_id("gMEgDJS+EXg=", 8), hex_id("ZmExZDZmYWJjZGVmMTIzNA==", 8), hex_id("0" * 16, 8)
    ('abababababababab', '80c1200c94be1178', 'fa1d6fabcdef1234', None)
    """
    if not value:
        return None
    if isinstance(value, bytes):
        return _named(_from_bytes(value, size) or value.hex())
    if not isinstance(value, str) or len(value) > _LONGEST_ID:
        raise BadRecord(f"not an id: {short(value)}")
    text = value[2:] if value[:2] in ("0x", "0X") else value
    if len(text) == 2 * size and _HEX.fullmatch(text):
        return _named(text.lower())
    return _named(_from_base64(text, size) or text)


def nanoseconds(value: JsonValue) -> Moment | None:
    """The moment of a count of nanoseconds, as number or text; None for 0, which is how "not yet" is written."""
    if value is None or isinstance(value, bool):
        return None
    try:
        whole = int(value)  # type: ignore[arg-type]  # a list or an object raises TypeError
    except (ValueError, TypeError, OverflowError):
        return parse_time(value)
    if whole <= 0:
        return None
    return Moment(*divmod(whole, 1000))


def status_of(code: JsonValue) -> Status:
    """The status that a code names: a number, its name in protobuf, or a word.

    >>> status_of(2), status_of("STATUS_CODE_OK"), status_of(None)
    ('error', 'ok', 'unset')
    """
    word = str(code).lower().removeprefix("statuscode.")
    if word in _ERROR:
        return "error"
    return "ok" if word in _OK else "unset"


def _named(digits: str) -> str | None:
    """None for an id of zeros, which means that there is none."""
    return digits if digits.strip("0") else None


def _from_base64(text: str, size: int) -> str | None:
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return _from_bytes(data, size)


def _from_bytes(data: bytes, size: int) -> str | None:
    if len(data) == size:
        return data.hex()
    if len(data) == 2 * size and data.isalnum() and _HEX.fullmatch(data.decode("latin-1")):
        return data.decode("latin-1").lower()
    misread = base64.b64encode(data).decode()
    if len(misread) == 2 * size and _HEX.fullmatch(misread):
        return misread.lower()
    return None
