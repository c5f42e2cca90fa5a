"""At the door: values that would poison a table are mended before anything is stored.

One NaN or lone surrogate in a JSON column makes SQLite fail every query that reaches its row, and U+0000 is refused by
PostgreSQL. So non-finite numbers become None, U+0000 and lone surrogates become U+FFFD, in keys and in values.
"""

import json
import math
import re
from typing import Any

from pydantic import JsonValue

from store.sources.contract import BadRecord

MAX_DEPTH = 100
"""Levels of nesting that are read; real traces have about a dozen."""

_TOO_DEEP = f"nested deeper than {MAX_DEPTH} levels"
_STRING_OR_BRACKET = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}]', re.DOTALL)


def clean_text(text: str) -> str:
    """`text` with U+0000 and lone surrogates as U+FFFD, and surrogate pairs joined.

    >>> clean_text("a\\x00b"), clean_text("\\ud83d\\ude00") == "\\U0001f600", clean_text("\\ud83dx")
    ('a\ufffdb', True, '\ufffdx')
    """
    if "\0" in text:
        text = text.replace("\0", "\ufffd")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def clean(value: Any, depth: int = 0) -> JsonValue:
    """A JSON value from anything: bad text and numbers mended, tuples as lists, what is not JSON as its text.

    Raises BadRecord for what is nested deeper than `MAX_DEPTH`.
    """
    if isinstance(value, str):
        return clean_text(value)
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth >= MAX_DEPTH:
        raise BadRecord(_TOO_DEEP)
    if isinstance(value, dict):
        return {clean_text(str(key)): clean(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean(item, depth + 1) for item in value]
    return clean_text(str(value))


def parse_json(data: bytes) -> JsonValue:
    """The clean JSON value in `data`. Raises BadRecord, saying why and where, for what is none.

    Bare NaN, Infinity and numbers beyond a double become None; control characters inside strings are let pass.

    >>> parse_json(b'{"score": NaN, "big": 1e999, "text": "a\\\\u0000b"}')
    {'score': None, 'big': None, 'text': 'a\ufffdb'}
    """
    if data.count(b"{") + data.count(b"[") > MAX_DEPTH and _depth(data) > MAX_DEPTH:
        raise BadRecord(_TOO_DEEP)
    text, suspect = _decoded(data)
    try:
        value: JsonValue = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise BadRecord(f"not JSON: {error.msg} (character {error.pos + 1} of {len(text)})") from error
    except ValueError as error:
        raise BadRecord(f"not JSON: {error}") from error
    escaped = b"\\" in data and b"\\u" in data  # one byte is found ten times as fast as two
    return clean(value) if suspect or escaped or b"\0" in data else value


def decode_utf8(data: bytes) -> str:
    """The text in `data`. Raises BadRecord, naming the byte, where it is not UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadRecord(
            f"not UTF-8: byte 0x{data[error.start]:02x} at position {error.start + 1}; "
            "convert the file, for example with `iconv -f latin1 -t utf-8`"
        ) from error


def _decoded(data: bytes) -> tuple[str, bool]:
    """The text, and whether it may hold surrogates: some producers write them as three bytes each."""
    try:
        return decode_utf8(data), False
    except BadRecord:
        try:
            return data.decode("utf-8", "surrogatepass"), True
        except UnicodeDecodeError:
            pass
        raise


def _depth(data: bytes) -> int:
    depth = deepest = 0
    for token in _STRING_OR_BRACKET.finditer(data):
        first = data[token.start()]
        if first in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif first in b"]}":
            depth -= 1
    return deepest


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def _no_number(_: str) -> None:
    return None


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_no_number, strict=False)
