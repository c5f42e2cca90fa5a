"""Versions of the learned router: stored as they were fitted, gated, shadowed, never back on the same evidence."""

import json
import math
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.deployment import Deployment
from models.learned_router import TrainingRow, fit_router
from models.router import OUTCOMES, PRIOR
from models.router_gate import LEARNS_FROM, ScoredRow, candidate, judge_router, shadowed, too_few
from models.router_state import look_against, state_of
from models.router_version import fair_probabilities, router_of, version_of, within
from store.records import TARGETS, RouterEvent, RouterGate, RouterVersion
from tests.router_rows import FULL, NAMES, odd_rows, row


def sure(name: str) -> dict[str, float]:
    """Probabilities that put nearly all on one place."""
    return {each: 0.96 if each == name else 0.01 for each in OUTCOMES}


def scored(right: str, champion: str, challenger: str, *, fresh: bool = False) -> ScoredRow:
    return ScoredRow(valid=frozenset({right}), champion=sure(champion), challenger=sure(challenger), fresh=fresh)


def rival(rows: list[TrainingRow], *, look: int = 1) -> Any:
    said = [PRIOR.probabilities(each.evidence, FULL) for each in rows]
    return candidate(rows, said, champion=PRIOR.version, deployment=FULL, look=look)


def kept(rows: list[TrainingRow]) -> RouterVersion:
    """The version that these rows make, as it comes back from the store."""
    found = rival(rows)
    names = [each.group for each in rows]
    made = version_of(
        found.fit, found.gate, corrections=[f"cor_{name}" for name in names], clusters=names, reviews=names
    )
    return RouterVersion(**json.loads(json.dumps(made.model_dump(mode="json"))))


ROWS = odd_rows()
FITTED = fit_router(ROWS).router
KEPT = kept(ROWS)


@settings(deadline=None, max_examples=60)
@given(
    st.dictionaries(st.sampled_from((*NAMES, "new")), st.none() | st.floats()),
    st.lists(st.sampled_from(TARGETS), unique=True),
)
def test_a_version_says_exactly_what_was_fitted(evidence: dict[str, float | None], targets: list[Any]) -> None:
    deployment = Deployment(targets=tuple(targets), models={"bot": None})
    again = router_of(KEPT)
    assert again.probabilities(evidence, deployment) == FITTED.probabilities(evidence, deployment)
    assert [again.contributions(evidence, name) for name in OUTCOMES] == [
        FITTED.contributions(evidence, name) for name in OUTCOMES
    ]


def test_a_version_is_named_by_its_rows_and_by_what_it_replaces() -> None:
    assert KEPT.id == kept(odd_rows()).id != kept(odd_rows(118)).id
    other = KEPT.gate.model_copy(update={"champion": "rtr_before"})
    names = [each.group for each in ROWS]
    made = version_of(fit_router(ROWS), other, corrections=names, clusters=names, reviews=names)
    assert (made.id != KEPT.id, made.parent, KEPT.parent) == (True, "rtr_before", "rules-4")


def test_what_a_version_learnt_from_is_judged_out_of_fold_and_else_not_at_all() -> None:
    def said(correction: str, cluster: str) -> dict[str, float] | None:
        return fair_probabilities(
            router_of(KEPT), KEPT, {"odd": 1.0}, correction=correction, cluster=cluster, deployment=FULL
        )

    assert said("cor_g7", "g7") == within(KEPT.out_of_fold["cor_g7"], FULL)
    assert said("cor_again", "g7") is None
    assert said("cor_new", "new") == router_of(KEPT).probabilities({"odd": 1.0}, FULL)


def test_out_of_fold_a_place_the_deployment_lacks_gets_nothing() -> None:
    found = within({"context": 0.5, "tooling": 0.3, "none": 0.2}, Deployment(targets=("tooling",)))
    assert {name: round(value, 9) for name, value in found.items() if value} == {"tooling": 0.6, "none": 0.4}


def test_below_a_hundred_decided_clusters_or_with_one_outcome_nothing_is_learnt() -> None:
    assert too_few(odd_rows(99)) == "99 decided clusters, a learned router needs 100"
    alike = [row(at, "tooling") for at in range(100)]
    assert too_few(alike) == "100 decided clusters: a router needs two outcomes and two groups of them"
    assert too_few(odd_rows(LEARNS_FROM)) == ""


def test_what_no_rule_knows_passes_the_gate_and_what_every_rule_knows_does_not() -> None:
    learned = rival(odd_rows()).gate
    assert (learned.passed, learned.right, learned.to_yes) == (True, 120, "")
    assert learned.reason.startswith("right out of fold on 120 of 120 decided clusters, rules-4 on")
    known = [row(at, "tooling" if at % 2 else "context", schema_violation=float(at % 2), normative=1.0 - at % 2)
             for at in range(120)]  # fmt: skip
    refused = rival(known).gate
    assert not refused.passed
    assert "it must be better by over 2%, reach p of at most 0.0500 at look 1" in refused.reason
    assert refused.to_yes.startswith("8 more decided clusters that only the learned router gets right")


def test_a_gain_that_would_do_at_the_first_look_does_not_at_the_third() -> None:
    rows = [scored("tooling", "memory", "tooling")] * 7 + [scored("tooling", "tooling", "tooling")] * 113
    rows += [scored("tooling", "tooling", "memory")]
    assert judge_router(rows, champion="rules-4", look=1).passed
    assert not judge_router(rows, champion="rules-4", look=3).passed


def test_more_needless_retrains_refuse_whatever_else_is_won() -> None:
    rows = [scored("tooling", "memory", "tooling")] * 20 + [scored("context", "memory", "weights")]
    found = judge_router(rows + [scored("context", "context", "context")] * 99, champion="rules-4", look=1)
    assert (found.passed, found.needless, found.champion_needless) == (False, 1, 0)
    assert found.reason.endswith(": it must retrain needlessly no more often")


def test_more_expected_cost_refuses_whatever_else_is_won() -> None:
    hedged = {**dict.fromkeys(OUTCOMES, 0.001), "memory": 0.45, "none": 0.55}
    rows = [
        ScoredRow(valid=frozenset({"none"}), champion={**hedged, "memory": 0.55, "none": 0.45}, challenger=hedged)
    ] * 9
    rows += [ScoredRow(valid=frozenset({"tooling"}), champion={**sure("memory"), "tooling": 0.45, "memory": 0.53},
                       challenger=sure("memory"))] * 91  # fmt: skip
    found = judge_router(rows, champion="rules-4", look=1)
    assert (found.passed, found.cost_min > found.champion_cost_min) == (False, True)
    assert found.reason.endswith(": it must cost less")


def test_a_loss_on_what_is_new_refuses_whatever_was_won_before() -> None:
    rows = [scored("tooling", "memory", "tooling")] * 30 + [scored("tooling", "tooling", "tooling")] * 68
    found = judge_router([*rows, *[scored("tooling", "tooling", "memory", fresh=True)] * 2], champion="rules-4", look=1)
    assert found.reason.endswith(": it must not lose on the clusters that are new")


def test_the_gate_refuses_noise() -> None:
    """Places that nothing predicts, against a router that guesses as well; fitted and judged as in production."""
    passed = 0
    for seed in range(20):
        chance = random.Random(seed)
        places = ("tooling", "context")
        rows = [row(at, chance.choice(places), odd=chance.random(), normative=chance.random()) for at in range(100)]
        said = [sure(chance.choice(places)) for _ in rows]
        passed += candidate(rows, said, champion="rules-4", deployment=FULL).gate.passed
    assert passed <= 1


def test_a_version_whose_verdicts_turn_bad_comes_back_and_one_that_is_as_good_does_not() -> None:
    bad = [scored("tooling", "tooling", "memory")] * 7
    assert [shadowed(bad[:count]).harms for count in (6, 7)] == [False, True]
    even = [*bad, *[scored("tooling", "memory", "tooling")] * 7]
    assert (shadowed(even).harms, shadowed(even).judged) == (False, 14)


def event(name: str, subject: str = "router", **detail: Any) -> RouterEvent:
    return RouterEvent(at_us=1, actor="filmroom", event=name, subject=subject, reason="", detail=detail)


def learned(version: RouterVersion, decided: int) -> RouterEvent:
    return event("learned", version.id, router=version.id, decided=decided, version=version.model_dump(mode="json"))


def refused(gate: RouterGate, decided: int) -> RouterEvent:
    return event("refused", "rtr_no", decided=decided, gate=gate.model_dump(mode="json"))


def test_a_store_written_before_has_the_rules_until_the_first_version() -> None:
    state = state_of([event("router in force", router="learned-0123456789ab")])
    assert (state.version, state.judged, state.changed) == (None, 0, None)


def test_history_says_what_decides_and_how_often_was_looked() -> None:
    events = [refused(KEPT.gate, 100), learned(KEPT, 110)]
    assert (state_of(events).version, state_of(events).judged, state_of(events).refused) == (KEPT.id, 110, None)
    assert state_of(events[:1]).refused is not None
    events.append(event("rolled back", KEPT.id, router="rules-4", decided=117))
    state = state_of(events)
    assert (state.version, state.judged, state.learnt) == (None, 117, frozenset(KEPT.clusters))
    assert (look_against(events, "rules-4"), look_against(events, KEPT.id)) == (3, 1)


def test_a_pin_lies_over_the_version_and_can_be_lifted() -> None:
    events = [learned(KEPT, 100), event("pinned", router="rules-4")]
    assert (state_of(events).version, state_of(events).pin) == (KEPT.id, events[-1])
    assert state_of([*events, event("unpinned", router=KEPT.id)]).pin is None


def test_costs_and_probabilities_of_the_gate_are_finite() -> None:
    gate = rival(odd_rows()).gate
    assert all(math.isfinite(value) for value in (gate.cost_min, gate.champion_cost_min, gate.p, gate.alpha))
    with pytest.raises(ValueError, match="two outcomes and two groups"):
        rival([row(at, "tooling") for at in range(3)])
