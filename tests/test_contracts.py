"""The one battery of checks that every detector and router passes: named, versioned, deterministic, never raising."""

import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models.detector import DETECTORS, Detector, detect, is_failure, judge
from models.evidence import Deployment, weigh
from models.fingerprint import FINGERPRINT_VERSION, cluster_name, failing_step, fingerprint
from models.router import decide
from store.records import Case, Episode, Failure, Feedback, Meaning, Policy, Span, Trace

texts = (
    st.none() | st.text(max_size=20) | st.sampled_from(["Error: no", "always", "I cannot help", "{", '{"error": 1}'])
)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | texts
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
times = st.none() | st.integers(-(2**62), 2**62)
kinds = st.sampled_from(
    ["predict", "llm", "tool", "retrieval", "memory", "agent", "chain", "guardrail", "user", "other"]
)
names = st.sampled_from([None, "", "get_order", "cancel_order", "transfer_to_human", "路由", "label"])

spans = st.builds(
    Span,
    source=st.just("s"),
    trace_external_id=st.just("1"),
    external_id=st.sampled_from(["a", "b", "c"]),
    kind=kinds,
    name=names,
    model=names,
    status=st.sampled_from(["ok", "error", "unset"]),
    error=texts,
    error_type=texts,
    input=values,
    output=values,
    started_us=times,
    ended_us=times,
    confidence=st.none() | st.floats(0, 1),
    memories=st.lists(values, max_size=2).map(tuple),
    attributes=st.dictionaries(st.sampled_from(["finish_reason", "age_s"]), values, max_size=2),
)
feedback = st.builds(
    Feedback,
    source=st.just("s"),
    trace_external_id=st.just("1"),
    external_id=st.sampled_from(["f", "g"]),
    span_external_id=st.sampled_from([None, "a", "elsewhere"]),
    name=st.sampled_from(["thumb", "reward", "label", "errors", ""]),
    score=st.none() | st.floats(),
    label=texts,
    comment=texts,
    corrected_output=values,
    source_kind=st.sampled_from(["human", "program", "judge"]),
    given_us=times,
)
traces = st.builds(
    Trace,
    source=st.just("s"),
    external_id=st.just("1"),
    status=st.sampled_from(["ok", "error", "unset"]),
    error=texts,
    input=values,
    output=values,
    user=texts,
    channel=texts,
    started_us=times,
)
episodes = st.builds(
    Episode,
    trace=traces,
    spans=st.lists(spans, max_size=5).map(tuple),
    feedback=st.lists(feedback, max_size=3).map(tuple),
)
MEANINGS = {"errors": Meaning(good="low"), "": Meaning(kind="evaluation")}
LABELS = {"get_order": "oos", "": None}
quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def case_of(episode: Episode, **failure: Any) -> Case:
    own = Failure(trace_id=episode.trace.id, picked_us=0, probability=1.0, **failure)
    return Case(failure=own, episode=episode, signals=detect(episode, meanings=MEANINGS, out_of_scope=LABELS))


def huge() -> Episode:
    steps = tuple(
        Span(
            source="s",
            trace_external_id="1",
            external_id=str(at),
            kind="tool",
            name=f"tool_{at % 7}",
            input={"at": at},
            error="boom",
        )
        for at in range(10_000)
    )
    return Episode(trace=Trace(source="s", external_id="1", input="x" * 1_000_000), spans=steps)


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda detector: detector.name)
def test_a_detector_is_named_and_versioned(detector: Detector) -> None:
    assert detector.name
    assert detector.version >= 1


def test_detectors_have_distinct_names() -> None:
    assert len({detector.name for detector in DETECTORS}) == len(DETECTORS)


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda detector: detector.name)
@quick
@given(episode=episodes)
def test_a_detector_never_raises_and_repeats_itself(detector: Detector, episode: Episode) -> None:
    found = detector.detect(episode, meanings=MEANINGS, out_of_scope=LABELS)
    assert found == detector.detect(episode, meanings=MEANINGS, out_of_scope=LABELS)
    assert {signal.detector for signal in found} <= {detector.name}
    assert {signal.detector_version for signal in found} <= {detector.version}
    assert all(signal.trace_id == episode.trace.id and math.isfinite(signal.weight) for signal in found)


@quick
@given(episode=episodes)
def test_the_judgement_is_a_probability_and_agrees_with_the_verdict(episode: Episode) -> None:
    found = detect(episode, meanings=MEANINGS, out_of_scope=LABELS)
    assert 0.0 <= judge(found) <= 1.0
    assert is_failure(found) == (judge(found) >= 0.5)
    assert judge(found) == judge(tuple(reversed(found)))


@quick
@given(episode=episodes)
def test_every_episode_has_a_fingerprint_and_a_name(episode: Episode) -> None:
    case = case_of(episode)
    found = fingerprint(case)
    assert found == fingerprint(case)
    assert found.version == FINGERPRINT_VERSION
    assert cluster_name(found)
    step = failing_step(episode, case.signals)
    assert step is None or step in episode.spans


@quick
@given(cases=st.lists(episodes, max_size=3), satisfied=st.lists(episodes, max_size=3))
def test_every_cluster_has_evidence_and_a_decision(cases: list[Episode], satisfied: list[Episode]) -> None:
    deployment = Deployment(
        tools={"get_order": {"required": ["id"], "properties": {"id": {"type": "string"}}}, "cancel_order": None},
        models={"m": None},
        context_changed_us=0,
        context_limit_tokens=100,
        freshness_s={"get_order": 1.0},
    )
    found = weigh([case_of(episode) for episode in cases], satisfied, deployment=deployment, policy=Policy())
    assert all(value is None or math.isfinite(value) for value in found.values())
    assert found == weigh([case_of(episode) for episode in cases], satisfied, deployment=deployment, policy=Policy())
    assert decide(found, deployment=deployment, policy=Policy(), failures=len(cases)).to_yes


def test_ten_thousand_steps_and_a_million_characters_are_read() -> None:
    episode = huge()
    case = case_of(episode)
    assert len(case.signals) == 7
    found = weigh([case, case], [episode], deployment=Deployment(), policy=Policy())
    assert found["error_other"] == 1.0
    assert cluster_name(fingerprint(case)) == "`tool_3` fails: other error"
