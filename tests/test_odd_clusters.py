"""Odd input to the decision: each has a defined answer, mostly "ask a person", and none is an error or a silent guess."""

import time
from typing import Any

import pytest

from models.deployment import Deployment
from models.detector import detect
from models.evidence import weigh
from models.fingerprint import cluster_name, fingerprint
from models.router import Decision, decide
from store.records import Case, Episode, Failure, Feedback, Policy, Span, Trace

DEPLOYMENT = Deployment(models={"intents": None}, tools={"pay": {"type": "object", "required": ["sum"]}})


def failing(number: int, *, user: str | None = None, text: Any = None, steps: int = 0, **right: Any) -> Case:
    key: dict[str, Any] = {"source": "s", "trace_external_id": str(number)}
    spans = tuple(
        Span(**key, external_id=str(at), position=at, kind="tool", name="pay", input={"at": at}, error="boom")
        for at in range(steps)
    )
    said = Feedback(**key, external_id="f", score=0.0, principal=user, **right)
    trace = Trace(source="s", external_id=str(number), user=user, input=text, output="no" if text else None)
    episode = Episode(trace=trace, spans=spans, feedback=(said,))
    failure = Failure(trace_id=trace.id, picked_us=0, probability=1.0, source=user or "unknown")
    return Case(failure=failure, episode=episode, signals=detect(episode, meanings={}))


def decision(*cases: Case, satisfied: tuple[Episode, ...] = ()) -> Decision:
    batch = [case.episode for case in cases]
    evidence = weigh(cases, satisfied, deployment=DEPLOYMENT, policy=Policy(), batch=batch)
    return decide(evidence, deployment=DEPLOYMENT, policy=Policy(), failures=len(cases))


def test_traces_without_spans_and_text_go_to_a_person_who_is_told_what_to_write() -> None:
    found = decision(*[failing(n) for n in range(5)])
    assert (found.target, found.certified) == (None, False)
    assert found.to_yes.startswith("write what would have been right for these 5 failures (about 3 minutes)")


@pytest.mark.parametrize(
    "text", ["我的订单在哪里", "أين طلبي", "где мой заказ", "\u202egnorw", "🦊" * 50, " ", "\ud800"]
)
def test_any_language_has_an_answer_and_a_name(text: str) -> None:
    cases = [failing(n, user=f"u{n}", text=text) for n in range(6)]
    assert not decision(*cases).certified
    assert cluster_name(fingerprint(cases[0]))


def test_ten_thousand_steps_are_decided_within_seconds() -> None:
    began = time.perf_counter()
    found = decision(*[failing(n, steps=10_000) for n in range(2)])
    assert (found.certified, time.perf_counter() - began < 30) == (False, True)


def test_one_user_alone_is_no_rule_for_everybody() -> None:
    satisfied = tuple(failing(100 + n, user=f"u{n}", text="where to").episode for n in range(20))
    cases = [failing(n, user="ann", text="where to", comment="not for me", corrected_output="Elm") for n in range(6)]
    assert decision(*cases, satisfied=satisfied).target == "memory"


def test_a_different_user_each_time_is_nobodys_memory() -> None:
    satisfied = tuple(failing(1000 + n, user=f"v{n}", text=f"where is {n}").episode for n in range(20))
    cases = [failing(n, user=f"u{n}", text=f"where is {n}") for n in range(200)]
    assert decision(*cases, satisfied=satisfied).target != "memory"


def test_a_cluster_of_one_is_never_certified_and_says_so() -> None:
    found = decision(failing(1, text="x", corrected_output="y"))
    assert (found.certified, "a single failure" in found.reason) == (False, True)


def test_failures_that_are_all_alike_count_as_one_source() -> None:
    cases = [failing(n, user="ann", text="same", corrected_output="other") for n in range(50)]
    evidence = weigh(cases, (), deployment=DEPLOYMENT, policy=Policy())
    assert (evidence["n_eff"], evidence["sources"]) == (5.0, 1.0)


def test_contradictory_corrections_ask_which_is_right() -> None:
    cases = [failing(n, user="ann", text="x", corrected_output=str(n)) for n in range(4)]
    found = decision(*cases)
    assert (found.target, found.certified) == (None, False)
    assert found.to_yes.startswith("say which of the contradictory corrections is right")


def test_a_correction_that_equals_the_output_is_no_failure() -> None:
    case = failing(1, text="x")
    same = case.episode.feedback[0].model_copy(update={"corrected_output": "no", "score": None})
    signals = detect(case.episode.model_copy(update={"feedback": (same,)}), meanings={})
    assert [signal.weight for signal in signals] == [-4.0]


def test_a_label_nobody_has_seen_is_read_as_any_other() -> None:
    key: dict[str, Any] = {"source": "s", "trace_external_id": "1"}
    step = Span(**key, external_id="p", kind="predict", model="intents", input="hi", output="a", confidence=0.4)
    said = Feedback(**key, external_id="f", name="label", corrected_output="never seen before")
    episode = Episode(trace=Trace(source="s", external_id="1", input="hi"), spans=(step,), feedback=(said,))
    signals = detect(episode, meanings={}, out_of_scope={"intents": None})
    case = Case(
        failure=Failure(trace_id=episode.trace.id, picked_us=0, probability=1.0), episode=episode, signals=signals
    )
    assert cluster_name(fingerprint(case)) == "`intents` answers `a` where `never seen before` is right"
    assert decision(case).target == "weights"


def test_without_satisfied_neighbours_what_needs_them_is_not_measured() -> None:
    evidence = weigh([failing(n, user="ann", text="x") for n in range(6)], (), deployment=DEPLOYMENT, policy=Policy())
    needs = (
        "user_concentration",
        "cross_user_conflict",
        "novelty",
        "probe_x",
        "probe_user",
        "probe_scope",
        "probe_flag",
    )
    assert {name: evidence[name] for name in needs} == dict.fromkeys(needs)
