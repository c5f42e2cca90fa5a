"""Which traces are picked up as failures, and on which signals."""

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from models.detector import BEHAVIOURAL, detect, is_failure, judge
from models.fingerprint import fingerprint
from store.records import Case, Episode, Failure, Feedback, Meaning, Span, Trace

TAU = Path(__file__).parents[2] / "shared" / "data" / "tau"
DAY_US = 86_400_000_000


def span(name: str = "update_order", **fields: Any) -> Span:
    fields = {"kind": "tool", "external_id": name, **fields}
    return Span(source="s", trace_external_id="1", name=name, **fields)


def feedback(name: str = "thumb", **fields: Any) -> Feedback:
    return Feedback(source="s", trace_external_id="1", external_id=name, name=name, **fields)


def episode(*parts: Span | Feedback, **trace: Any) -> Episode:
    return Episode(
        trace=Trace(source="s", external_id="1", **trace),
        spans=tuple(part for part in parts if isinstance(part, Span)),
        feedback=tuple(part for part in parts if isinstance(part, Feedback)),
    )


def failed(found: Episode, **meanings: Meaning) -> bool:
    return is_failure(detect(found, meanings=meanings))


def names(found: Episode) -> list[str]:
    return [signal.detector for signal in detect(found, meanings={})]


def prediction(output: Any, **fields: Any) -> Span:
    return span("router", kind="predict", input="where is my money", output=output, **fields)


def test_a_trace_without_anything_is_not_a_failure() -> None:
    assert detect(episode(), meanings={}) == ()
    assert not failed(episode())


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"score": 0.0}, True),
        ({"score": 1.0}, False),
        ({"label": "down"}, True),
        ({"label": " Thumbs_Up "}, False),
        ({"score": 0.0, "label": "good"}, False),
        ({"score": float("nan")}, False),
    ],
)
def test_explicit_feedback_is_read_by_label_then_by_score(said: dict[str, Any], expected: bool) -> None:
    assert failed(episode(feedback(**said))) is expected


def test_a_declared_meaning_turns_the_polarity() -> None:
    bad = episode(feedback("errors", score=3.0))
    assert failed(bad, errors=Meaning(good="low"))
    assert not failed(episode(feedback("errors", score=0.0)), errors=Meaning(good="low"))


def test_a_score_of_unknown_scale_is_shown_and_not_guessed_at() -> None:
    stars = episode(feedback("stars", score=2.0))
    (signal,) = detect(stars, meanings={})
    assert (signal.detector, signal.weight, signal.detail) == (
        "unread_feedback",
        0.0,
        "set [feedback.stars] to have it read",
    )


def test_a_correction_that_differs_outranks_a_passing_evaluation_and_praise() -> None:
    parts = (feedback("reward", score=1.0), feedback("thumb", score=1.0), feedback("edit", corrected_output="ten days"))
    assert failed(episode(*parts, output="five days"))


def test_a_correction_equal_to_the_answer_speaks_for_success() -> None:
    same = episode(feedback(corrected_output="Five  days"), output="five days")
    (signal,) = detect(same, meanings={})
    assert signal.weight < 0


def test_the_true_label_of_a_prediction_is_compared_with_the_served_one() -> None:
    truth = feedback("label", label="refund")
    assert names(episode(prediction("exchange"), truth)) == ["late_label"]
    assert failed(episode(prediction("exchange"), truth))
    assert not failed(episode(prediction({"label": "refund", "score": 0.6}), truth))


def test_a_label_that_arrives_after_a_day_is_a_late_label() -> None:
    late = feedback("fix", corrected_output="refund", given_us=2 * DAY_US)
    assert names(episode(prediction("exchange"), late, started_us=0)) == ["late_label"]


def test_a_rejected_input_and_the_out_of_scope_label_are_the_same() -> None:
    rejected = episode(prediction(None), feedback("label", label="oos"))
    assert not is_failure(detect(rejected, meanings={}, out_of_scope={"router": "oos"}))
    assert is_failure(detect(rejected, meanings={}, out_of_scope={}))


def test_a_tool_error_counts_unless_the_same_tool_succeeds_later() -> None:
    error = span(external_id="1", output="Error: address missing")
    assert failed(episode(error))
    assert not failed(episode(error, span(external_id="2", output="done")))
    assert failed(episode(error, span("get_order", output="done")))


@pytest.mark.parametrize(
    "fields",
    [
        {"status": "error"},
        {"error": "boom"},
        {"error_type": "TimeoutError"},
        {"output": "ValueError: no"},
        {"output": {"error": "no"}},
        {"output": '{"is_error": true}'},
        {"output": {"status_code": 503}},
    ],
)
def test_an_error_is_read_from_the_status_the_error_or_the_result(fields: dict[str, Any]) -> None:
    assert names(episode(span(**fields))) == ["tool_error"]


def test_a_tool_that_speaks_of_errors_did_not_fail() -> None:
    assert names(episode(span(output="The error rate is 5 %"), span("b", output={"error": None}))) == []


def test_behavioural_hints_alone_are_not_enough() -> None:
    calls = [span("get_order", external_id=str(at), input={"id": 1}, output="x") for at in range(3)]
    assert names(episode(*calls)) == ["repeated_call"]
    assert not failed(episode(*calls))
    assert not failed(episode(span("transfer_to_human_agents")))
    assert not failed(episode(output="I'm sorry, but I can't help with that."))


def test_a_cut_off_answer_is_a_failure() -> None:
    assert failed(episode(span("m", kind="llm", output="The", attributes={"finish_reason": "length"})))


def test_a_passing_evaluation_outranks_every_behavioural_signal() -> None:
    steps = [span("a", error="boom"), span("b", kind="llm", error="boom"), span("transfer_to_human")]
    passed = episode(*steps, feedback("reward", score=1.0), status="error", output="I cannot help")
    found = detect(passed, meanings={})
    assert {signal.detector for signal in found} & BEHAVIOURAL
    assert not is_failure(found)


def test_a_failing_evaluation_beside_a_passing_one_is_a_failure() -> None:
    both = (feedback("reward", score=1.0), feedback("unit", score=0.0, source_kind="program"))
    assert failed(episode(*both))


def test_a_person_outranks_a_passing_evaluation() -> None:
    assert failed(episode(feedback("reward", score=1.0), feedback("thumb", score=0.0)))


def test_a_judge_model_is_weaker_than_a_person() -> None:
    praised = episode(span(error="boom"), feedback("quality", score=0.9, source_kind="judge"))
    assert names(praised) == ["judge", "tool_error"]
    assert not failed(episode(feedback("thumb", score=1.0), feedback("quality", score=0.1, source_kind="judge")))


def test_what_repeats_itself_is_counted_once() -> None:
    found = detect(episode(span(error="boom")), meanings={})
    assert judge(found * 50) == judge(found)


def runs(name: str) -> list[tuple[Episode, bool]]:
    """Logged runs as episodes, each with whether its reward was 0."""
    file = TAU / name
    if not file.exists():
        pytest.skip(f"{name} is not beside the repository")
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        found = json.load(lines)
    return [(logged(str(place), run), run["reward"] == 0) for place, run in enumerate(found)]


def logged(external_id: str, run: dict[str, Any]) -> Episode:
    own = {"source": "tau", "trace_external_id": external_id}
    results = {at: message["content"] for at, message in enumerate(run["traj"]) if message["role"] == "tool"}
    spans = [
        Span(
            **own,
            external_id=f"{at}",
            kind="tool",
            name=call["function"]["name"],
            input=json.loads(call["function"]["arguments"]),
            output=results.get(at + 1),
        )
        for at, message in enumerate(run["traj"])
        for call in message.get("tool_calls") or ()
    ]
    reward = Feedback(**own, external_id="r", name="reward", score=run["reward"], source_kind="program")
    return Episode(trace=Trace(source="tau", external_id=external_id), spans=tuple(spans), feedback=(reward,))


@pytest.mark.parametrize(
    ("file", "failures", "most_clusters"),
    [("retail_100runs.json.gz", 27, 11), ("airline_gpt4o_200runs.json.gz", 116, 13)],
)
def test_exactly_the_runs_without_reward_are_failures_and_share_clusters(
    file: str, failures: int, most_clusters: int
) -> None:
    found = [(run, detect(run, meanings={}), lost) for run, lost in runs(file)]
    assert [is_failure(signals) for _, signals, _ in found] == [lost for _, _, lost in found]
    cases = [
        Case(
            failure=Failure(trace_id=run.trace.id, picked_us=0, probability=judge(signals)),
            episode=run,
            signals=signals,
        )
        for run, signals, lost in found
        if lost
    ]
    assert len(cases) == failures
    assert len({fingerprint(case).key for case in cases}) <= most_clusters


def test_eighteen_successful_retail_runs_carry_behavioural_signals() -> None:
    won = [detect(run, meanings={}) for run, lost in runs("retail_100runs.json.gz") if not lost]
    carrying = [signals for signals in won if any(signal.detector in BEHAVIOURAL for signal in signals)]
    assert len(carrying) == 18
    assert Counter(is_failure(signals) for signals in won) == {False: 73}
