"""The user's agent as something that answers a case: in a child process of their interpreter, or behind a URL."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from pydantic import JsonValue

MOST_BYTES = 4 << 20
"""Of one answer."""


class HookFailed(Exception):
    """The hook did not answer, or not in time, or with what is no answer. It says nothing about the change."""


class Asked(NamedTuple):
    """One case for the hook."""

    input: JsonValue
    release: Mapping[str, Any]
    """The release document, with the user's facts as `facts`."""
    recorded: list[dict[str, Any]]
    """Calls of the log: `{"name", "arguments", "answers": [{"output"} or {"error"}]}`."""
    case: Mapping[str, Any]
    """For the check: the served output, the corrected one, and what was said."""


class Answer(NamedTuple):
    """What the hook answered."""

    output: JsonValue
    calls: list[dict[str, Any]]
    """`{"name", "arguments", "output" or "error"}`."""
    missing: list[str]
    """Tools that were called in a way that is not recorded: then nothing is measured."""
    cost_usd: float | None
    right: bool | None
    """What the user's check says; None: there is none, or it cannot say."""


class Hook(Protocol):
    """Answers cases, from several threads at a time."""

    name: str

    def ask(self, asked: Asked) -> Answer:
        """Raises HookFailed."""

    def probe(self) -> str:
        """What is known of it without asking it anything. Raises HookFailed where it cannot be loaded."""

    def close(self) -> None: ...


def read_answer(value: Any) -> Answer:
    """The answer in a JSON value. Raises HookFailed for what is none."""
    if not isinstance(value, dict):
        raise HookFailed("the answer is not an object")
    problem = value.get("hook") or value.get("error")
    if problem:
        raise HookFailed(str(problem)[:500])
    calls, missing = value.get("tool_calls") or [], value.get("missing") or []
    if not missing and "output" not in value:
        raise HookFailed("the answer has no `output`")
    if not isinstance(calls, list) or not all(isinstance(each, dict) and "name" in each for each in calls):
        raise HookFailed("`tool_calls` is not a list of calls with `name` and `arguments`")
    cost, right = value.get("cost"), value.get("right")
    if cost is not None and (isinstance(cost, bool) or not isinstance(cost, int | float) or not 0 <= cost < 1e9):
        raise HookFailed(f"`cost` is no amount of money: {str(cost)[:40]}")
    return Answer(
        output=value.get("output"),
        calls=calls,
        missing=[str(each) for each in missing],
        cost_usd=None if cost is None else float(cost),
        right=right if isinstance(right, bool) else None,
    )
