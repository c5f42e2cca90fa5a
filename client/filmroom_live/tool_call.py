"""A tool call through the release's policy: normalised, checked against the tool's schema, explained. Never raises."""

import copy
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from filmroom_live.documents import Policy, Release
from filmroom_live.normalise import JsonValue, apply_chain
from filmroom_live.rule_text import plain
from filmroom_live.schema import Violation, argument_schema, place_of, schema_at, violations

DEEPEST = 32
"""Levels of a schema or of arguments that are looked into."""
_SHOWN = 120
"""Characters of a value in a sentence."""


class Changed(NamedTuple):
    """One argument that was normalised."""

    path: str
    before: JsonValue
    after: JsonValue
    by: tuple[str, ...] = ()
    """The normalisers that did it."""


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
    def log(self) -> dict[str, Any]:
        """What was done, for the span of the call: which argument by which normaliser, without its value; and what is wrong."""
        changed = [{"path": each.path, "by": list(each.by)} for each in self.changed]
        return {"normalised": changed, "problems": len(self.problems), "disabled": self.disabled}

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
    problems = [explained(each, policy.expected) for each in violations(mended, schema)]
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


def explained(broken: Violation, expected: Mapping[str, str] = MappingProxyType({})) -> str:
    """What is wrong, where, and what is expected there; `expected`: path to the words of a reviewer, which then end it.

    >>> [broken] = violations({"id": "12"}, {"properties": {"id": {"pattern": "^#"}}})
    >>> explained(broken)
    'id: "12" does not match the pattern ^#'
    >>> explained(broken, {"id": "# and the digits of the order"})
    'id: "12" does not match the pattern ^#; expected: # and the digits of the order'
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
        "format": f"{where}: {shown} is no {plain(str(wanted))} as in RFC 3339, such as "
        + ("2026-05-20" if wanted == "date" else "2026-05-20T10:00:00Z"),
        "minLength": f"{where}: {shown} is shorter than {_shown(wanted)} characters",
        "maxLength": f"{where}: {shown} is longer than {_shown(wanted)} characters",
    }
    said = sentences.get(broken.keyword, f"{where}: breaks {broken.keyword}")
    words = expected.get(broken.path)
    return f"{said}; expected: {plain(words)}" if words else said + _nearest(broken)


def _normalised(
    given: dict[str, Any], policy: Policy, schema: Mapping[str, Any]
) -> tuple[dict[str, Any], list[Changed]]:
    """The arguments through the policy's normalisers. A value that the schema accepts stays one that it accepts."""
    changed = []
    for path, chain in policy.normalisers.items():
        holder, name = place_of(given, path.split("."))
        if holder is None:
            continue
        place = schema_at(schema, path.split("."))
        choices = place.get("enum")
        before = holder[name]
        after = apply_chain(chain, before, choices=choices if isinstance(choices, list) else ())
        if after == before or (violations(after, place) and not violations(before, place)):
            continue
        holder[name] = after
        changed.append(Changed(path, before, after, chain))
    return given, changed


def _nearest(broken: Violation) -> str:
    """The allowed value that is most like a wrong one, where one is."""
    choices = broken.schema.get("enum")
    if broken.keyword != "enum" or not isinstance(choices, list) or not isinstance(broken.value, str):
        return ""
    from difflib import get_close_matches

    alike = get_close_matches(broken.value[:_SHOWN], [each for each in choices if isinstance(each, str)], 1)
    return f"; did you mean {_shown(alike[0])}?" if alike else ""


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
