"""Paired rows for the gate: what was served against what a candidate answers to rows it was not trained on."""

from collections.abc import Sequence

from models.dataset import text_of
from models.fitting import ARMS, DEFAULT_ARM, Arm, Task, fit_arm, truth_of
from models.gate_stages import JudgedRow
from models.splits import folds_of, is_judging
from store.records.identity import content_hash
from store.records.weights import DatasetRow

FOLDS = 5


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

    Correction rows: the judging share, in folds disjoint by source (by input where the source is unknown or an
    authority); the champion's answer is the logged one. Base rows: the champion's arm refitted on the base rows of the
    other folds stands for the champion, since it trained on them. `golden` has digests of inputs that must not be lost.
    Raises ValueError where a fold cannot be trained.
    """
    base_folds, new_folds = folds_of(base_rows, FOLDS), folds_of(new_rows, FOLDS)
    judged: list[JudgedRow] = []
    fits = 0
    for fold in range(FOLDS):
        base = [row for row, f in zip(base_rows, base_folds, strict=True) if f != fold]
        new = [row for row, f in zip(new_rows, new_folds, strict=True) if f != fold]
        challenger = fit_arm(arm, base, new, task=task)
        champion = fit_arm(ARMS[incumbent] if incumbent != "exceptions" else ARMS[DEFAULT_ARM], base, [], task=task)
        fits += challenger.estimator_fits + champion.estimator_fits
        old = [row for row, f in zip(base_rows, base_folds, strict=True) if f == fold]
        fresh = [
            (row, answer)
            for row, answer, f in zip(new_rows, served, new_folds, strict=True)
            if f == fold and is_judging(row, task.seed)
        ]
        before = [p.answer for p in champion.predict([text_of(row) for row in old])]
        pairs = [(row, answer, False) for row, answer in zip(old, before, strict=True)]
        pairs += [(row, answer, True) for row, answer in fresh]
        after = challenger.predict([text_of(row) for row, _, _ in pairs])
        for (row, answer, in_cluster), prediction in zip(pairs, after, strict=True):
            judged.append(_judged(row, answer, prediction.answer, in_cluster, task, golden))
    return tuple(judged), fits


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
