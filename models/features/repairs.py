"""Which normalisers would have mended a failing call: by the tool's schema, else by the calls that succeeded."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from models.error_class import error_class
from models.features.material import Material
from models.normalise import repair
from models.schema import Violation, argument_schema, violations
from models.steps import arguments, error_text, step_name
from store.records import Span
from store.records.identity import canonical_json

_SHAPE_KEYWORDS = frozenset({"type", "enum", "const", "pattern", "format", "maxLength"})
FEWEST = 3
"""Different values of an argument in calls that succeeded, from which what all of them begin with is its prefix."""
_PREFIX = re.compile(r"(?:[^\d\s]*(?![^\W_])[^\d\s])?")
"""What a prefix may be: no digits, no blanks, and neither a letter nor a digit at its end."""


@dataclass(frozen=True)
class Accepted:
    """What tools accepted, in calls that succeeded."""

    values: Mapping[str, frozenset[str]]
    """Argument name to its values, as canonical JSON, of whatever tool."""
    prefixes: Mapping[tuple[str, str], str]
    """Tool and argument to what all its values begin with, up to a sign that is neither letter nor digit."""
    shapes: Mapping[tuple[str, str], frozenset[str]]
    """Tool and argument with a prefix to the shapes of its values."""


def accepted_by(calls: Iterable[Span]) -> Accepted:
    """What the calls that succeeded were made with."""
    values: dict[str, set[str]] = {}
    of_tool: dict[tuple[str, str], list[JsonValue]] = {}
    for call in calls:
        if error_text(call) is None:
            for name, value in arguments(call).items():
                values.setdefault(name, set()).add(canonical_json(value))
                of_tool.setdefault((step_name(call), name), []).append(value)
    prefixes = {key: prefix for key, found in of_tool.items() if (prefix := common_prefix(found))}
    shapes = {key: frozenset(_shape(str(value)) for value in of_tool[key]) for key in prefixes}
    return Accepted({name: frozenset(found) for name, found in values.items()}, prefixes, shapes)


def common_prefix(values: Iterable[JsonValue]) -> str:
    """What at least three different texts all begin with, up to a sign that is neither letter nor digit; empty: nothing.

    >>> common_prefix(["L-12341", "L-12342", "L-12343"]), common_prefix(["2024-05-01", "2024-05-02", "2024-05-03"])
    ('L-', '')
    >>> common_prefix(["L-1", "L-2"]), common_prefix(["L-1", "L-2", 3]), common_prefix(["find a", "find b", "find c"])
    ('', '', '')
    """
    texts: set[str] = set()
    for value in values:
        if not isinstance(value, str):
            return ""
        texts.add(value)
    if len(texts) < FEWEST:
        return ""
    first, last = min(texts), max(texts)
    same = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
    found = _PREFIX.match(first[:same])
    return found[0] if found else ""


def schema_of(material: Material, call: Span) -> Mapping[str, JsonValue] | None:
    """The declared schema of the call's arguments; None: there is none."""
    return argument_schema(material.deployment.tools.get(call.name or ""))


def broken_by(material: Material, call: Span) -> tuple[Violation, ...] | None:
    """What of the declared schema the call breaks; None: it cannot be checked."""
    schema = schema_of(material, call)
    return None if schema is None or call.input is None else violations(arguments(call), schema)


def repairs_of(material: Material, call: Span, accepted: Accepted) -> dict[str, tuple[str, ...]] | None:
    """Argument path to the normalisers that mend it; None: there is nothing to check against."""
    broken = broken_by(material, call)
    if broken:
        return _by_schema(broken, step_name(call), accepted)
    if error_text(call) is None:
        return None
    return _by_success(call, accepted)


def _by_schema(broken: Iterable[Violation], tool: str, accepted: Accepted) -> dict[str, tuple[str, ...]]:
    found = {}
    for item in broken:
        choices = item.schema.get("enum")
        if item.keyword not in _SHAPE_KEYWORDS:
            continue
        chain = repair(
            item.value,
            lambda value, schema=item.schema: not violations(value, schema),  # type: ignore[misc]
            choices=choices if isinstance(choices, list) else (),
            prefixes=_prefix(accepted, tool, item.path),
        )
        if chain:
            found[item.path] = chain
    return found


def _by_success(call: Span, accepted: Accepted) -> dict[str, tuple[str, ...]] | None:
    found: dict[str, tuple[str, ...]] = {}
    compared = False
    tool = step_name(call)
    for name, value in arguments(call).items():
        known = accepted.values.get(name, frozenset())
        if not known or canonical_json(value) in known:
            continue
        compared = True
        chain = repair(
            value,
            lambda mended, known=known: canonical_json(mended) in known,  # type: ignore[misc]
            prefixes=_prefix(accepted, tool, name),
        ) or _by_prefix(call, name, value, accepted)
        if chain:
            found[name] = chain
    return found if compared else None


def _by_prefix(call: Span, name: str, value: JsonValue, accepted: Accepted) -> tuple[str, ...] | None:
    """The prefix that all accepted values have and this one lacks, where it gives it the shape of one of them."""
    prefix = accepted.prefixes.get((step_name(call), name), "")
    unrelated = error_class(error_text(call), call.error_type) in ("transient", "auth")
    if not prefix or unrelated or not isinstance(value, str) or value.startswith(prefix):
        return None
    shapes = accepted.shapes[step_name(call), name]
    for chain, text in (((f"prefix:{prefix}",), value), (("trim", f"prefix:{prefix}"), value.strip())):
        if text and not text.startswith(prefix) and _shape(prefix + text) in shapes:
            return chain
    return None


def _prefix(accepted: Accepted, tool: str, path: str) -> list[str]:
    prefix = accepted.prefixes.get((tool, path))
    return [prefix] if prefix and prefix != "#" else []


def _shape(text: str) -> str:
    """Digits as 9 and letters as A, one for one.

    >>> _shape("L-123x")
    'A-999A'
    """
    return re.sub(r"[^\W\d_]", "A", re.sub(r"\d", "9", text))
