"""A router that learns from verdicts: the rules' rival, and no more than that."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.deployment import Deployment
from models.learned_router import TrainingRow, fit_router, tempered
from models.router import OUTCOMES, decide
from store.records import TARGETS, Policy
from tests.router_rows import FULL, NAMES, odd_rows, row


def test_it_learns_what_no_rule_knows() -> None:
    router = fit_router(odd_rows()).router
    decided = [decide({"odd": odd}, deployment=FULL, policy=Policy(), failures=4, router=router) for odd in (1.1, 0.1)]
    assert [each.target for each in decided] == ["tooling", "memory"]
    assert {each.router for each in decided} == {router.version}
    assert "odd" in decided[0].reason


def test_the_same_rows_give_the_same_version_and_others_another() -> None:
    assert fit_router(odd_rows()).router.version == fit_router(odd_rows()).router.version
    assert fit_router(odd_rows()).router.version != fit_router(odd_rows(118)).router.version


def test_a_missing_value_is_not_zero() -> None:
    rows = [row(at, "tooling" if at % 2 else "memory", odd=None if at % 2 else 0.0) for at in range(60)]
    router = fit_router(rows).router
    assert router.probabilities({"odd": None}, FULL)["tooling"] > 0.8
    assert router.probabilities({"odd": 0.0}, FULL)["memory"] > 0.8


def test_out_of_fold_a_group_never_teaches_itself() -> None:
    rows = [TrainingRow(evidence={"odd": float(at % 2)}, valid=frozenset({"tooling"}), group="one") for at in range(30)]
    rows += [
        TrainingRow(evidence={"odd": float(at % 2)}, valid=frozenset({"memory"}), group=f"m{at}") for at in range(30)
    ]
    assert max(found["tooling"] for found in fit_router(rows).out_of_fold[:30]) < 0.5


def test_a_target_the_deployment_lacks_gets_nothing_and_a_failed_attempt_costs() -> None:
    router = fit_router(odd_rows()).router
    assert router.probabilities({"odd": 1.0}, Deployment(targets=("memory",)))["tooling"] == 0.0
    tried = router.probabilities({"odd": 1.0}, Deployment(attempts={"tooling": 1}))
    assert tried["tooling"] < router.probabilities({"odd": 1.0}, Deployment())["tooling"]


def test_an_outcome_never_seen_stays_below_all_that_were() -> None:
    found = fit_router(odd_rows()).router.probabilities({"odd": 1.0}, FULL)
    assert max(found["weights"], found["context"]) < min(found["tooling"], found["memory"])


def test_one_outcome_or_one_group_teaches_nothing() -> None:
    with pytest.raises(ValueError, match="two outcomes and two groups"):
        fit_router([row(at, "tooling", odd=1.0) for at in range(9)])


def test_a_fix_that_held_outweighs_a_verdict() -> None:
    rows = [row(at, "memory", odd=1.0).model_copy(update={"weight": 2.0}) for at in range(40)]
    rows += [row(99 + at, "tooling", odd=1.0) for at in range(40)]
    found = fit_router(rows).router.probabilities({"odd": 1.0}, FULL)
    assert found["memory"] > found["tooling"]


def test_independent_cases_multiply_and_copies_do_not() -> None:
    base, said = {"a": 0.5, "b": 0.5}, {"a": 0.8, "b": 0.2}
    assert tempered(said, base, copies=2, rho=1.0)["a"] == pytest.approx(0.64 / 0.68)
    assert tempered(said, base, copies=10, rho=0.1)["a"] == pytest.approx(0.8)


ROUTER = fit_router(odd_rows()).router
values = st.none() | st.floats()


@settings(deadline=None, max_examples=60)
@given(
    st.dictionaries(st.sampled_from((*NAMES, "unheard_of")), values), st.lists(st.sampled_from(TARGETS), unique=True)
)
def test_every_evidence_gives_probabilities(evidence: dict[str, Any], targets: list[Any]) -> None:
    found = ROUTER.probabilities(evidence, Deployment(targets=tuple(targets)))
    assert set(found) == set(OUTCOMES)
    assert math.isclose(sum(found.values()), 1.0)
    assert all(found[target] == 0 for target in TARGETS if target not in targets)
