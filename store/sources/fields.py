"""Single values of foreign records as ours: lenient where the meaning is plain, precise about what is wrong where not."""

import math
import re
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import JsonValue, ValidationError

from store.records import Record, content_hash
from store.records.identity import canonical_json
from store.sources.contract import BadRecord
from store.sources.sanitise import parse_json

R = TypeVar("R", bound=Record)

_LARGEST_COUNT = 2**63 - 1
_WHOLE = re.compile(r"\d{1,19}")


def make(kind: type[R], values: Mapping[str, Any]) -> R:
    """A record of these values. Raises BadRecord, naming the field, where one does not fit."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise BadRecord(f"{where}: {first['msg']}") from error


def as_text(value: JsonValue) -> str | None:
    """A text of any value: numbers and booleans as JSON spells them, objects and lists as canonical JSON.

    >>> as_text(5), as_text(True), as_text(None)
    ('5', 'true', None)
    """
    if value is None or isinstance(value, str):
        return value
    return canonical_json(value)


def as_id(value: JsonValue) -> str | None:
    """An id as text; None: there is none. Raises BadRecord for an object or a list."""
    if isinstance(value, (dict, list)):
        raise BadRecord("an id must be a text or a number")
    return as_text(value) or None


def as_number(value: JsonValue) -> float | None:
    """A finite number, also where it is written as text or as a boolean; None: not said. Raises BadRecord else."""
    if value is None or value == "":
        return None
    try:
        number = float(value)  # type: ignore[arg-type]  # a list or an object raises TypeError
    except (ValueError, TypeError, OverflowError) as error:
        raise BadRecord(f"not a number: {short(value)}") from error
    return number if math.isfinite(number) else None


def as_count(value: JsonValue) -> int | None:
    """A whole number from 0 to 2^63 - 1, also as text or as 5.0; None: not said. Raises BadRecord else."""
    if value is None or value == "":
        return None
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST_COUNT:
        raise BadRecord(f"not a whole number from 0 to 2^63 - 1: {short(value)}")
    return value


def unwrapped(value: JsonValue) -> JsonValue:
    """The object or list that a text holds as JSON, unwrapped up to three times; anything else as it is.

    >>> unwrapped('{"a": 1}'), unwrapped("5"), unwrapped('"[1]"')
    ({'a': 1}, '5', [1])
    """
    inner: JsonValue = value
    for _ in range(3):
        if not isinstance(inner, str) or inner.lstrip()[:1] not in ("{", "[", '"'):
            break
        try:
            inner = parse_json(inner.encode())
        except BadRecord:
            break
    return inner if isinstance(inner, (dict, list)) else value


def short(value: JsonValue) -> str:
    """A value for a message: at most 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


class Occurrences:
    """Ids for records that have none: a content hash and how often it has occurred in the file.

    Real logs repeat themselves, so the hash alone would merge two users who said the same. It remembers one short
    hash per distinct record, which is all that grows with the file.

    >>> ids = Occurrences()
    >>> first, second = ids.id_of({"text": "hi"}), ids.id_of({"text": "hi"})
    >>> first[:-2] == second[:-2], first[-2:], second[-2:]
    (True, '-1', '-2')
    """

    def __init__(self) -> None:
        self._seen: dict[bytes, int] = {}

    def id_of(self, record: JsonValue) -> str:
        """20 hexadecimal digits over the canonical record, a dash, and its 1-based occurrence number."""
        digest = content_hash(record)[:20]
        key = bytes.fromhex(digest)
        self._seen[key] = count = self._seen.get(key, 0) + 1
        return f"{digest}-{count}"
