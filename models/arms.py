"""The ways to train the model, and which of them fits the rows in hand best.

Arms differ in representation x learner x treatment. `try_arms` scores them on rows set aside for choosing; the rows
that judge the winner (`models.judging`) are others, so that choosing does not flatter what is chosen.
"""

import time
from collections.abc import Sequence

import numpy as np
from pydantic import JsonValue

from models.dataset import text_of
from models.exceptions import BREAK_COST
from models.fitting import ARMS, DEFAULT_ARM, Arm, Model, Task, fit_arm, truth_of
from models.judging import judge_rows
from models.sequential import mcnemar_one_sided
from models.splits import JUDGING_SHARE, folds_of, is_judging
from store.records.production import Record
from store.records.weights import DatasetRow

__all__ = [
    "ARMS",
    "DEFAULT_ARM",
    "JUDGING_SHARE",
    "Arm",
    "ArmTrial",
    "Model",
    "Probe",
    "Task",
    "candidates",
    "fit_arm",
    "judge_rows",
    "probe",
    "truth_of",
    "try_arms",
]

SWITCH_ALPHA = 0.05
"""Of the exact one-sided McNemar test by which another arm must beat the incumbent's: 5-0, 7-1, 9-2, as in the gate."""


PROBE_FOLDS = 5
"""A probe on halves learns from half of the new rows and sees too few repairs."""


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
    estimator_fits: int
    row_scores: tuple[int, ...] = ()
    """Per choosing row: 1 repaired, -2 broken, 0 neither."""
    error: str | None = None

    def as_json(self) -> dict[str, JsonValue]:
        """For the ledger: without the scores of single rows."""
        return self.model_dump(mode="json", exclude={"row_scores"})


class Probe(Record):
    """What a refit of the incumbent's arm on the other folds would have answered to the correction rows."""

    rows: int
    failures: int
    """Rows that were answered wrongly."""
    repaired: int
    broken: int
    slices: tuple[tuple[int, int, int], ...]
    """(repaired, broken, rows) in scope, and out of scope where there are such rows."""
    estimator_fits: int
    seconds: float


def probe(
    base_rows: Sequence[DatasetRow],
    new_rows: Sequence[DatasetRow],
    served: Sequence[str | None],
    *,
    incumbent: str,
    task: Task,
) -> Probe:
    """Repairs and breaks of the incumbent's arm on thirds it was not trained on, the thirds disjoint by source.

    `served` has the champion's logged answer to each new row, None where it rejected.
    """
    started = time.monotonic()
    groups = folds_of(new_rows, PROBE_FOLDS)
    answers: list[str | None] = [None] * len(new_rows)
    fits = 0
    for fold in range(PROBE_FOLDS):
        held = [i for i in range(len(new_rows)) if groups[i] == fold]
        if not held:
            continue
        model = fit_arm(
            ARMS[incumbent], base_rows, [r for r, g in zip(new_rows, groups, strict=True) if g != fold], task=task
        )
        fits += model.estimator_fits
        for i, prediction in zip(held, model.predict([text_of(new_rows[i]) for i in held]), strict=True):
            answers[i] = prediction.answer
    truths = [truth_of(row, task) for row in new_rows]
    repaired, broken = _changes(truths, served, answers)
    return Probe(
        rows=len(new_rows),
        failures=sum(truth != answer for truth, answer in zip(truths, served, strict=True)),
        repaired=repaired,
        broken=broken,
        slices=_slices(truths, served, answers),
        estimator_fits=fits,
        seconds=time.monotonic() - started,
    )


def candidates(incumbent: str, barred: Sequence[str] = ()) -> tuple[Arm, ...]:
    """The incumbent's arm first, then the others in order of the registry; barred ones left out."""
    names = [incumbent, *(name for name in ARMS if name != incumbent)]
    return tuple(ARMS[name] for name in names if name not in barred)


def try_arms(
    base_rows: Sequence[DatasetRow],
    new_rows: Sequence[DatasetRow],
    served: Sequence[str | None],
    *,
    incumbent: str,
    barred: Sequence[str] = (),
    task: Task,
    budget_s: float = 120.0,
) -> tuple[ArmTrial, ...]:
    """Every arm in reach of the budget, the one to use first, scored on the choosing rows only.

    The incumbent's arm stays unless another one's lead passes an exact test at 5 %: 3-0 decides nothing.

    Each choosing row is predicted by a model trained on the base rows, on the choosing rows of the other folds and on
    no judging row. An arm that raises is recorded with its error and the others go on; the incumbent's arm and two
    more are tried even when the budget is spent.
    """
    chosen = [i for i in range(len(new_rows)) if not is_judging(new_rows[i], task.seed)]
    rows, answers = [new_rows[i] for i in chosen], [served[i] for i in chosen]
    started = time.monotonic()
    trials = []
    for number, arm in enumerate(candidates(incumbent, barred)):
        if number > 2 and time.monotonic() - started > budget_s:
            trials.append(_failed(arm, 0.0, f"the budget of {budget_s:.0f} s was spent"))
            continue
        trials.append(_tried(arm, base_rows, rows, answers, task))
    return _ranked(trials, incumbent)


def _changes(
    truths: Sequence[str | None], before: Sequence[str | None], after: Sequence[str | None]
) -> tuple[int, int]:
    """(newly right, newly wrong)."""
    repaired = sum(b != t == a for t, b, a in zip(truths, before, after, strict=True))
    broken = sum(b == t != a for t, b, a in zip(truths, before, after, strict=True))
    return repaired, broken


def _slices(
    truths: Sequence[str | None], before: Sequence[str | None], after: Sequence[str | None]
) -> tuple[tuple[int, int, int], ...]:
    rows = list(zip(truths, before, after, strict=True))
    parts = [row for row in rows if row[0] is not None], [row for row in rows if row[0] is None]
    return tuple(
        (*_changes(*map(list, zip(*part, strict=True))), len(part)) for part in parts if part and len(part) < len(rows)
    )


def _tried(
    arm: Arm, base_rows: Sequence[DatasetRow], rows: list[DatasetRow], served: list[str | None], task: Task
) -> ArmTrial:
    started = time.monotonic()
    try:
        answers, fits = _out_of_fold(arm, base_rows, rows, task)
    except Exception as error:  # noqa: BLE001 - an estimator may raise anything; the other arms go on
        return _failed(arm, time.monotonic() - started, f"{type(error).__name__}: {error}")
    if not rows:
        return _failed(arm, time.monotonic() - started, "no rows to choose with")
    truths = [truth_of(row, task) for row in rows]
    repaired, broken = _changes(truths, served, answers)
    scores = tuple(
        (a == t) - (b == t) if b != t else BREAK_COST * ((a == t) - 1)
        for t, b, a in zip(truths, served, answers, strict=True)
    )
    return ArmTrial(
        arm=arm.name,
        score=sum(scores) / len(rows),
        row_scores=scores,
        accuracy=sum(t == a for t, a in zip(truths, answers, strict=True)) / len(rows),
        repaired=repaired,
        broken=broken,
        rows=len(rows),
        seconds=time.monotonic() - started,
        estimator_fits=fits,
    )


def _ranked(trials: list[ArmTrial], incumbent: str) -> tuple[ArmTrial, ...]:
    ranked = sorted(trials, key=lambda trial: -np.inf if trial.score is None else trial.score, reverse=True)
    own = next((trial for trial in ranked if trial.arm == incumbent and trial.score is not None), None)
    if own is None or _clearly_better(ranked[0], own):
        return tuple(ranked)
    return (own, *(trial for trial in ranked if trial is not own))


def _clearly_better(best: ArmTrial, own: ArmTrial) -> bool:
    pairs = list(zip(best.row_scores, own.row_scores, strict=True))
    return mcnemar_one_sided(sum(a > b for a, b in pairs), sum(a < b for a, b in pairs)) <= SWITCH_ALPHA


def _out_of_fold(
    arm: Arm, base_rows: Sequence[DatasetRow], rows: list[DatasetRow], task: Task
) -> tuple[list[str | None], int]:
    folds = folds_of(rows, 3)
    answers: list[str | None] = [None] * len(rows)
    fits = 0
    for fold in range(3):
        held = [i for i in range(len(rows)) if folds[i] == fold]
        model = fit_arm(arm, base_rows, [row for row, f in zip(rows, folds, strict=True) if f != fold], task=task)
        fits += model.estimator_fits
        for i, prediction in zip(held, model.predict([text_of(rows[i]) for i in held]), strict=True):
            answers[i] = prediction.answer
    return answers, fits


def _failed(arm: Arm, seconds: float, error: str) -> ArmTrial:
    return ArmTrial(
        arm=arm.name,
        score=None,
        accuracy=None,
        repaired=0,
        broken=0,
        rows=0,
        seconds=seconds,
        estimator_fits=0,
        error=error,
    )
