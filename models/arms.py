"""The ways to train the model, and which of them fits the rows in hand best.

Arms differ in representation x learner x treatment. `try_arms` scores them on rows set aside for choosing; the rows
that judge an arm so chosen (`models.judging`) are others, so that choosing does not flatter what is chosen.
"""

import time
from collections.abc import Callable, Sequence

import numpy as np
from pydantic import JsonValue

from models.exceptions import BREAK_COST
from models.fitting import ARMS, DEFAULT_ARM, Arm, Model, Task, fit_arm, truth_of
from models.fold_fit import FoldFailed
from models.judging import judge_rows
from models.out_of_fold import FOLDS_OF_MANY, OutOfFold, Place
from models.probe import Probe, changes, probe, probe_learnt
from models.sequential import mcnemar_one_sided
from models.splits import JUDGING_SHARE, is_judging, sample_of
from models.text_model import MANY_ROWS
from store.records.production import Record

__all__ = [
    "ARMS",
    "DEFAULT_ARM",
    "JUDGING_SHARE",
    "Arm",
    "ArmTrial",
    "Model",
    "Probe",
    "Rung",
    "Task",
    "candidates",
    "fit_arm",
    "judge_rows",
    "probe",
    "probe_learnt",
    "truth_of",
    "try_arms",
]

SWITCH_ALPHA = 0.05
"""Of the exact one-sided McNemar test by which another arm must beat the incumbent's: 5-0, 7-1, 9-2, as in the gate."""
CHOOSING_FOLDS = 3
"""Over the choosing rows."""
ALWAYS = 3
"""Arms that are tried even when the budget is spent, the incumbent's first."""


class Rung(Record):
    """How far a trial had got after one more fold: a point of its curve."""

    trained: int
    """Rows that the fold's model learnt from."""
    rows: int
    """Choosing rows asked so far, each of a model that had not learnt it."""
    right: int
    """Of them answered rightly."""


class ArmTrial(Record):
    """One arm tried on the choosing rows."""

    arm: str
    score: float | None
    """(repaired - 2 x broken) / rows on the choosing rows, out of fold; None: it failed or the budget ran out."""
    accuracy: float | None
    repaired: int
    broken: int
    rows: int
    seconds: float
    """Of fitting, wherever it ran; several arms may have been fitted at the same time."""
    estimator_fits: int
    row_scores: tuple[int, ...] = ()
    """Per choosing row: 1 repaired, -2 broken, 0 neither; empty where it was stopped."""
    curve: tuple[Rung, ...] = ()
    """After each fold; one that was stopped has the first alone."""
    stopped: bool = False
    """Whether it was behind the incumbent's arm after the first fold, and tried no further."""
    error: str | None = None

    def as_json(self) -> dict[str, JsonValue]:
        """For the ledger: without the scores of single rows."""
        return self.model_dump(mode="json", exclude={"row_scores"})


def candidates(incumbent: str, task: Task, barred: Sequence[str] = ()) -> tuple[Arm, ...]:
    """The incumbent's arm first, then the task's others in order of the registry; barred ones left out."""
    names = [incumbent, *(name for name in task.arms if name != incumbent)]
    return tuple(ARMS[name] for name in names if name not in barred)


def try_arms(
    out_of_fold: OutOfFold,
    served: Sequence[str | None],
    *,
    incumbent: str,
    barred: Sequence[str] = (),
    budget_s: float = 120.0,
) -> tuple[ArmTrial, ...]:
    """Every arm in reach of the budget, the one to use first, scored on the choosing rows only.

    Of many base rows a sample is learnt.

    The incumbent's arm stays unless another one's lead passes an exact test at 5 %: 3-0 decides nothing.

    Each choosing row is predicted by a model trained on the base rows, on the choosing rows of the other folds and on
    no judging row. An arm that is behind the incumbent's after the first fold is stopped there. One that raises is
    recorded with its error and the others go on; the incumbent's arm and two more are tried even when the budget is spent.

    Raises EngineAway where the mapper of `out_of_fold` cannot run a fit.
    """
    new, task = out_of_fold.new, out_of_fold.task
    chosen = [i for i in range(len(new)) if not is_judging(new[i], task.seed)]
    many = len(out_of_fold.base) >= MANY_ROWS
    choosing = OutOfFold(
        sample_of(out_of_fold.base, MANY_ROWS),
        [new[i] for i in chosen],
        task,
        folds=FOLDS_OF_MANY if many else CHOOSING_FOLDS,
        mapper=out_of_fold.mapper,
    )
    answers = [served[i] for i in chosen]
    until = time.monotonic() + budget_s
    trials: list[ArmTrial] = []
    arms = candidates(incumbent, task, barred)
    ready = _prepared(choosing, arms, answers, lambda: time.monotonic() > until)
    for number, arm in enumerate(arms):
        if number >= ALWAYS and arm not in ready and time.monotonic() > until:
            trials.append(_failed(arm, f"the budget of {budget_s:.0f} s was spent"))
            continue
        own = next((trial for trial in trials if trial.arm == incumbent and trial.score is not None), None)
        trials.append(_tried(arm, choosing, answers, own))
    out_of_fold.estimator_fits += choosing.estimator_fits
    return _ranked(trials, incumbent)


def _prepared(
    choosing: OutOfFold, arms: Sequence[Arm], served: list[str | None], spent: Callable[[], bool]
) -> tuple[Arm, ...]:
    """Fits ahead, by the mapper, what the trials will ask for: the first fold of every arm in reach of the budget, then the other
    folds of those that are not behind the first of `arms`. Returns the arms that need no fit any more.
    """
    if choosing.mapper is None or not choosing.new:
        return ()
    reached = arms[:ALWAYS] if spent() else arms
    choosing.prepare(Place(arm, 0) for arm in reached)
    scores = {arm: _first_score(arm, choosing, served) for arm in reached}
    own = scores[arms[0]]
    going = [arm for arm, score in scores.items() if score is not None and (own is None or score >= own)]
    if spent():
        going = [arm for arm in going if arm in arms[:ALWAYS]]
    choosing.prepare(place for arm in going for place in choosing.places(arm))
    ended = [arm for arm, score in scores.items() if score is None or (own is not None and score < own)]
    return (*going, *ended)


def _first_score(arm: Arm, choosing: OutOfFold, served: list[str | None]) -> int | None:
    """Repairs less twice the breaks in the first fold; None: it failed."""
    try:
        return sum(_scored(choosing, served, choosing.positions(0), choosing.answers_in(arm, 0)))
    except FoldFailed:
        return None


def _tried(arm: Arm, choosing: OutOfFold, served: list[str | None], own: ArmTrial | None) -> ArmTrial:
    """The trial of one arm; `own` is the incumbent's, where that was scored."""
    if not choosing.new:
        return _failed(arm, "no rows to choose with")
    first = choosing.positions(0)
    try:
        scored = _scored(choosing, served, first, choosing.answers_in(arm, 0))
        stopped = own is not None and bool(first) and sum(scored) < sum(own.row_scores[i] for i in first)
        rows = first if stopped else range(len(served))
        answers = choosing.answers_in(arm, 0) if stopped else choosing.answers(arm)
    except FoldFailed as error:
        return _failed(arm, str(error)).model_copy(update={"seconds": choosing.cost_of(arm)[1]})
    fits, seconds = choosing.cost_of(arm)
    truths, before = [truth_of(choosing.new[i], choosing.task) for i in rows], [served[i] for i in rows]
    repaired, broken = changes(truths, before, answers)
    scores = _scored(choosing, served, rows, answers)
    return ArmTrial(
        arm=arm.name,
        score=sum(scores) / len(scores),
        row_scores=() if stopped else scores,
        accuracy=sum(t == a for t, a in zip(truths, answers, strict=True)) / len(scores),
        repaired=repaired,
        broken=broken,
        rows=len(scores),
        seconds=seconds,
        estimator_fits=fits,
        curve=_curve(arm, choosing, folds=1 if stopped else choosing.folds),
        stopped=stopped,
    )


def _curve(arm: Arm, choosing: OutOfFold, *, folds: int) -> tuple[Rung, ...]:
    """The trial fold by fold, from answers that are there already: nothing is fitted for it."""
    found: list[Rung] = []
    rows = right = 0
    for fold in range(folds):
        asked = choosing.positions(fold)
        answers = choosing.answers_in(arm, fold)
        rows += len(asked)
        right += sum(truth_of(choosing.new[i], choosing.task) == a for i, a in zip(asked, answers, strict=True))
        trained = len(choosing.base) + len(choosing.new) - len(asked)
        found += [Rung(trained=trained, rows=rows, right=right)] if asked else []
    return tuple(found)


def _scored(
    choosing: OutOfFold, served: list[str | None], rows: Sequence[int], answers: Sequence[str | None]
) -> tuple[int, ...]:
    """Per row: 1 repaired, -2 broken, 0 neither."""
    judged = (
        (truth_of(choosing.new[i], choosing.task), served[i], after) for i, after in zip(rows, answers, strict=True)
    )
    return tuple((a == t) - (b == t) if b != t else BREAK_COST * ((a == t) - 1) for t, b, a in judged)


def _ranked(trials: list[ArmTrial], incumbent: str) -> tuple[ArmTrial, ...]:
    """By score; what was stopped comes after what was not, and the incumbent's arm first unless it is clearly beaten."""

    def order(trial: ArmTrial) -> tuple[bool, float]:
        return trial.stopped, np.inf if trial.score is None else -trial.score

    ranked = sorted(trials, key=order)
    own = next((trial for trial in ranked if trial.arm == incumbent and trial.score is not None), None)
    if own is None or _clearly_better(ranked[0], own):
        return tuple(ranked)
    return (own, *(trial for trial in ranked if trial is not own))


def _clearly_better(best: ArmTrial, own: ArmTrial) -> bool:
    pairs = list(zip(best.row_scores, own.row_scores, strict=True))
    return mcnemar_one_sided(sum(a > b for a, b in pairs), sum(a < b for a, b in pairs)) <= SWITCH_ALPHA


def _failed(arm: Arm, error: str) -> ArmTrial:
    return ArmTrial(
        arm=arm.name,
        score=None,
        accuracy=None,
        repaired=0,
        broken=0,
        rows=0,
        seconds=0.0,
        estimator_fits=0,
        error=error,
    )
