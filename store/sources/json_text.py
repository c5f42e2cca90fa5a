"""JSON inside the text of an attribute: unwrapped, mended, and what was wrong with it remembered."""

import re

import orjson
from pydantic import JsonValue

from store.sources.contract import BadRecord
from store.sources.sanitise import MAX_DEPTH, parse_json

_NOT_FINITE = re.compile(r"(?:^|[\s:,\[{-])(?:NaN|Infinity)(?=$|[\s,\]}])")


class Flaws:
    """What was wrong with the JSON of one span, by attribute."""

    def __init__(self) -> None:
        self.truncated: list[str] = []
        """Cut off, so that it is kept as text."""
        self.not_finite: list[str] = []
        """Held NaN or Infinity, which are null now."""

    @property
    def marks(self) -> dict[str, JsonValue]:
        """For a record's attributes; empty where nothing was wrong."""
        found = {"truncated": self.truncated, "not_finite": self.not_finite}
        return {name: list(places) for name, places in found.items() if places}


def loaded(value: JsonValue, name: str, flaws: Flaws) -> JsonValue:
    """The object or list that a text holds as JSON, up to three times wrapped; anything else as it is.

    A text that begins as JSON and is none is kept, and marked as truncated.

    >>> flaws = Flaws()
    >>> loaded('{"a": NaN}', "input", flaws), loaded('[{"a": "b', "output", flaws), loaded("7", "x", flaws)
    ({'a': None}, '[{"a": "b', '7')
    >>> flaws.marks
    {'truncated': ['output'], 'not_finite': ['input']}
    """
    inner = value
    for _ in range(3):
        if not isinstance(inner, str) or inner.lstrip()[:1] not in ("{", "[", '"'):
            break
        try:
            read = _parse(inner)
        except BadRecord:
            if inner.lstrip()[:2] in ("{", "{}", '{"', "[{", '["', "[[") or inner.lstrip()[:2] == '"{':
                flaws.truncated.append(name)
            break
        if isinstance(read, (dict, list)) and _NOT_FINITE.search(inner):
            flaws.not_finite.append(name)
        inner = read
    return inner if isinstance(inner, (dict, list)) else value


def decoded(value: JsonValue, name: str, flaws: Flaws) -> JsonValue:
    """The value of a text that is JSON by its definition, plain texts included; what is none as it is.

    >>> decoded('"yes"', "x", Flaws()), decoded("yes", "x", Flaws())
    ('yes', 'yes')
    """
    found = loaded(value, name, flaws)
    if isinstance(found, str) and len(found) > 1 and found[0] == found[-1] == '"':
        try:
            return _parse(found)
        except BadRecord:
            return found
    return found


def _parse(text: str) -> JsonValue:
    """Quick for what is plain; what may hold something bad goes the careful way."""
    if text.count("{") + text.count("[") <= MAX_DEPTH and "\\u" not in text:
        try:
            value: JsonValue = orjson.loads(text)
        except orjson.JSONDecodeError:
            pass
        else:
            return value
    return parse_json(text.encode("utf-8", "surrogatepass"))
