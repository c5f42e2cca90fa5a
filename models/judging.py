"""Paired rows for the gate: what was served against what a candidate answers to rows it was not trained on."""

from collections.abc import Sequence
from typing import Literal

from models.anchored_out_of_fold import AnchoredOutOfFold
from models.calibration import Calibrated, compare_calibration
from models.fitting import ARMS, BASE, Arm, Task, truth_of
from models.judged_rows import JudgedRow
from models.out_of_fold import OutOfFold, Place
from models.splits import is_judging
from store.records.identity import content_hash
from store.records.weights import ChangedAnswer, DatasetRow

EXAMPLES = 20
"""Rows of each kind that a retrain names."""


def judge_rows(
    arm: Arm,
    out_of_fold: OutOfFold | AnchoredOutOfFold,
    served: Sequence[str | None],
    *,
    incumbent: str,
) -> tuple[JudgedRow, ...]:
    """Paired rows for the gate, each predicted by a challenger that did not train on it.

    A base row's champion is the incumbent's arm refitted without the row, since the champion itself trained on it; one
    that was asked in production is marked so. A correction row's champion is its logged answer, `served`.

    The incumbent's arm was named before there were any rows, so that all of them judge it; another arm was chosen by
    some of the rows, and only the others judge it. A false promotion is then no likelier than the gate's level times
    one plus the chance that another arm was chosen.

    Raises ValueError where a fold cannot be trained.
    """
    base, new, task = out_of_fold.base, out_of_fold.new, out_of_fold.task
    after = out_of_fold.answers(arm)
    fresh = [
        judged_row(new[i], served[i], after[i], task, in_cluster=True)
        for i in range(len(new))
        if _judges(new[i], arm, incumbent, task)
    ]
    before = out_of_fold.base_answers(ARMS[incumbent], with_new=False)
    asked = [base[i] for i in out_of_fold.asked_base]
    pairs = zip(asked, before, out_of_fold.base_answers(arm, with_new=True), strict=True)
    return (*(judged_row(row, old, new_, task, in_cluster=False) for row, old, new_ in pairs), *fresh)


def places_to_judge(arm: Arm, out_of_fold: OutOfFold, *, incumbent: str) -> list[Place]:
    """The fits behind `judge_rows` and `judge_calibration`."""
    before = out_of_fold.base_places(ARMS[incumbent], with_new=False)
    return [*out_of_fold.places(arm), *before, *out_of_fold.base_places(arm, with_new=True)]


def formerly_right(arm: Arm, out_of_fold: OutOfFold, served: Sequence[str | None], *, incumbent: str) -> int:
    """How many of the new rows that will judge were answered rightly; it says nothing of the challenger."""
    task = out_of_fold.task
    judging = (
        (row, old) for row, old in zip(out_of_fold.new, served, strict=True) if _judges(row, arm, incumbent, task)
    )
    return sum(truth_of(row, task) == old for row, old in judging)


def judge_calibration(arm: Arm, out_of_fold: OutOfFold | AnchoredOutOfFold, *, incumbent: str) -> Calibrated | None:
    """Calibration over the base rows in scope, by refits that have not seen them; None without such rows."""
    truths = [truth_of(out_of_fold.base[i], out_of_fold.task) for i in out_of_fold.asked_base]
    sides = []
    for side, with_new in ((ARMS[incumbent], False), (arm, True)):
        predictions = out_of_fold.base_predictions(side, with_new=with_new)
        pairs = [(p, truth) for p, truth in zip(predictions, truths, strict=True) if truth is not None]
        sides.append(([p.confidence for p, _ in pairs], [p.label == truth for p, truth in pairs]))
    return compare_calibration(sides[0], sides[1], seed=out_of_fold.task.seed)


def examples_of(rows: Sequence[JudgedRow], most: int = EXAMPLES) -> tuple[ChangedAnswer, ...]:
    """At most `most` rows newly wrong and as many newly right, those asked in production first."""
    ordered = sorted(rows, key=lambda row: (not row.in_cluster, row.trace_id or "", row.row))
    lost = [_example("newly wrong", row) for row in ordered if row.was_right and not row.is_right]
    won = [_example("newly right", row) for row in ordered if row.is_right and not row.was_right]
    return (*lost[:most], *won[:most])


def _judges(row: DatasetRow, arm: Arm, incumbent: str, task: Task) -> bool:
    return arm.name == incumbent or is_judging(row, task.seed)


def _example(change: Literal["newly right", "newly wrong"], row: JudgedRow) -> ChangedAnswer:
    return ChangedAnswer(
        change=change,
        trace_id=row.trace_id,
        row=row.row,
        truth=row.truth,
        champion=row.champion,
        challenger=row.challenger,
    )


def judged_row(row: DatasetRow, before: str | None, after: str | None, task: Task, *, in_cluster: bool) -> JudgedRow:
    """One row with the champion's answer `before` and the challenger's `after`; `in_cluster`: it came since the champion."""
    return JudgedRow(
        row=content_hash(row.input),
        truth=truth_of(row, task),
        champion=before,
        challenger=after,
        in_cluster=in_cluster,
        in_production=not in_cluster and row.source != BASE,
        source=row.source,
        trace_id=row.trace_id,
    )
