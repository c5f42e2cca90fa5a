from typing import Any

import pytest
from sklearn.dummy import DummyClassifier

from models import text_model
from models.arms import ARMS, ArmTrial, Task, _clearly_better, candidates, fit_arm, probe, probe_learnt, try_arms
from models.fitting import refitting
from models.judging import judge_rows
from models.out_of_fold import OutOfFold
from models.splits import is_judging
from store.records import DatasetRow

VERBS = {"order": ("track", "find", "locate"), "refund": ("return", "repay", "reimburse")}
BASE = [
    DatasetRow(input=f"{verb} my {thing}", label=label, source="base")
    for label, verbs in VERBS.items()
    for verb in verbs
    for thing in ("book", "shoe", "lamp", "desk")
]
NEW = [
    DatasetRow(input=f"{verb} a plan {n}", label="subscribe", authority=True, source="staff")
    for verb in ("begin", "start", "renew")
    for n in range(20)
]
SERVED: list[str | None] = ["order"] * len(NEW)
TASK = Task()


def over(new: list[DatasetRow]) -> OutOfFold:
    return OutOfFold(BASE, new, TASK)


def test_the_arms_differ_from_the_incumbent_in_learner_and_in_representation() -> None:
    own, *others = candidates("word_char_svc", Task())
    differing = [arm for arm in others if arm.learner != own.learner and arm.representation != own.representation]
    assert (own.name, len(differing) >= 2) == ("word_char_svc", True)


def test_a_patched_model_is_refitted_by_the_default_arm() -> None:
    assert {name: refitting(name) for name in ARMS} == {name: name for name in ARMS} | {"exceptions": "word_char_svc"}


def test_a_barred_arm_is_left_out() -> None:
    assert "char_svc" not in [arm.name for arm in candidates("word_char_svc", Task(), ["char_svc"])]


@pytest.mark.parametrize("name", sorted(set(Task().arms) - {"exceptions"}))
def test_every_plain_arm_learns_the_corrections(name: str) -> None:
    model = fit_arm(ARMS[name], BASE, NEW, task=TASK)
    assert [p.label for p in model.predict(["start a plan 3", "track my shoe"])] == ["subscribe", "order"]


def test_an_arm_that_raises_is_recorded_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(seed: int) -> Any:
        raise RuntimeError("no such learner")

    monkeypatch.setitem(text_model.LEARNERS, "logistic", broken)
    trials = {trial.arm: trial for trial in try_arms(over(NEW), SERVED, incumbent="word_char_svc")}
    assert (trials["word_logistic"].error, trials["word_logistic"].score) == ("RuntimeError: no such learner", None)
    assert [trials[name].error for name in ("word_char_svc", "char_svc", "word_complement_nb")] == [None] * 3


def test_one_class_fails_every_arm_and_raises_nothing() -> None:
    rows = [DatasetRow(input=f"start {n}", label="one") for n in range(30)]
    trials = try_arms(OutOfFold([], rows, TASK), [None] * 30, incumbent="word_char_svc")
    assert {trial.score for trial in trials} == {None}


def test_the_incumbent_and_two_more_are_tried_without_any_budget() -> None:
    trials = try_arms(over(NEW), SERVED, incumbent="word_char_svc", budget_s=-1.0)
    assert sum(trial.error is None for trial in trials) == 3


@pytest.mark.parametrize(("wins", "clear"), [(3, False), (4, False), (5, True)])
def test_another_arm_needs_an_exact_win_over_the_incumbent(wins: int, clear: bool) -> None:
    def trial(scores: tuple[int, ...]) -> ArmTrial:
        return ArmTrial(
            arm="x",
            score=0.0,
            accuracy=0.0,
            repaired=0,
            broken=0,
            rows=50,
            seconds=0,
            estimator_fits=0,
            row_scores=scores,
        )

    assert _clearly_better(trial((1,) * wins + (0,) * (50 - wins)), trial((0,) * 50)) is clear


def test_judging_rows_never_choose() -> None:
    trials = try_arms(over(NEW), SERVED, incumbent="word_char_svc")
    chosen = {trial.rows for trial in trials if trial.rows and not trial.stopped}
    rows = judge_rows(ARMS["word_char_svc"], over(NEW), SERVED, incumbent="char_svc")
    judging = sum(is_judging(row, TASK.seed) for row in NEW)
    assert (chosen, sum(row.in_cluster for row in rows)) == ({len(NEW) - judging}, judging)


def test_all_rows_judge_the_arm_that_was_named_before_them() -> None:
    rows = judge_rows(ARMS["word_char_svc"], over(NEW), SERVED, incumbent="word_char_svc")
    assert sum(row.in_cluster for row in rows) == len(NEW)


def test_production_rows_learnt_before_are_asked_of_refits_with_and_without_the_new_rows() -> None:
    learnt = [DatasetRow(input=f"begin a plan {n}", label="subscribe", source="ann") for n in range(100, 106)]
    out_of_fold = OutOfFold([*BASE, *learnt], [row for row in NEW if "begin" not in str(row.input)], TASK)
    rows = judge_rows(ARMS["word_char_svc"], out_of_fold, SERVED, incumbent="word_char_svc")
    asked = [row for row in rows if row.in_production]
    repaired = sum(row.is_right and not row.was_right for row in asked)
    assert (len(asked), probe_learnt(out_of_fold, incumbent="word_char_svc")) == (6, (repaired, 0))


def test_each_arm_is_fitted_once_a_fold() -> None:
    out_of_fold = over(NEW)
    probe(out_of_fold, SERVED, incumbent="word_char_svc")
    probed = out_of_fold.estimator_fits
    judge_rows(ARMS["word_char_svc"], out_of_fold, SERVED, incumbent="word_char_svc")
    assert (probed, out_of_fold.estimator_fits - probed) == (5 * 7, 2 * 3 * 7)


def test_an_arm_that_is_behind_after_the_first_fold_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(text_model.LEARNERS, "complement_nb", lambda seed: DummyClassifier())
    trials = {trial.arm: trial for trial in try_arms(over(NEW), SERVED, incumbent="word_char_svc")}
    assert (trials["word_complement_nb"].stopped, trials["word_complement_nb"].estimator_fits) == (True, 7)


def test_a_trials_curve_ends_at_its_accuracy_and_needs_no_fit_of_its_own() -> None:
    out_of_fold = over(NEW)
    trials = try_arms(out_of_fold, SERVED, incumbent="word_char_svc")
    for trial in trials:
        last = trial.curve[-1]
        assert (last.rows, last.right / last.rows) == (trial.rows, trial.accuracy)
        assert len(trial.curve) == (1 if trial.stopped else 3)
        assert all(0 < rung.trained < len(BASE) + len(NEW) for rung in trial.curve)
    assert out_of_fold.estimator_fits == sum(trial.estimator_fits for trial in trials)
    assert trials[0].as_json()["curve"] == [rung.model_dump() for rung in trials[0].curve]


def test_a_source_is_never_on_both_sides() -> None:
    rows = [DatasetRow(input=f"text {n}", label="a", source="ann") for n in range(50)]
    assert len({is_judging(row, 0) for row in rows}) == 1


def test_a_row_is_judged_by_a_model_that_did_not_train_on_it() -> None:
    lone = DatasetRow(input="zyx wvu", label="refund", source="staff", authority=True)
    lone = next(
        row for n in range(99) if is_judging(row := lone.model_copy(update={"input": f"zyx{n} wvu{n} qqq{n}"}), 0)
    )
    taught = lone.model_copy(update={"label": "unheard"})
    rows = judge_rows(ARMS["word_char_svc"], over([*NEW, taught]), [*SERVED, None], incumbent="word_char_svc")
    assert [row.challenger == "unheard" for row in rows if row.truth == "unheard"] == [False]


def test_the_champion_of_a_correction_row_is_what_was_served() -> None:
    rows = judge_rows(ARMS["word_char_svc"], over(NEW), SERVED, incumbent="char_svc")
    assert {row.champion for row in rows if row.in_cluster} == {"order"}


def test_every_call_of_fit_is_counted() -> None:
    model = fit_arm(ARMS["word_char_svc"], BASE, NEW, task=TASK)
    assert model.estimator_fits == 1 + text_model.FOLDS + 1


def test_the_probe_counts_repairs_and_breaks_on_held_out_rows() -> None:
    found = probe(over(NEW), SERVED, incumbent="word_char_svc")
    assert (found.rows, found.failures, found.repaired > 40, found.broken) == (60, 60, True, 0)


def test_the_exceptions_arm_changes_what_it_can_see() -> None:
    rows = [DatasetRow(input=f"track my {thing}", label="refund") for thing in ("book", "shoe", "lamp", "desk")]
    model = fit_arm(ARMS["exceptions"], BASE, rows, task=TASK)
    assert [p.label for p in model.predict(["track my lamp", "locate my desk"])] == ["refund", "order"]
