"""Times of every log in one form: UTC microseconds since 1970 and the rest of the nanoseconds."""

import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import NamedTuple
from zoneinfo import ZoneInfo

from pydantic import JsonValue

from store.sources.contract import BadRecord
from store.sources.fields import short

WITHOUT_OFFSET = "time without an offset"
"""What the rejection of such a time begins with."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBER = re.compile(r"-?\d+(\.\d*)?([eE][+-]?\d{1,2})?")
_LONG_FRACTION = re.compile(r"[.,]\d{6}(\d{1,3})")
_LONGEST_IN_US = len("2025-03-01T12:00:00.123456")
_DATE_ALONE = len("20250301")
_ZONE_NAME = re.compile(r"\d (UTC|GMT)$")
_SMALLEST = 100_000_000
_UNITS = ((10**11, 10**9), (10**14, 10**6), (10**17, 10**3), (10**20, 1))
"""Numbers below the first are in units of so many nanoseconds: seconds, milliseconds, microseconds, nanoseconds."""
_FIRST_US, _FIRST_NS = _UNITS[1][0], _UNITS[2][0]


class Moment(NamedTuple):
    """A point in time."""

    us: int
    """Microseconds since 1970 UTC."""
    ns: int
    """The rest, 0 to 999 nanoseconds."""


def parse_time(value: JsonValue, zone: ZoneInfo | None = None) -> Moment | None:
    """The moment `value` names: ISO 8601, or an epoch number in s, ms, us or ns told apart by its magnitude.

    None for what says nothing: None, empty text, 0. A time without an offset is taken in `zone` (of an hour that
    occurs twice, the first). Raises BadRecord for such a time without a zone and for what is no time.

    >>> parse_time("2025-03-01T12:00:00.123456789Z")
    Moment(us=1740830400123456, ns=789)
    >>> parse_time(1740830400123) == parse_time("2025-03-01 12:00:00.123", ZoneInfo("UTC"))
    True
    """
    if isinstance(value, str):
        return _from_text(value, zone) if value else None
    if type(value) is int and _FIRST_US <= value < _FIRST_NS:
        return Moment(value, 0)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BadRecord(f"not a time: {short(value)}")
    return _from_epoch(value if isinstance(value, int) else Decimal(repr(value)), value)


def _from_text(text: str, zone: ZoneInfo | None) -> Moment | None:
    if text[4:5] != "-" and len(text) != _DATE_ALONE and _NUMBER.fullmatch(text):
        return _from_epoch(Decimal(text), text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return _from_other(text.strip(), zone)
    if moment.tzinfo is None:
        if zone is None:
            raise BadRecord(f"{WITHOUT_OFFSET}: {short(text)}; set `timezone` for this source")
        moment = moment.replace(tzinfo=zone)
    fraction = _LONG_FRACTION.search(text) if len(text) > _LONGEST_IN_US else None
    passed = moment - _EPOCH
    us = (passed.days * 86_400 + passed.seconds) * 1_000_000 + passed.microseconds
    return Moment(us, int(fraction.group(1).ljust(3, "0")) if fraction else 0)


def _from_other(text: str, zone: ZoneInfo | None) -> Moment | None:
    if not text:
        return None
    if _ZONE_NAME.search(text):
        return _from_text(text[:-4] + "Z", zone)
    if not _NUMBER.fullmatch(text):
        raise BadRecord(f"not a time: {short(text)}; ISO 8601 or an epoch number is read")
    return _from_epoch(Decimal(text), text)


def _from_epoch(number: Decimal | int, value: JsonValue) -> Moment | None:
    if not number:
        return None
    if number < _SMALLEST:
        raise BadRecord(f"not a time: {short(value)}; epoch numbers are read from {_SMALLEST} (March 1973) on")
    for limit, nanoseconds in _UNITS:
        if number < limit:
            return Moment(*divmod(int(number * nanoseconds), 1000))
    raise BadRecord(f"not a time: {short(value)} is beyond the year 5138 even in nanoseconds")
