"""The patch: only the classes a correction touches are learnt anew, all others and the reject model stay as they are.

Its guarantee is narrower than a full retrain's. It is judged on the correction's own rows and on base rows, each by a
column that has not learnt them, and on answers that people confirmed; calibration, slices and single sources are judged
at the next full retrain, which replaces it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from models.calibration import LOWEST
from models.dataset import text_of
from models.fitting import Model, Task, truth_of
from models.gate_stages import flips, global_, integrity, target
from models.ground import Ground
from models.inputs import input_key
from models.judged_rows import JudgedRow
from models.judging import judged_row
from models.one_vs_rest import Column, refit_class
from models.reject import Bools, Floats
from models.splits import folds_of
from models.taught_rows import Labels
from models.text_model import LEARNERS, TextModel
from store.records.policy import Policy
from store.records.weights import DatasetRow, GateStage

PATCH = "patch"
"""Its name in the record, beside the arms."""
FROM_ROWS = 5_000
"""Base rows from which a patch is made where the settings do not say: a smaller model is refitted whole as quickly."""
MOST_TOUCHED = 10
"""Classes: with more of them a patch would be no smaller than a refit."""
TARGET_FOLDS = 3


@dataclass(frozen=True)
class Rows:
    """The rows of one patch."""

    base: Sequence[DatasetRow]
    """In the order of the ground's features."""
    learnt: Sequence[DatasetRow]
    """Production rows that the live version has learnt."""
    taught: Sequence[DatasetRow]
    """The correction's rows."""
    served: Sequence[str | None]
    """What was answered to them."""


@dataclass(frozen=True)
class Patched:
    """A patch, and what it answers to rows that its columns did not learn."""

    model: TextModel
    ground: Ground
    taught: tuple[str | None, ...]
    """Answers to the correction's rows."""
    held: tuple[tuple[int, str | None, str | None], ...]
    """(position among the base rows, answer before, answer now) of the rows held out."""
    estimator_fits: int


def touched_classes(rows: Rows, task: Task) -> tuple[str, ...]:
    """The classes that the correction gives and those that were answered wrongly, in order."""
    truths = [truth_of(row, task) for row in rows.taught]
    wrong = [answer for answer, truth in zip(rows.served, truths, strict=True) if answer != truth]
    return tuple(sorted({label for label in (*truths, *wrong) if label is not None}))


def not_applicable(model: Model, ground: Ground | None, rows: Rows, task: Task) -> str:
    """Why these rows cannot patch the model; empty where they can."""
    if not isinstance(model, TextModel) or not model.is_one_vs_rest:
        return "the live model is no linear one with a column for each class"
    if ground is None or ground.features.shape[0] != len(rows.base):
        return "the live version keeps no features of the present base rows; the next full retrain does"
    touched = touched_classes(rows, task)
    if any(row.label == task.out_of_scope for row in rows.taught):
        return "the correction is out of scope, which the reject model learns in a full retrain"
    if len(touched) > MOST_TOUCHED:
        return f"the correction touches {len(touched)} classes, and {MOST_TOUCHED} at most are patched"
    return ""


def make_patch(model: TextModel, ground: Ground, rows: Rows, *, task: Task) -> Patched:
    """The model with the touched classes learnt from all rows; only where `not_applicable` has nothing to say.

    A class that the model does not have yet gets a column of its own.
    """
    model, ground = _grown(model, ground, touched_classes(rows, task))
    work = _Work(model, ground, rows, task)
    columns = work.columns(np.ones(len(work.labels), bool))
    held_columns = work.columns(~work.held_out)
    decisions = work.replaced(ground.decisions, held_columns, ground.features[ground.held])
    taught: list[str | None] = [None] * len(rows.taught)
    fold_of = folds_of(rows.taught, TARGET_FOLDS)
    for fold in sorted(set(fold_of)):
        asked = np.flatnonzero(fold_of == fold)
        X, kept = work.X[work.first_taught + asked], np.ones(len(work.labels), bool)
        kept[work.first_taught + asked] = False
        found = model.answers(X, work.replaced(model.decisions(X), work.columns(kept), X))
        for i, answer in zip(asked, found, strict=True):
            taught[i] = answer
    return Patched(
        model=model.with_columns(columns),
        ground=Ground(features=ground.features, held=ground.held, decisions=decisions),
        taught=tuple(taught),
        held=work.compared(decisions),
        estimator_fits=work.estimator_fits,
    )


def _grown(model: TextModel, ground: Ground, touched: Sequence[str]) -> tuple[TextModel, Ground]:
    """Both with the touched classes that they lack, which the model never answers yet."""
    fresh = sorted(set(touched) - set(map(str, model.classes)))
    if not fresh:
        return model, ground
    grown = model.with_classes(fresh)
    decisions = np.full((len(ground.held), len(grown.classes)), LOWEST)
    decisions[:, np.searchsorted(grown.classes, model.classes)] = ground.decisions
    return grown, Ground(features=ground.features, held=ground.held, decisions=decisions)


class _Work:
    """The rows as arrays, and the columns that parts of them give."""

    def __init__(self, model: TextModel, ground: Ground, rows: Rows, task: Task) -> None:
        self.model, self.ground, self.rows = model, ground, rows
        self.estimator_fits = 0
        came = [*rows.learnt, *rows.taught]
        every = [*rows.base, *came]
        in_scope = np.array([row.label != task.out_of_scope for row in every])
        self.labels: Labels = np.array([row.label for row in every])
        self.weights: Floats = np.array([row.weight for row in every]) * in_scope
        self.X = sp.vstack([ground.features, model.features([text_of(row) for row in came])], format="csr")
        self.first_taught = len(rows.base) + len(rows.learnt)
        texts = [input_key(row) for row in every]
        held = {texts[i] for i in ground.held}
        self.held_out: Bools = np.array([text in held for text in texts])
        self._in_scope: Bools = in_scope
        touched = touched_classes(rows, task)
        scores = model.decisions(self.X)
        self._scores = {label: scores[:, int(np.searchsorted(model.classes, label))] for label in touched}

    def columns(self, kept: Bools) -> dict[str, Column]:
        """The columns of the touched classes over the rows `kept`; none of a class that has no row there."""
        kept = kept & self._in_scope
        taught = {label: scores for label, scores in self._scores.items() if (self.labels[kept] == label).any()}
        self.estimator_fits += len(taught)
        return {
            label: refit_class(
                self.X, self.labels == label, self.weights, scores, kept=kept,
                solver=LEARNERS[self.model.learner](self.model.seed),
            )
            for label, scores in taught.items()
        }  # fmt: skip

    def replaced(self, decisions: Floats, columns: dict[str, Column], X: Any) -> Floats:
        """Decisions on `X` with those of the touched classes made anew."""
        changed = decisions.copy()
        for label, (weights, constant) in columns.items():
            changed[:, int(np.searchsorted(self.model.classes, label))] = X @ weights + constant
        return changed

    def compared(self, decisions: Floats) -> tuple[tuple[int, str | None, str | None], ...]:
        """The base rows held out, but those whose very text is taught: it says another label now."""
        came = {input_key(row) for row in (*self.rows.learnt, *self.rows.taught)}
        X = self.ground.features[self.ground.held]
        before, after = self.model.answers(X, self.ground.decisions), self.model.answers(X, decisions)
        return tuple(
            (int(i), old, new)
            for i, old, new in zip(self.ground.held, before, after, strict=True)
            if input_key(self.rows.base[i]) not in came
        )


def judged_rows(
    patched: Patched, rows: Rows, confirmed: Sequence[tuple[DatasetRow, str | None]], task: Task
) -> tuple[JudgedRow, ...]:
    """The paired rows of the gate; `confirmed` are right answers that were served, with what they were."""
    base = [judged_row(rows.base[i], old, new, task, in_cluster=False) for i, old, new in patched.held]
    taught = zip(rows.taught, rows.served, patched.taught, strict=True)
    fresh = [judged_row(row, old, new, task, in_cluster=True) for row, old, new in taught]
    answers = patched.model.predict([text_of(row) for row, _ in confirmed])
    others = [
        judged_row(row, old, new.answer, task, in_cluster=True)
        for (row, old), new in zip(confirmed, answers, strict=True)
    ]
    return (*base, *fresh, *others)


def judge_patch(
    judged: Sequence[JudgedRow], *, policy: Policy, checks: dict[str, bool | None], look: int
) -> tuple[GateStage, ...]:
    """The stages a patch passes: integrity, target, global and flips, at a full retrain's own margins."""
    return integrity(checks), target(judged, policy, look), global_(judged, policy), flips(judged, policy)
