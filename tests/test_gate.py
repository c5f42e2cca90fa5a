from typing import Literal

import pytest

from models.calibration import Calibrated, compare_calibration
from models.gate import judge, passed, to_yes
from models.gate_stages import calibration, poison
from models.judged_rows import JudgedRow
from models.poison import Influence
from store.records import GateStage, Policy, policy_for

CHECKS = {"digest": True, "canaries": True}
EVEN = Calibrated(rows=200, champion=0.05, challenger=0.06, worse=0.01, worse_lower=0.0)


def _rows(
    n: int,
    change: Literal["gained", "lost", "kept"],
    *,
    in_cluster: bool = True,
    truth: str | None = "a",
) -> list[JudgedRow]:
    before, after = change != "gained", change != "lost"
    wrong = "b"
    return [
        JudgedRow(
            row=f"{change} {truth} {i}",
            truth=truth,
            champion=truth if before else wrong,
            challenger=truth if after else wrong,
            in_cluster=in_cluster,
            source="unknown",
        )
        for i in range(n)
    ]


def _judge(rows: list[JudgedRow], policy: Policy | None = None, look: int = 1) -> dict[str, GateStage]:
    stages = judge(rows, policy=policy or policy_for("small"), checks=CHECKS, calibrated=EVEN, look=look)
    return {stage.stage: stage for stage in stages}


def test_a_clear_repair_that_breaks_nothing_passes_every_stage() -> None:
    stages = judge(_rows(20, "gained") + _rows(200, "kept"), policy=policy_for("small"), checks=CHECKS, calibrated=EVEN)
    assert ([stage.verdict for stage in stages], passed(stages), to_yes(stages)) == (["passed"] * 5, True, "")


def test_gate_refuses_a_candidate_that_was_not_measured() -> None:
    stages = judge([], policy=policy_for("small"), checks={}, calibrated=None)
    assert ([stage.verdict for stage in stages], passed(stages)) == (["not measured"] * 5, False)


def test_no_stages_are_no_pass() -> None:
    assert passed(()) is False


@pytest.mark.parametrize(("check", "verdict"), [(False, "failed"), (None, "not measured")])
def test_an_integrity_check_that_does_not_hold_refuses(check: bool | None, verdict: str) -> None:
    rows = _rows(20, "gained") + _rows(200, "kept")
    stages = judge(rows, policy=policy_for("small"), checks={"digest": True, "canaries": check}, calibrated=EVEN)
    assert (stages[0].verdict, passed(stages), to_yes(stages)) == (verdict, False, "train it again: canaries")


@pytest.mark.parametrize(
    ("c", "b", "verdict"), [(5, 0, "passed"), (4, 0, "failed"), (7, 1, "passed"), (6, 1, "failed")]
)
def test_target_demands_the_documented_counts(c: int, b: int, verdict: str) -> None:
    rows = _rows(c, "gained") + _rows(b, "lost") + _rows(50, "kept")
    assert _judge(rows)["target"].verdict == verdict


def test_a_second_look_at_the_same_rows_demands_more() -> None:
    rows = _rows(6, "gained") + _rows(200, "kept")
    assert [_judge(rows, look=look)["target"].verdict for look in (1, 2)] == ["passed", "failed"]


def test_target_counts_only_rows_in_scope() -> None:
    rows = _rows(20, "gained", in_cluster=False) + _rows(9, "kept")
    assert _judge(rows)["target"].numbers["newly_right"] == 0.0


def test_rows_learnt_before_say_whether_learning_more_helps() -> None:
    fresh = _rows(4, "gained") + _rows(2, "lost") + _rows(90, "kept")
    learnt = [row.model_copy(update={"in_cluster": False, "in_production": True}) for row in _rows(9, "gained")]
    assert [_judge(rows)["target"].verdict for rows in (fresh, fresh + learnt)] == ["failed", "passed"]


def test_new_rows_that_lose_are_not_outvoted_by_rows_learnt_before() -> None:
    fresh = _rows(1, "gained") + _rows(2, "lost") + _rows(90, "kept")
    learnt = [row.model_copy(update={"in_cluster": False, "in_production": True}) for row in _rows(30, "gained")]
    stage = _judge(fresh + learnt)["target"]
    assert (stage.verdict, stage.sentence.endswith("but the new rows alone lose, 1 to 2")) == ("failed", True)


def test_a_rejection_is_right_for_what_is_out_of_scope() -> None:
    row = JudgedRow(row="r", truth=None, champion="a", challenger=None, in_cluster=True, source="unknown")
    assert (row.was_right, row.is_right) == (False, True)


def test_neither_slice_pays_for_the_other() -> None:
    rows = _rows(40, "gained", truth=None) + _rows(4, "lost") + _rows(60, "kept")
    stages = _judge(rows)
    assert (stages["target"].verdict, stages["slices"].verdict) == ("passed", "failed")
    assert "in scope may lose too much" in stages["slices"].sentence


def test_a_small_slice_may_lose_a_twentieth_of_its_rows() -> None:
    rows = _rows(40, "gained", truth=None) + _rows(3, "lost") + _rows(57, "kept")
    assert _judge(rows)["slices"].verdict == "passed"


def test_slices_are_not_listed_without_out_of_scope_rows() -> None:
    assert list(_judge(_rows(20, "gained"))) == ["integrity", "target", "global", "flips", "calibration"]


def test_the_standard_allows_no_flip_in_299_and_one_in_473() -> None:
    gain, policy = _rows(30, "gained"), policy_for("standard")
    counts = [(299, 0), (298, 0), (472, 1), (471, 1)]
    found = [_judge(gain + _rows(n, "kept") + _rows(k, "lost"), policy)["flips"].verdict for n, k in counts]
    assert found == ["passed", "failed", "passed", "failed"]


def test_a_small_profile_prints_the_bound_it_reached() -> None:
    stage = _judge(_rows(20, "gained") + _rows(2, "lost") + _rows(98, "kept"))["flips"]
    assert (stage.verdict, "at most 6.2% at 95 % confidence" in stage.sentence) == ("passed", True)


def test_a_small_profile_does_not_give_up_what_was_right_for_any_gain() -> None:
    stage = _judge(_rows(73, "gained") + _rows(8, "lost") + _rows(7, "kept"))["flips"]
    assert (stage.verdict, stage.sentence.endswith("whatever is gained, 25% at the most may be lost")) == (
        "failed",
        True,
    )


def test_a_small_profile_is_strict_again_from_299_rows_on() -> None:
    rows = _rows(60, "gained") + _rows(5, "lost") + _rows(300, "kept")
    assert _judge(rows)["flips"].verdict == "failed"


def test_flips_are_counted_over_served_answers_where_there_are_enough() -> None:
    served = _rows(20, "gained") + _rows(40, "kept")
    base = _rows(400, "kept", in_cluster=False) + _rows(3, "lost", in_cluster=False)
    assert _judge(served + base)["flips"].numbers["formerly_right"] == 40.0


def test_a_refusal_says_how_many_more_rows_it_needs() -> None:
    rows = _rows(6, "gained") + _rows(2, "lost") + _rows(100, "kept")
    stage = _judge(rows)["target"]
    assert to_yes([stage]) == "3 more repaired rows with none broken, or label 77 more rows in scope at this rate"


def test_the_way_to_yes_is_a_way_to_yes() -> None:
    policy = policy_for("standard")
    short = _judge(_rows(30, "gained") + _rows(250, "kept"), policy)["flips"]
    assert to_yes([short]) == "confirm 49 more right answers, none of them newly wrong"
    assert _judge(_rows(30, "gained") + _rows(299, "kept"), policy)["flips"].verdict == "passed"


@pytest.mark.parametrize(("lower", "verdict"), [(0.02, "passed"), (0.03, "failed")])
def test_confidences_that_mean_less_than_before_refuse(lower: float, verdict: str) -> None:
    found = Calibrated(rows=300, champion=0.03, challenger=0.08, worse=0.05, worse_lower=lower)
    assert calibration(found).verdict == verdict


@pytest.mark.parametrize(("changed", "verdict"), [(1, "passed"), (2, "failed")])
def test_a_source_that_steers_the_canaries_is_refused_by_name(changed: int, verdict: str) -> None:
    stage = poison([Influence(source="mallory", rows=9, changed=changed, canaries=100)])
    assert (stage.verdict, "mallory changes most" in stage.sentence) == (verdict, True)


def test_calibration_is_compared_on_the_same_rows() -> None:
    right = [True] * 80 + [False] * 20
    found = compare_calibration(([0.8] * 100, right), ([0.99] * 100, right), seed=0)
    assert found is not None
    assert (round(found.champion, 2), round(found.challenger, 2), found.worse_lower > 0.02) == (0.0, 0.19, True)
