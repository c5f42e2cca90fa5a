"""A tool's declared JSON schema against the arguments of a call: the subset that tools use.

Read: `type`, `required`, `properties`, `items`, `enum`, `const`, `pattern`, `minimum`, `maximum`, `minLength`,
`maxLength`, `format` (`date`, `date-time`), `additionalProperties: false`. Every other keyword is ignored: what is not read
is not called a violation.
`models/schema.py` is a link to this file, which therefore needs the standard library only.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any, NamedTuple, TypeAlias

JsonValue: TypeAlias = "list[JsonValue] | dict[str, JsonValue] | str | bool | int | float | None"

_PATTERN_LIMIT = 1_000
"""Longer texts are not matched against a pattern: characters."""

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
    "null": (type(None),),
}

_FORMATS: dict[str, tuple[re.Pattern[str], Callable[[str], object]]] = {
    "date": (re.compile(r"\d{4}-\d\d-\d\d", re.ASCII), date.fromisoformat),
    "date-time": (
        re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII),
        datetime.fromisoformat,
    ),
}
"""Formats that are read, as RFC 3339 spells them: the shape, and what reads its first 19 characters."""


class Violation(NamedTuple):
    """One place where a call breaks its schema."""

    path: str
    """Dotted, for example `address.zip` or `items.0`."""
    keyword: str
    """The schema keyword that is broken."""
    value: JsonValue
    """What stands there; None: nothing."""
    schema: Mapping[str, JsonValue]
    """The schema of that place."""


def argument_schema(tool: JsonValue) -> Mapping[str, JsonValue] | None:
    """The schema of a tool's arguments, bare or inside the usual wrappings; None: there is none.

    >>> argument_schema({"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}})
    {'type': 'object'}
    """
    if not isinstance(tool, Mapping):
        return None
    for key in ("function", "parameters", "input_schema", "inputSchema"):
        inner = tool.get(key)
        if isinstance(inner, Mapping):
            return argument_schema(inner)
    return tool if {"type", "properties", "required"} & set(tool) else None


def violations(
    value: JsonValue, schema: Mapping[str, JsonValue], *, path: str = "", depth: int = 0
) -> tuple[Violation, ...]:
    """Where `value` breaks `schema`, outermost first; empty: nowhere. Nesting below 32 levels is not read.

    >>> [(v.path, v.keyword) for v in violations({"zip": 5}, {"required": ["city"], "properties": {"zip": {"type": "string"}}})]
    [('city', 'required'), ('zip', 'type')]
    """
    if depth > 32:
        return ()
    broken = tuple(Violation(path, keyword, value, schema) for keyword in _broken(value, schema))
    return broken + tuple(_inside(value, schema, path, depth))


def place_of(value: Any, parts: Sequence[str]) -> tuple[Any, Any]:
    """The object or list that holds what the path leads to, and its key there; (None, None): nothing is there."""
    for number, part in enumerate(parts):
        key = int(part) if isinstance(value, list) and part.isascii() and part.isdecimal() and len(part) < 9 else part
        is_there = (isinstance(value, dict) and key in value) or (
            isinstance(value, list) and isinstance(key, int) and key < len(value)
        )
        if not is_there:
            break
        if number == len(parts) - 1:
            return value, key
        value = value[key]
    return None, None


def schema_at(schema: Mapping[str, Any], parts: Sequence[str]) -> Mapping[str, Any]:
    """The schema of the place the path leads to; empty where none is declared."""
    found: Any = schema
    for part in parts:
        properties = found.get("properties")
        inner = properties.get(part) if isinstance(properties, Mapping) else None
        found = inner if inner is not None else found.get("items")
        if not isinstance(found, Mapping):
            return {}
    return found  # type: ignore[no-any-return]


def _broken(value: JsonValue, schema: Mapping[str, JsonValue]) -> Iterator[str]:
    if not _has_type(value, schema.get("type")):
        yield "type"
        return
    choices = schema.get("enum")
    if isinstance(choices, list) and value not in choices:
        yield "enum"
    if "const" in schema and value != schema["const"]:
        yield "const"
    if isinstance(value, str):
        yield from _broken_text(value, schema)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        low, high = schema.get("minimum"), schema.get("maximum")
        if isinstance(low, int | float) and value < low:
            yield "minimum"
        if isinstance(high, int | float) and value > high:
            yield "maximum"


def _broken_text(value: str, schema: Mapping[str, JsonValue]) -> Iterator[str]:
    pattern, shortest, longest = schema.get("pattern"), schema.get("minLength"), schema.get("maxLength")
    if isinstance(pattern, str) and len(value) <= _PATTERN_LIMIT and not _matches(pattern, value):
        yield "pattern"
    if isinstance(shortest, int) and len(value) < shortest:
        yield "minLength"
    if isinstance(longest, int) and len(value) > longest:
        yield "maxLength"
    declared = schema.get("format")
    if isinstance(declared, str) and declared in _FORMATS and not _has_format(value, declared):
        yield "format"


def _has_format(value: str, declared: str) -> bool:
    shape, read = _FORMATS[declared]
    if not shape.fullmatch(value):
        return False
    try:
        read(value[:19])
    except ValueError:
        return False
    return True


def _inside(value: JsonValue, schema: Mapping[str, JsonValue], path: str, depth: int) -> Iterator[Violation]:
    if isinstance(value, list):
        items = schema.get("items")
        if isinstance(items, Mapping):
            for place, item in enumerate(value):
                yield from violations(item, items, path=_joined(path, str(place)), depth=depth + 1)
        return
    if not isinstance(value, dict):
        return
    declared = schema.get("properties")
    properties = declared if isinstance(declared, Mapping) else {}
    required = schema.get("required")
    for name in required if isinstance(required, list) else ():
        if isinstance(name, str) and name not in value:
            yield Violation(_joined(path, name), "required", None, schema)
    for name, item in value.items():
        inner = properties.get(name)
        if isinstance(inner, Mapping):
            yield from violations(item, inner, path=_joined(path, name), depth=depth + 1)
        elif schema.get("additionalProperties") is False and name not in properties:
            yield Violation(_joined(path, name), "additionalProperties", item, schema)


def _has_type(value: JsonValue, declared: JsonValue) -> bool:
    names = declared if isinstance(declared, list) else [declared]
    known = [name for name in names if isinstance(name, str) and name in _TYPES]
    return not known or any(_is(value, name) for name in known)


def _is(value: JsonValue, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[name])


def _matches(pattern: str, value: str) -> bool:
    try:
        return re.search(pattern, value) is not None
    except re.error:
        return True


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
