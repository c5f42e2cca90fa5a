"""What a person may write about tools: a policy within its bounds, and only of tools and arguments that there are."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import JsonValue, ValidationError

from store.errors import NotAllowed
from store.records import Operation, ToolPolicy

SHOWN = 20
"""Known names that a refusal lists."""
_OF_A_TOOL = ("use_tool", "do_not_use_tool")


def tool_policy(tool: str, value: Any) -> ToolPolicy:
    """The policy that is written. Raises NotAllowed, naming the field and what is allowed there."""
    fields = ", ".join(name for name in ToolPolicy.model_fields if name != "tool")
    if not isinstance(value, Mapping) or not value.keys() <= ToolPolicy.model_fields.keys() - {"tool"}:
        raise NotAllowed(f"that is not a tool policy: give a JSON object with some of {fields}")
    try:
        return ToolPolicy(tool=tool, **value)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        said = first["msg"].removeprefix("Value error, ")
        raise NotAllowed(f"that is not a tool policy: {place}: {said[:1].lower()}{said[1:]}") from error


def check_tools(operations: Sequence[Operation], tools: Mapping[str, JsonValue], *, by_hand: bool) -> None:
    """Raise NotAllowed where a person's policy or rule is about a tool or an argument that `[agent] tools` does not have.

    `tools`: argument schemas by name; empty: nothing is known, and nothing refused. `by_hand`: no failure of the log is
    behind it; else the tool that failed there may be missing from the file.
    """
    for each in operations:
        if not tools or each.signed_by is None or each.verb not in ("add", "edit"):
            continue
        if each.target == "tooling" and "title" not in each.value:
            if by_hand:
                _check_tool(each.key, tools)
            _check_arguments(each, tools.get(each.key))
        if each.target == "context":
            _check_rule(each.value, tools)


def _check_rule(rule: Mapping[str, Any], tools: Mapping[str, JsonValue]) -> None:
    if rule.get("action") in _OF_A_TOOL:
        _check_tool(str(rule.get("argument", "")), tools)
    scope = rule.get("scope") or {}
    if "tool" in scope:
        _check_tool(str(scope["tool"]), tools)


def _check_tool(name: str, tools: Mapping[str, JsonValue]) -> None:
    if name not in tools:
        raise NotAllowed(f"no tool is named {name!r} in the file of `[agent] tools`; there are {_listed(tools)}")


def _check_arguments(operation: Operation, schema: Any) -> None:
    known = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(known, Mapping) or not known:
        return
    for field in ("normalisers", "expected"):
        given: Any = operation.value.get(field) or {}
        for path in given:
            if path.split(".")[0] not in known:
                raise NotAllowed(f"{field}: {operation.key} has no argument {path!r}; it has {_listed(known)}")


def _listed(names: Mapping[str, Any]) -> str:
    shown = sorted(names)
    more = f" and {len(shown) - SHOWN} more" if len(shown) > SHOWN else ""
    return ", ".join(shown[:SHOWN]) + more
