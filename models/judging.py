"""Paired rows for the gate: what was served against what a candidate answers to rows it was not trained on."""

from collections.abc import Sequence

from models.dataset import text_of
from models.fitting import ARMS, DEFAULT_ARM, Arm, Task, fit_arm, truth_of
from models.gate_stages import JudgedRow
from models.splits import folds_of, is_judging
from store.records.identity import content_hash
from store.records.weights import DatasetRow

Pair = tuple[DatasetRow, str | None, str | None]
"""A row, what the champion answers and what the challenger does."""
FOLDS = 5
"""For the correction rows."""
BASE_FOLDS = 3
"""For the base rows, where both sides are refitted in each fold."""


def judge_rows(
    arm: Arm,
    base_rows: Sequence[DatasetRow],
    new_rows: Sequence[DatasetRow],
    served: Sequence[str | None],
    *,
    incumbent: str,
    task: Task,
    golden: frozenset[str] = frozenset(),
) -> tuple[tuple[JudgedRow, ...], int]:
    """Paired rows for the gate, each predicted by a challenger that did not train on it, and the estimator fits used.

    `golden` has digests of inputs that must not be lost. Raises ValueError where a fold cannot be trained.
    """
    fresh, fits = _fresh_pairs(arm, base_rows, new_rows, served, task)
    old, more_fits = _base_pairs(arm, base_rows, new_rows, incumbent, task)
    pairs = [(*pair, False) for pair in old] + [(*pair, True) for pair in fresh]
    return tuple(_judged(*pair, task, golden) for pair in pairs), fits + more_fits


def _fresh_pairs(
    arm: Arm, base: Sequence[DatasetRow], new: Sequence[DatasetRow], served: Sequence[str | None], task: Task
) -> tuple[list[Pair], int]:
    """The judging share of the correction rows, beside the champion's logged answers.

    The challenger learns from all base rows, as the champion did, and from the other folds; these are disjoint by source,
    by input where the source is unknown or an authority.
    """
    folds, fits = folds_of(new, FOLDS), 0
    pairs: list[Pair] = []
    for fold in range(FOLDS):
        held = [i for i in range(len(new)) if folds[i] == fold and is_judging(new[i], task.seed)]
        if not held:
            continue
        challenger = fit_arm(arm, base, [row for row, f in zip(new, folds, strict=True) if f != fold], task=task)
        fits += challenger.estimator_fits
        after = challenger.predict([text_of(new[i]) for i in held])
        pairs += [(new[i], served[i], prediction.answer) for i, prediction in zip(held, after, strict=True)]
    return pairs, fits


def _base_pairs(
    arm: Arm, base: Sequence[DatasetRow], new: Sequence[DatasetRow], incumbent: str, task: Task
) -> tuple[list[Pair], int]:
    """The base rows; the champion's arm refitted without them stands for the champion, since it trained on them."""
    base_folds, new_folds, fits = folds_of(base, BASE_FOLDS), folds_of(new, BASE_FOLDS), 0
    own = ARMS[incumbent] if incumbent != "exceptions" else ARMS[DEFAULT_ARM]
    pairs: list[Pair] = []
    for fold in range(BASE_FOLDS):
        held = [row for row, f in zip(base, base_folds, strict=True) if f == fold]
        if not held:
            continue
        known = [row for row, f in zip(base, base_folds, strict=True) if f != fold]
        fresh = [row for row, f in zip(new, new_folds, strict=True) if f != fold]
        champion, challenger = fit_arm(own, known, [], task=task), fit_arm(arm, known, fresh, task=task)
        fits += challenger.estimator_fits + champion.estimator_fits
        texts = [text_of(row) for row in held]
        answers = zip(champion.predict(texts), challenger.predict(texts), strict=True)
        pairs += [(row, old.answer, new_.answer) for row, (old, new_) in zip(held, answers, strict=True)]
    return pairs, fits


def _judged(
    row: DatasetRow, before: str | None, after: str | None, in_cluster: bool, task: Task, golden: frozenset[str]
) -> JudgedRow:
    digest = content_hash(row.input)
    return JudgedRow(
        row=digest,
        truth=truth_of(row, task),
        champion=before,
        challenger=after,
        in_cluster=in_cluster,
        source=row.source,
        golden=digest in golden,
    )
