"""A tool call carried out under its policy: retried, timed, and its answer too old or not."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from filmroom_live.tool_call import ToolCall

PAUSE_S = 0.2
"""Before the first retry; twice as long before each further one."""
MOST_RETRIES = 10


class Outcome(NamedTuple):
    """What came of a call."""

    output: Any
    """What the tool returned; None: it did not."""
    error: str
    """Why there is no output, fit to be shown to the model; empty: there is one."""
    attempts: int
    """0: the tool was not called."""
    is_stale: bool = False
    """Whether the output says that it is older than the policy allows."""

    @property
    def ok(self) -> bool:
        """Whether the output can be used."""
        return not self.error and not self.is_stale


def run_call(
    call: ToolCall, function: Callable[..., Any], *, age_s: Callable[[Any], float | None] | None = None,
    pause_s: float = PAUSE_S,
) -> Outcome:  # fmt: skip
    """Call `function` with the call's arguments, unless something is wrong with them.

    An exception or a timeout is retried as often as the policy says; nothing is raised. `age_s` reads how old an output is,
    by default its `age_s` field; a stale one is asked for again, and comes back as stale in the end. After a timeout the
    tool may still be at work: set `retries` only for tools that may run twice.
    """
    if not call.ok:
        return Outcome(None, "; ".join(call.problems), 0)
    tries = 1 + min(max(call.retries, 0), MOST_RETRIES)
    last = Outcome(None, "", 0)
    for attempt in range(1, tries + 1):
        if attempt > 1:
            time.sleep(pause_s * 2 ** (attempt - 2))
        output, error = _once(function, call.arguments, call.timeout_s)
        if error:
            last = Outcome(None, f"{call.tool}: {error}", attempt)
            continue
        last = Outcome(output, "", attempt, _is_stale(output, call.freshness_s, age_s or _field))
        if not last.is_stale:
            break
    return last


def _once(function: Callable[..., Any], arguments: Mapping[str, Any], timeout_s: float | None) -> tuple[Any, str]:
    """What it returned, and what went wrong."""
    if timeout_s is None or timeout_s <= 0:
        return _called(function, arguments)
    answers: list[tuple[Any, str]] = []
    thread = threading.Thread(
        target=lambda: answers.append(_called(function, arguments)), name="filmroom-tool", daemon=True
    )
    thread.start()
    thread.join(timeout_s)
    return answers[0] if answers else (None, f"no answer within {timeout_s:g} s")


def _called(function: Callable[..., Any], arguments: Mapping[str, Any]) -> tuple[Any, str]:
    try:
        return function(**arguments), ""
    except Exception as error:  # noqa: BLE001  # whatever the tool raises is its answer
        return None, f"{type(error).__name__}: {error}"[:500]


def _is_stale(output: Any, freshness_s: float | None, age_s: Callable[[Any], float | None]) -> bool:
    if freshness_s is None:
        return False
    try:
        age = age_s(output)
    except Exception:  # noqa: BLE001  # an output whose age cannot be read has none
        age = None
    return age is not None and age > freshness_s


def _field(output: Any) -> float | None:
    age = output.get("age_s") if isinstance(output, Mapping) else None
    return float(age) if isinstance(age, int | float) and not isinstance(age, bool) else None
