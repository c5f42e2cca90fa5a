"""What a log carries as text and means as a value: JSON inside JSON, Python's own spelling, and text that was cut."""

import ast
import json
import re

import orjson
from pydantic import JsonValue

from store.sources.contract import BadRecord
from store.sources.sanitise import MAX_DEPTH, clean, parse_json

LAYERS = 3
"""How often a text is unwrapped: doubly encoded values are common, a third layer has been seen."""

_LONGEST_LITERAL = 8 * 1024 * 1024
_PYTHON = re.compile(r"\s*[\[{(]\s*(?:[\[{(]\s*)*['\"\d\-NTF\]})]")
_NOT_FINITE = re.compile(r"'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\"|(?<![\w.])-?(?:nan|inf)(?![\w.])", re.DOTALL)
_ELLIPSES = ("...", "…")

Object = dict[str, JsonValue]


def decoded(value: JsonValue) -> JsonValue:
    """The value that a text holds as JSON or as Python's `repr`, through up to three layers; anything else as it is.

    A bare number stays the text it is, so that an order number is not turned into a quantity.

    >>> decoded('"{\\\\"a\\\\": 1}"'), decoded('"hi"'), decoded("5"), decoded("{'a': None, 'b': nan}")
    ({'a': 1}, 'hi', '5', {'a': None, 'b': None})
    """
    for _ in range(LAYERS):
        if not isinstance(value, str):
            break
        inner = _opened(value)
        if inner is value:
            break
        value = inner
    return value


def _opened(text: str) -> JsonValue:
    first = text.lstrip()[:1]
    if first in ("{", "[", '"'):
        try:
            return _parsed(text)
        except BadRecord:
            return _literal(text)
    if first == "(":
        return _literal(text)
    return None if text == "null" else text


def _parsed(text: str) -> JsonValue:
    """Quick for what is plain; what may hold something bad goes the careful way."""
    if text.count("{") + text.count("[") <= MAX_DEPTH and "\\u" not in text:
        try:
            value: JsonValue = orjson.loads(text)
        except orjson.JSONDecodeError:
            pass
        else:
            return value
    return parse_json(text.encode("utf-8", "surrogatepass"))


def _literal(text: str) -> JsonValue:
    """The object or list that is spelt as Python would; the text where it is none."""
    if len(text) > _LONGEST_LITERAL or not _PYTHON.match(text):
        return text
    if "nan" in text or "inf" in text:
        text_ = _NOT_FINITE.sub(lambda found: found[0] if found[0][0] in "'\"" else "None", text)
    else:
        text_ = text
    try:
        value = clean(ast.literal_eval(text_.strip()))
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError, BadRecord):
        return text
    return value if isinstance(value, (dict, list)) else text


def packed(value: JsonValue) -> bytes:
    """The value as JSON; numbers beyond 64 bits and lone surrogates included, which the quick way refuses."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return json.dumps(value).encode()


def object_of(value: JsonValue) -> Object:
    """The object that a value is or holds as text; empty where it is none."""
    found = decoded(value) if isinstance(value, str) else value
    return found if isinstance(found, dict) else {}


def list_of(value: JsonValue) -> list[JsonValue]:
    """The list that a value is or holds as text; empty where it is none."""
    found = decoded(value) if isinstance(value, str) else value
    return found if isinstance(found, list) else []


def is_cut(value: JsonValue) -> bool:
    """Whether a text begins as JSON and ends before it is closed: a preview, or a limit on the attribute's length.

    >>> is_cut('{"a": "xx'), is_cut('{"a": "x...'), is_cut('{"a": 1}'), is_cut("{not json}"), is_cut("[1, 2")
    (True, True, False, False, True)
    """
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "[", '"'):
        return False
    text = value.rstrip()
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return error.msg.startswith("Unterminated string") or error.pos >= len(text) or _ends_in_dots(text, error.pos)
    except (ValueError, RecursionError):
        return False
    return False


def _ends_in_dots(text: str, position: int) -> bool:
    return any(text.endswith(dots) and position >= len(text) - len(dots) for dots in _ELLIPSES)


def cut_fields(**values: JsonValue) -> dict[str, JsonValue]:
    """The attribute `truncated` with the names of those values that were cut; empty where none was.

    >>> cut_fields(input='{"a": ', output="fine")
    {'truncated': ['input']}
    """
    names: list[JsonValue] = [name for name, value in values.items() if is_cut(value)]
    return {"truncated": names} if names else {}
