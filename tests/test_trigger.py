from typing import Any

import pytest

from models.minimum_evidence import EvidenceCase, check
from models.trigger import TriggerInputs, TriggerVerdict, evaluate, power, settled_without_probe
from store.records import Prices, policy_for

PLENTY: dict[str, Any] = {
    "exposures": 400,
    "windows": 4,
    "judged": 400,
    "repaired": 80,
    "broken": 4,
    "arms": 5,
    "fit_s": 1.0,
    "gate_s": 10.0,
    "data_digest": "d",
}
DAY_US = 86_400_000_000


def _verdict(**changes: Any) -> TriggerVerdict:
    return evaluate(TriggerInputs(**{**PLENTY, **changes}), policy=policy_for("small"), prices=Prices())


def test_it_trains_when_the_avoidable_loss_reaches_the_cost() -> None:
    verdict = _verdict()
    assert (verdict.train, verdict.to_yes, verdict.reason.startswith("avoidable loss")) == (True, "", True)


def test_it_waits_and_says_how_many_exposures_are_missing() -> None:
    verdict = _verdict(exposures=40, windows=20, held_labels=20)
    assert (verdict.train, "more exposures at the present rates" in verdict.to_yes) == (False, True)


def test_avoidable_and_cost_are_their_formulas() -> None:
    numbers = {name: value or 0.0 for name, value in _verdict().numbers.items()}
    avoidable = 400 * numbers["repair_rate_lower"] * numbers["p_pass"]
    harm = numbers["p_pass"] * 100 * numbers["break_rate"] * 2
    assert [numbers["avoidable_usd"], numbers["cost_usd"]] == pytest.approx([avoidable, 15 / 3600 * 0.05 + 1 + harm])


def test_review_is_a_minute_for_the_verdict_and_forty_seconds_a_held_label() -> None:
    assert _verdict(held_labels=3).numbers["review_usd"] == pytest.approx(3.0)


@pytest.mark.parametrize(("passes", "since"), [(0, "the first release"), (1, "the last training")])
def test_what_is_served_is_seen_for_three_windows_first(passes: int, since: str) -> None:
    inputs = TriggerInputs(**{**PLENTY, "windows": 1, "passes": passes})
    verdict = settled_without_probe(inputs, policy=policy_for("small"), prices=Prices())
    assert verdict is not None
    assert (verdict.reason, verdict.to_yes) == (
        f"{since} has been seen for 1 window, and 3 show what it does",
        "wait 2 more windows",
    )


def test_a_candidate_that_will_probably_be_refused_is_not_trained() -> None:
    verdict = _verdict(repaired=80, broken=62)
    assert (verdict.train, verdict.reason.endswith("50% is asked for")) == (False, True)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"exposures": 2}, "0.61 USD would be avoided, less than the 1.00 USD a retrain costs at the least"),
        ({"repaired": 3}, "a candidate would pass the gate with 0%, and 50% is asked for"),
        ({"rejected_digests": ("d",)}, "these very rows were refused with every arm"),
    ],
)
def test_no_probe_is_made_where_its_best_outcome_would_be_a_no(changes: dict[str, Any], reason: str) -> None:
    best = TriggerInputs(**{**PLENTY, "repaired": 130, "broken": 0, **changes})
    verdict = settled_without_probe(best, policy=policy_for("small"), prices=Prices())
    assert verdict is not None
    assert verdict.reason.endswith(reason)


def test_a_probe_decides_where_its_best_outcome_would_be_a_yes() -> None:
    best = TriggerInputs(**{**PLENTY, "broken": 0})
    assert settled_without_probe(best, policy=policy_for("small"), prices=Prices()) is None


def test_a_probe_that_repairs_nothing_trains_nothing() -> None:
    assert [_verdict(repaired=0).train, _verdict(judged=0, repaired=0, broken=0).train] == [False, False]


def test_refusals_lower_and_passes_raise_the_chance_to_pass() -> None:
    chances = [_verdict(**history).numbers["p_pass"] or 0.0 for history in ({"refusals": 2}, {}, {"passes": 2})]
    assert chances[0] < chances[1] < chances[2]


def test_rows_that_were_refused_admit_a_different_arm() -> None:
    assert _verdict(rejected_digests=("d",), arms_left=("char_svc",)).train


def test_it_waits_when_one_more_window_is_worth_it() -> None:
    verdict = evaluate(
        TriggerInputs(**{**PLENTY, "exposures": 40, "judged": 40, "repaired": 6, "broken": 0}),
        policy=policy_for("small"),
        prices=Prices(review_usd_per_hour=0),
    )
    assert (verdict.train, verdict.to_yes) == (False, "wait one more window")


def test_a_slice_that_loses_lowers_the_chance_to_pass() -> None:
    fair, unfair = (_verdict(slices=slices).numbers["p_pass"] or 0.0 for slices in (((10, 1, 90),), ((2, 12, 90),)))
    assert unfair < fair / 2


def test_power_is_certain_of_nothing_without_discordant_rows() -> None:
    assert power(0, 0, share=1.0, alpha=0.05) == 0.0


def test_every_verdict_has_the_same_numbers() -> None:
    names = [set(_verdict(**changes).numbers) for changes in ({}, {"repaired": 0})]
    assert names[0] == names[1]


def test_an_authority_alone_is_enough_for_a_small_profile() -> None:
    cases = [EvidenceCase(source="staff", authority=True)] * 5
    assert check(cases, policy=policy_for("small")).to_yes == ""


def test_a_single_end_user_is_not_enough() -> None:
    verdict = check([EvidenceCase(source="ann", at_us=DAY_US)] * 9, policy=policy_for("small"))
    assert (verdict.ok, verdict.to_yes) == (
        False,
        "1 more sources, or one authority's word; failures of others: one source has 100% of the weight, 50% allowed",
    )


def test_rows_without_a_principal_are_one_source() -> None:
    numbers = check([EvidenceCase(source="unknown")] * 40, policy=policy_for("standard")).numbers
    assert (numbers["sources"], numbers["n_eff"], numbers["days"]) == (1.0, 5.0, None)


def test_the_standard_asks_for_times_and_for_a_probe() -> None:
    cases = [EvidenceCase(source=f"u{n % 10}") for n in range(50)]
    verdict = check(cases, policy=policy_for("standard"))
    assert verdict.to_yes == (
        "event times: without them the 2 days cannot be counted; a probe on a source-disjoint half: it was not measured"
    )


def test_the_standard_passes_with_all_of_its_evidence() -> None:
    cases = [EvidenceCase(source=f"u{n % 10}", at_us=DAY_US * (n % 3)) for n in range(50)]
    verdict = check(cases, policy=policy_for("standard"), repair_rate=0.7, break_rate=0.02)
    assert (verdict.ok, verdict.sentence) == (
        True,
        "enough for profile standard: 50 failures count as 50, from 10 sources (0 an authority), over 3 days",
    )


def test_a_probe_that_breaks_too_much_is_refused() -> None:
    cases = [EvidenceCase(source=f"u{n % 10}", at_us=DAY_US * (n % 3)) for n in range(50)]
    verdict = check(cases, policy=policy_for("standard"), repair_rate=0.7, break_rate=0.2)
    assert verdict.to_yes == "fewer breaks: the probe breaks 20% in scope, 5% allowed"


def test_too_few_rows_to_judge_with_ask_for_one_more_window() -> None:
    assert _verdict(exposures=40, windows=1, judged=40, repaired=4, broken=0).to_yes.startswith("wait one more window")
