import pytest

from models.hold import exposures_needed, judge_hold


@pytest.mark.parametrize(("baseline", "needed"), [(0.2, 34), (0.5, 13), (1.0, 6)])
def test_a_baseline_says_how_many_clean_exposures_are_needed(baseline: float, needed: int) -> None:
    states = [judge_hold([False] * n, baseline=baseline).state for n in (needed - 1, needed)]
    assert (exposures_needed(0, baseline), states) == (needed, ["holding", "held"])


def test_a_recurrence_raises_the_exposures_needed() -> None:
    verdict = judge_hold([True] + [False] * 33, baseline=0.2)
    assert (verdict.state, verdict.needed, verdict.sentence) == ("holding", 148, "holding, 34 of 148 exposures")


def test_three_recurrences_in_the_first_ten_fail() -> None:
    assert judge_hold([True, False] * 3, baseline=0.2).state == "failed"
    assert judge_hold([True] * 3, baseline=0.9).state == "failed"
    assert judge_hold([True, False] * 3, baseline=None).state == "failed"


def test_early_recurrences_that_a_fix_that_holds_would_show_too_do_not_fail_it() -> None:
    assert judge_hold([True, False] * 3, baseline=0.9).state == "holding"


def test_three_recurrences_later_do_not_fail_by_count_alone() -> None:
    assert judge_hold([False] * 10 + [True] * 3, baseline=0.9).state == "holding"


def test_recurrence_above_half_of_the_baseline_fails_at_twenty() -> None:
    outcomes = [True, False, False, False, False] * 8
    verdicts = [judge_hold(outcomes[:n], baseline=0.1) for n in range(len(outcomes) + 1)]
    failed = next(verdict for verdict in verdicts if verdict.state == "failed")
    assert failed.e_value is not None
    assert (failed.e_value >= 20, failed.sentence.startswith("failed: it recurs")) == (True, True)


def test_without_a_baseline_nothing_is_ever_held() -> None:
    verdict = judge_hold([False] * 1000, baseline=None)
    assert (verdict.state, verdict.needed, verdict.e_value) == ("holding", None, None)


def test_no_exposures_are_no_evidence() -> None:
    verdict = judge_hold([], baseline=0.2)
    assert verdict.e_value is not None
    assert (verdict.state, verdict.upper, round(verdict.e_value, 9)) == ("holding", 1.0, 1.0)
