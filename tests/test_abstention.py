"""When a decision may go without a person."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from models.abstention import Certificate, NotCertified, Sent, certify, minimum_for, threshold, upper_bound
from models.deployment import Deployment
from models.profile import choose_profile
from models.router import decide
from store.records import Policy, Target


def test_twenty_two_clusters_without_an_error_certify_ten_percent() -> None:
    found = threshold([0.9] * 22, [True] * 22, risk=0.1, confidence=0.9, minimum=22)
    assert isinstance(found, Certificate)
    assert found.statement == (
        "with probability at least 90% over the calibration draw, at most 10% of auto-routed clusters are in a place"
        " where the fix would not hold, while clusters stay exchangeable (0 of 22 calibration clusters wrong, bound 9.9%)"
    )


def test_no_calibration_is_not_certified_and_says_how_many_are_missing() -> None:
    found = threshold([], [], risk=0.05, confidence=0.9, minimum=45)
    assert found == NotCertified(clusters=0, wrong=0, bound=1.0, needed=45, risk=0.05, confidence=0.9)
    assert found.statement == "not certified: 0 calibration clusters, 45 more are needed for the first test"


def test_an_error_among_the_surest_refuses() -> None:
    found = threshold([0.9] * 22, [True] * 21 + [False], risk=0.1, confidence=0.9, minimum=22)
    assert isinstance(found, NotCertified)
    assert (found.wrong, found.needed) == (1, 16)


def test_testing_stops_at_the_first_failure_even_if_a_looser_one_would_pass() -> None:
    scores = [0.9] * 22 + [0.8] * 5 + [0.7] * 500
    held = [True] * 22 + [False] * 5 + [True] * 500
    found = threshold(scores, held, risk=0.1, confidence=0.9, minimum=22)
    assert isinstance(found, Certificate)
    assert (found.threshold, found.clusters) == (0.9, 22)


def test_a_score_that_is_not_a_number_is_never_above_a_threshold() -> None:
    found = threshold([0.9] * 22 + [float("nan")], [True] * 22 + [False], risk=0.1, confidence=0.9, minimum=22)
    assert isinstance(found, Certificate)
    assert found.coverage == 22 / 23


def test_unequal_lengths_are_an_error() -> None:
    with pytest.raises(ValueError, match="2 scores and 1 outcomes"):
        threshold([0.1, 0.2], [True], risk=0.1, confidence=0.9, minimum=22)


@given(st.integers(0, 60), st.integers(1, 60), st.sampled_from([0.8, 0.9, 0.95]))
def test_the_upper_bound_is_the_share_at_which_so_few_errors_are_just_likely_enough(
    wrong: int, total: int, confidence: float
) -> None:
    bound = upper_bound(wrong, total, confidence=confidence)
    if wrong >= total:
        assert bound == 1.0
        return
    assert binom.cdf(wrong, total, bound) == pytest.approx(1 - confidence, abs=1e-6)


@given(st.lists(st.tuples(st.sampled_from([0.2, 0.4, 0.6, 0.8]), st.integers(0, 9).map(bool)), max_size=120))
def test_the_threshold_is_the_loosest_before_the_first_failed_test(pairs: list[tuple[float, bool]]) -> None:
    minimum = minimum_for(0.3, 0.8)
    found = threshold([s for s, _ in pairs], [h for _, h in pairs], risk=0.3, confidence=0.8, minimum=minimum)
    expected = None
    for score in sorted({s for s, _ in pairs}, reverse=True):
        above = [held for s, held in pairs if s >= score]
        if len(above) < minimum:
            continue
        if upper_bound(above.count(False), len(above), confidence=0.8) > 0.3:
            break
        expected = score
    assert (found.threshold if isinstance(found, Certificate) else None) == expected


def test_the_profile_follows_the_counts_and_says_why() -> None:
    assert choose_profile(formerly_right=299, sources=5)[0] == "standard"
    assert choose_profile(formerly_right=298, sources=5) == (
        "small",
        "profile small: 298 formerly right rows to judge and standard needs 299;"
        " a promotion's verdict prints the bound it reached",
    )
    assert choose_profile(formerly_right=1000, sources=4)[0] == "small"


RISKS: dict[Target, float] = {"context": 0.1, "memory": 0.1, "tooling": 0.1, "weights": 0.05}


def certified(sent: dict[Target, list[tuple[float, bool]]]) -> dict[Target, Certificate | NotCertified]:
    return certify({name: [Sent(*pair) for pair in pairs] for name, pairs in sent.items()}, risks=RISKS, confidence=0.9)


def test_a_kind_that_is_clearly_wrong_too_often_is_left_out_and_named() -> None:
    bad = [Sent(0.95, at % 2 == 0, "answer") for at in range(20)]
    sent: dict[Target, list[Sent]] = {
        "context": [*bad, *(Sent(0.9, right=True, kind="auth error") for _ in range(15))],
        "memory": [Sent(0.8, right=True, kind="answer")] * 15, "tooling": [], "weights": [],
    }  # fmt: skip
    found = certify(sent, risks=RISKS, confidence=0.9)
    context, memory = found["context"], found["memory"]
    assert isinstance(context, Certificate)
    assert isinstance(memory, Certificate)
    assert (context.without, memory.without, context.clusters) == (("answer",), (), 30)
    assert "without answer" in context.statement
    given = {"normative": 1.0, "rule_gap": 1.0, "agreed": 1.0, "answered": 1.0}
    decided = {kind: decide({**given, f"error_{kind}": 1.0}, deployment=Deployment(), policy=Policy(), failures=9,
                            certificates=found)
               for kind in ("none", "auth")}  # fmt: skip
    assert {kind: (each.target, each.certified) for kind, each in decided.items()} == {
        "none": ("context", False), "auth": ("context", True)}  # fmt: skip
    assert "context is certified, but not where the answer failed" in decided["none"].reason


def test_few_clusters_of_each_place_add_up_to_one_certificate() -> None:
    sent: dict[Target, list[tuple[float, bool]]] = {
        "context": [(0.9, True)] * 12, "memory": [(0.8, True)] * 12, "tooling": [], "weights": [],
    }  # fmt: skip
    found = certified(sent)["memory"]
    assert isinstance(found, Certificate)
    assert (found.clusters, found.together) == (24, ("context", "memory", "tooling"))
    assert "over context, memory, tooling together" in found.statement


def test_a_place_that_is_wrong_too_often_is_left_out_of_the_common_certificate() -> None:
    sent: dict[Target, list[tuple[float, bool]]] = {
        "context": [(0.9, True)] * 90, "memory": [(0.9, True)] * 6 + [(0.9, False)] * 3, "tooling": [(0.9, True)] * 9,
        "weights": [],
    }  # fmt: skip
    found = certified(sent)
    assert [isinstance(found[name], Certificate) for name in ("context", "memory", "tooling")] == [True, False, True]


def test_the_weights_are_certified_alone_and_more_strictly() -> None:
    sent: dict[Target, list[tuple[float, bool]]] = {
        "context": [(0.9, True)] * 44, "memory": [], "tooling": [], "weights": [(0.9, True)] * 44,
    }  # fmt: skip
    assert isinstance(certified(sent)["weights"], NotCertified)
    sent["weights"].append((0.9, True))
    assert isinstance(certified(sent)["weights"], Certificate)


def test_common_certificates_exceed_their_risk_no_more_often_than_promised() -> None:
    generator = np.random.default_rng(0)
    exceeded = 0
    for _ in range(400):
        sent: dict[Target, list[Sent]] = {}
        for target in RISKS:
            sent[target] = [Sent(1.0, bool(generator.random() >= 0.12), f"kind {at % 4}") for at in range(20)]
        sent["weights"] = []
        exceeded += any(isinstance(each, Certificate) for each in certify(sent, risks=RISKS, confidence=0.9).values())
    assert exceeded / 400 <= 0.1 + 3 * (0.09 / 400) ** 0.5
