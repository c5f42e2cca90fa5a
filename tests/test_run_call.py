"""A tool call carried out under its policy: refused, retried, timed, and told when the answer is too old."""

import time
from typing import Any

from filmroom_live import Outcome, run_call
from filmroom_live.documents import NO_RELEASE, Policy
from filmroom_live.tool_call import ToolCall, tool_call

SCHEMA: Any = {"type": "object", "required": ["id"], "properties": {"id": {"type": "string", "enum": ["late", "lost"]}}}


def call(arguments: dict[str, Any] | None = None, **policy: Any) -> ToolCall:
    release = NO_RELEASE._replace(policies={"find": Policy("find", **policy)}, schemas={"find": SCHEMA})
    return tool_call(release, "find", {"id": "late"} if arguments is None else arguments)


def failing(times: int, output: Any = "found") -> Any:
    left = iter(range(times))

    def function(id: str) -> Any:
        for number in left:
            raise ConnectionError(f"try {number}")
        return output

    return function


def test_a_call_goes_through() -> None:
    assert run_call(call(), failing(0)) == Outcome("found", "", 1)


def test_a_bad_call_is_not_made_and_the_error_names_the_expected_value() -> None:
    outcome = run_call(call({"id": "lsot"}), failing(0))
    assert outcome == Outcome(None, 'id: "lsot" is none of late, lost; did you mean "lost"?', 0)


def test_a_reviewers_words_end_the_error() -> None:
    assert call({"id": "x"}, expected={"id": "late or lost"}).problems == (
        'id: "x" is none of late, lost; expected: late or lost',
    )


def test_a_tool_that_is_switched_off_is_not_called() -> None:
    outcome = run_call(call(disabled=True), failing(0))
    assert outcome == Outcome(None, "find is switched off", 0)


def test_a_call_is_retried_as_often_as_the_policy_says() -> None:
    assert run_call(call(retries=2), failing(2), pause_s=0) == Outcome("found", "", 3)
    assert run_call(call(retries=1), failing(2), pause_s=0) == Outcome(None, "find: ConnectionError: try 1", 2)
    assert run_call(call(), failing(1), pause_s=0) == Outcome(None, "find: ConnectionError: try 0", 1)


def test_a_call_ends_after_its_timeout() -> None:
    started = time.monotonic()
    outcome = run_call(call(timeout_s=0.05, retries=1), lambda id: time.sleep(2), pause_s=0)
    assert outcome == Outcome(None, "find: no answer within 0.05 s", 2)
    assert time.monotonic() - started < 1


def test_an_output_that_is_too_old_is_asked_for_again_and_told() -> None:
    ages = iter([90, 10])
    fresh = run_call(call(freshness_s=60, retries=1), lambda id: {"age_s": next(ages)}, pause_s=0)
    assert (fresh.output, fresh.attempts, fresh.ok) == ({"age_s": 10}, 2, True)
    stale = run_call(call(freshness_s=60), lambda id: {"at": 90}, age_s=lambda output: float(output["at"]))
    assert (stale.is_stale, stale.ok, stale.error) == (True, False, "")


def test_an_age_that_cannot_be_read_is_no_age() -> None:
    assert run_call(call(freshness_s=60), lambda id: None, age_s=lambda output: output["at"]).ok
