"""A tool call through the release's policy: normalised, checked against the tool's schema, explained. Never raises."""

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from filmroom_live.documents import Policy, Release
from filmroom_live.normalise import JsonValue, apply_chain
from filmroom_live.rule_text import plain
from filmroom_live.schema import Violation, argument_schema, violations

DEEPEST = 32
"""Levels of a schema or of arguments that are looked into."""
_SHOWN = 120
"""Characters of a value in a sentence."""


class Changed(NamedTuple):
    """One argument that was normalised."""

    path: str
    before: JsonValue
    after: JsonValue


class ToolCall(NamedTuple):
    """What to call the tool with, and what is wrong with it."""

    tool: str
    arguments: dict[str, Any]
    """A copy of what was given, normalised."""
    changed: tuple[Changed, ...] = ()
    problems: tuple[str, ...] = ()
    """One sentence each, naming the argument and what is expected: fit to be shown to the model that made the call."""
    disabled: bool = False
    """The tool must not be called."""
    retries: int = 0
    timeout_s: float | None = None
    freshness_s: float | None = None
    """Oldest output that may be used."""

    @property
    def ok(self) -> bool:
        """Whether to make the call."""
        return not self.problems


def tool_call(release: Release, tool: str, arguments: Any) -> ToolCall:
    """The call under the release's policy for the tool; without one the arguments are only checked.

    `arguments`: an object, by name; anything else is a problem, not an error.
    """
    policy = release.policies.get(tool) or Policy(tool)
    if not isinstance(arguments, Mapping):
        return ToolCall(tool, {}, problems=(f"the arguments of {tool} are not an object",))
    given = _copied(arguments)
    schema = overlaid(argument_schema(release.schemas.get(tool)) or {}, policy.schema_patch)
    mended, changed = _normalised(given, policy, schema)
    problems = [explained(each) for each in violations(mended, schema)]
    if policy.disabled:
        problems.insert(0, f"{tool} is switched off")
    return ToolCall(
        tool=tool,
        arguments=mended,
        changed=tuple(changed),
        problems=tuple(problems),
        disabled=policy.disabled,
        retries=policy.retries or 0,
        timeout_s=policy.timeout_s,
        freshness_s=policy.freshness_s,
    )


def overlaid(schema: Mapping[str, Any], patch: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
    """The schema with the patch laid over it, object by object.

    >>> overlaid({"properties": {"a": {"type": "string"}}}, {"properties": {"a": {"pattern": "^#"}}, "required": ["a"]})
    {'properties': {'a': {'type': 'string', 'pattern': '^#'}}, 'required': ['a']}
    """
    result = dict(schema)
    for name, value in patch.items():
        old = result.get(name)
        inner = isinstance(old, Mapping) and isinstance(value, Mapping) and depth < DEEPEST
        result[name] = overlaid(old, value, depth + 1) if inner else value  # type: ignore[arg-type]
    return result


def explained(broken: Violation) -> str:
    """What is wrong, where, and what is expected there.

    >>> [broken] = violations({"id": "12"}, {"properties": {"id": {"pattern": "^#"}}})
    >>> explained(broken)
    'id: "12" does not match the pattern ^#'
    """
    where, shown = broken.path or "the arguments", _shown(broken.value)
    wanted = broken.schema.get(broken.keyword)
    sentences = {
        "required": f"{where}: missing",
        "additionalProperties": f"{where}: not an argument of this tool",
        "type": f"{where}: {shown} is not of type {_names(wanted)}",
        "enum": f"{where}: {shown} is none of {_names(wanted)}",
        "const": f"{where}: {shown} is not {_shown(wanted)}",
        "pattern": f"{where}: {shown} does not match the pattern {plain(str(wanted))}",
        "minimum": f"{where}: {shown} is less than {_shown(wanted)}",
        "maximum": f"{where}: {shown} is more than {_shown(wanted)}",
        "minLength": f"{where}: {shown} is shorter than {_shown(wanted)} characters",
        "maxLength": f"{where}: {shown} is longer than {_shown(wanted)} characters",
    }
    return sentences.get(broken.keyword, f"{where}: breaks {broken.keyword}")


def _normalised(
    given: dict[str, Any], policy: Policy, schema: Mapping[str, Any]
) -> tuple[dict[str, Any], list[Changed]]:
    """The arguments through the policy's normalisers. A value that the schema accepts stays one that it accepts."""
    changed = []
    for path, chain in policy.normalisers.items():
        holder, name = _place(given, path.split("."))
        if holder is None:
            continue
        place = _schema_at(schema, path.split("."))
        choices = place.get("enum")
        before = holder[name]
        after = apply_chain(chain, before, choices=choices if isinstance(choices, list) else ())
        if after == before or (violations(after, place) and not violations(before, place)):
            continue
        holder[name] = after
        changed.append(Changed(path, before, after))
    return given, changed


def _place(value: Any, parts: Sequence[str]) -> tuple[Any, Any]:
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


def _schema_at(schema: Mapping[str, Any], parts: Sequence[str]) -> Mapping[str, Any]:
    """The schema of the place the path leads to; empty where none is declared."""
    found: Any = schema
    for part in parts:
        properties = found.get("properties")
        inner = properties.get(part) if isinstance(properties, Mapping) else None
        found = inner if inner is not None else found.get("items")
        if not isinstance(found, Mapping):
            return {}
    return found  # type: ignore[no-any-return]


def _copied(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A copy as deep as it can be made, so that the caller's value stays as it is."""
    try:
        return copy.deepcopy(dict(arguments))
    except Exception:  # noqa: BLE001  # whatever a value of the caller's does when it is copied, the call goes on
        return dict(arguments)


def _names(value: Any) -> str:
    return ", ".join(_shown(each) if not isinstance(each, str) else plain(each) for each in value[:20]) \
        if isinstance(value, list) else plain(str(value))  # fmt: skip


def _shown(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = type(value).__name__
    text = plain(text)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
