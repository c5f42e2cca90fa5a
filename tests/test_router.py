"""Where a correction belongs, in numbers and in words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.evidence import FEATURES, Deployment
from models.router import PRIOR, RulePrior, decide
from store.records import TARGETS, Policy

FULL = Deployment(models={"router": None})


def target_of(evidence: dict[str, float | None], deployment: Deployment = FULL) -> str | None:
    return decide(evidence, deployment=deployment, policy=Policy(), failures=4).target


@pytest.mark.parametrize(
    ("evidence", "expected"),
    [
        ({}, None),
        ({"schema_violation": 1.0, "error_validation": 1.0}, "tooling"),
        ({"error_transient": 1.0, "batch_outage": 1.0}, "tooling"),
        ({"error_validation": 1.0}, None),
        ({"normative": 1.0, "rule_gap": 0.9}, "context"),
        ({"user_concentration": 0.8, "first_person": 1.0}, "memory"),
        ({"said_before": 1.0}, "memory"),
        ({"model_step": 1.0, "answered": 1.0}, "weights"),
        ({"model_step": 1.0, "user_concentration": 0.9, "cross_user_conflict": 1.0}, "memory"),
        ({"model_step": 1.0, "contradiction": 1.0}, None),
    ],
)
def test_the_prior_follows_its_evidence(evidence: dict[str, float | None], expected: str | None) -> None:
    assert target_of(evidence) == expected


def test_weights_are_out_of_reach_without_a_failing_prediction() -> None:
    for evidence in ({}, {"model_step": None}, {"model_step": 0.0, "confident_wrong": 1.0, "answered": 1.0}):
        assert PRIOR.probabilities(evidence, FULL)["weights"] < 0.001


def test_a_target_the_deployment_lacks_gets_nothing() -> None:
    found = PRIOR.probabilities({"model_step": 1.0}, Deployment(targets=("context", "weights")))
    assert {name for name, value in found.items() if value > 0} == {"context", "none"}


def test_an_attempt_that_did_not_hold_divides_the_odds_by_seven() -> None:
    fresh = PRIOR.probabilities({"normative": 1.0}, FULL)
    tried = PRIOR.probabilities({"normative": 1.0}, Deployment(models={"router": None}, attempts={"context": 1}))
    odds = (fresh["context"] / fresh["none"]) / (tried["context"] / tried["none"])
    assert odds == pytest.approx(7.0)


def test_the_decision_says_why_and_the_shortest_way_to_yes() -> None:
    found = decide({"schema_violation": 1.0, "normalisable": 0.75}, deployment=FULL, policy=Policy(), failures=4)
    assert found.certified is False
    assert found.reason == (
        "tooling at 0.95: calls break the tool's declared schema (schema_violation 1.00); a listed normaliser mends the"
        " argument (normalisable 0.75). A person decides: nothing is calibrated yet."
    )
    assert found.to_yes == (
        "approve or reroute it (about 1 minute); 22 more decided tooling clusters (about 15 minutes) allow a first certificate"
    )


def test_weights_need_forty_five_decided_clusters() -> None:
    counted = Deployment(models={"router": None}, calibration={"weights": 44})
    found = decide({"model_step": 1.0}, deployment=counted, policy=Policy(), failures=4)
    assert "1 more decided weights clusters" in found.to_yes


def test_thumbs_alone_need_an_answer() -> None:
    found = decide({"answered": 0.0}, deployment=FULL, policy=Policy(), failures=9)
    assert found.target is None
    assert found.to_yes == "write what would have been right for 5 of these 9 failures (about 3 minutes), or reroute"
    assert "nobody said what would have been right" in found.reason


def test_where_nothing_speaks_for_none_a_person_is_shown_the_likeliest_place() -> None:
    said = {"rule_gap": 1.0, "answered": 1.0}
    found = decide(said, deployment=FULL, policy=Policy(), failures=3)
    assert (found.target, found.runner_up, found.certified) == ("context", "none", False)
    assert decide({"rule_gap": 1.0}, deployment=FULL, policy=Policy(), failures=3).target is None
    assert decide({**said, "label_noise": 0.2}, deployment=FULL, policy=Policy(), failures=3).target is None
    tried = Deployment(models={"router": None}, attempts={"context": 1})
    assert decide(said, deployment=tried, policy=Policy(), failures=3).target is None


def test_contradictions_and_single_failures_ask_a_person_and_say_so() -> None:
    found = decide({"contradiction": 1.0, "answered": 1.0}, deployment=FULL, policy=Policy(), failures=1)
    assert "the corrections contradict each other; it is a single failure" in found.reason
    assert found.to_yes == "say which of the contradictory corrections is right (1 failure, about 1 minute)"


@given(
    st.dictionaries(st.sampled_from(sorted(FEATURES)), st.none() | st.floats()),
    st.lists(st.sampled_from(TARGETS), unique=True),
    st.dictionaries(st.sampled_from(TARGETS), st.integers(-1, 2000)),
    st.integers(0, 10_000),
)
def test_every_evidence_gives_a_decision(
    evidence: dict[str, float | None], targets: list[str], attempts: dict[str, int], failures: int
) -> None:
    deployment = Deployment.model_validate({"targets": targets, "attempts": attempts, "models": {"m": "oos"}})
    found = decide(evidence, deployment=deployment, policy=Policy(), failures=failures)
    assert set(found.probabilities) == {*TARGETS, "none"}
    assert sum(found.probabilities.values()) == pytest.approx(1.0)
    assert all(found.probabilities[target] == 0 for target in TARGETS if target not in targets)
    assert found == decide(evidence, deployment=deployment, policy=Policy(), failures=failures)
    assert found.reason
    assert found.to_yes


def test_the_router_is_named_by_its_version() -> None:
    assert decide({}, deployment=FULL, policy=Policy(), failures=1).router == RulePrior().version == "rules-4"
