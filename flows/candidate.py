"""One candidate: the arms are tried, the best one meets the gate, and what passes is served."""

import time
from collections.abc import Sequence

from flows.anchoring import anchored_over
from flows.cases import judge_cases
from flows.champion import keep
from flows.history import leave_row, new_row, record_row
from flows.learnt import settle
from flows.serving import promote
from flows.training_data import TrainingData
from flows.workspace import Workspace
from models import gate
from models.anchored_out_of_fold import AnchoredOutOfFold
from models.arms import ARMS, Arm, Model, fit_arm, try_arms
from models.collusion import groups_of
from models.fitting import BASE
from models.judged_rows import JudgedRow
from models.judging import examples_of, judge_calibration, judge_rows, places_to_judge
from models.out_of_fold import OutOfFold
from models.poison import influences
from models.text_model import TextModel
from models.trigger import TriggerVerdict
from store.errors import FilmroomError
from store.ledger import record_event
from store.records import DatasetRow, GateStage, Retrain, RetrainDecision, Version
from store.releases import live_release

AGAIN = "the next turn weighs it again"


def train(
    workspace: Workspace,
    data: TrainingData,
    out_of_fold: OutOfFold,
    verdict: TriggerVerdict,
    numbers: dict[str, float | None],
    started: float,
) -> Retrain:
    """Try the arms, judge the best one, and serve it where it passes; `out_of_fold` is over the rows of `data`."""
    again = {each.arm for each in data.refused if each.data_digest == data.digest and each.arm}
    trials = try_arms(out_of_fold, data.served, incumbent=data.incumbent, barred=sorted({*data.barred, *again}))
    row = new_row(workspace, data.name, "refused", "no arm could be trained on these rows", numbers=numbers)
    model = None
    if trials[0].score is not None:
        arm = ARMS[trials[0].arm]
        out_of_fold.prepare(places_to_judge(arm, out_of_fold, incumbent=data.incumbent))
        over = anchored_over(workspace, data, out_of_fold, arm)
        judged = judge_rows(arm, over or out_of_fold, data.served, incumbent=data.incumbent)
        stages, model = _judge(workspace, data, out_of_fold, arm, judged, over)
        numbers = (
            numbers
            if over is None
            else {**numbers, "anchor_lead": over.leads.among_known, "anchor_lead_new": over.leads.to_new}
        )
        row = _told(workspace, data, arm.name, stages, numbers).model_copy(update={"examples": examples_of(judged)})
    row = row.model_copy(
        update={
            "trace_ids": tuple(each.row.trace_id for each in data.new if each.row.trace_id is not None),
            "arms": tuple(trial.as_json() for trial in trials),
            "data_digest": data.digest,
            "estimator_fits": out_of_fold.estimator_fits,
            "seconds": round(time.perf_counter() - started, 3),
            "numbers": {**numbers, "rows": float(len(data.new)), "held_rows": float(data.held)},
        }
    )
    if model is None or row.decision == "refused":
        return leave_row(workspace, row)
    return _promote(workspace, data, row, model, verdict)


def _judge(
    workspace: Workspace,
    data: TrainingData,
    out_of_fold: OutOfFold,
    arm: Arm,
    judged: Sequence[JudgedRow],
    over: AnchoredOutOfFold | None,
) -> tuple[tuple[GateStage, ...], Model | None]:
    """The stages of the gate; and the model of all rows, which the last stages look at, where the others passed."""
    stages = gate.judge(
        judged,
        policy=workspace.policy,
        checks=_checks(data),
        calibrated=judge_calibration(arm, over or out_of_fold, incumbent=data.incumbent),
        look=data.look,
    )
    if not gate.passed(stages):
        return stages, None

    def refit(rows: Sequence[DatasetRow]) -> Model:
        model = fit_arm(arm, data.base, rows, task=data.task)
        return model if over is None or not isinstance(model, TextModel) else over.model(model)

    model = refit(data.rows)
    # in profile `benchmark` a named reviewer, an authority, accepted every label
    questioned = data.rows if workspace.policy.reviewer is None else []
    groups = (
        ()
        if data.task.kind == "tabular"
        else groups_of([row for row in data.base if row.source == BASE], questioned, seed=data.task.seed)
    )
    found, fits = influences(model, refit, data.base, questioned, groups)
    out_of_fold.estimator_fits += model.estimator_fits + fits
    cases = judge_cases(workspace, data.name, data.live, model)
    return (*stages, gate.judge_sources(found), *cases), model


def _told(
    workspace: Workspace, data: TrainingData, arm: str, stages: tuple[GateStage, ...], numbers: dict[str, float | None]
) -> Retrain:
    """The row that says promoted or refused, and why."""
    said = f"{arm} anchored at the champion" if "anchor_lead" in numbers else arm
    decision: RetrainDecision = "promoted" if gate.passed(stages) else "refused"
    failed = [stage for stage in stages if stage.verdict != "passed"]
    reason = (
        f"{said} passed every stage of the gate"
        if not failed
        else f"{said}: the gate's {failed[0].stage} stage says {failed[0].verdict}: {failed[0].sentence}"
    )
    row = new_row(workspace, data.name, decision, reason, to_yes=gate.to_yes(stages), numbers=numbers)
    return row.model_copy(update={"arm": arm, "gate": stages, "metrics": gate.metrics(stages)})


def _checks(data: TrainingData) -> dict[str, bool | None]:
    return {"rows": bool(data.new), "base": bool(data.base), "digest": bool(data.digest)}


def _promote(workspace: Workspace, data: TrainingData, row: Retrain, model: Model, verdict: TriggerVerdict) -> Retrain:
    """Keep the model of all rows, and serve it; the holds of what it learnt start now."""
    rows = [*data.base, *data.rows]
    parent = None if data.live is None else data.live.id
    try:
        made = keep(workspace, data.name, model, row.arm or "", rows, parent=parent)
    except FilmroomError as error:
        return leave_row(workspace, row.model_copy(update={"decision": "refused", "reason": str(error)}))
    told = row.model_copy(update={"reason": f"{row.reason}; {verdict.reason}"})
    return serve_candidate(workspace, data.name, made, told, data.rows)


def serve_candidate(
    workspace: Workspace, name: str, made: Version, row: Retrain, learnt: Sequence[DatasetRow]
) -> Retrain:
    """Serve a version that passed the gate in place of its parent, and leave `row`, which says so, with its causes.

    Where another version went live since, nothing is served and the row says refused.
    """
    done = row.model_copy(update={"version": made.id, "parent": made.parent})
    with workspace.write() as connection:
        if live_release(connection, workspace.project).models.get(name) != made.parent:
            moved = {"decision": "refused", "reason": f"{name}: another version went live meanwhile", "to_yes": AGAIN}
            record_row(connection, workspace, row.model_copy(update=moved), causes=[])
            return row.model_copy(update=moved)
        corrections = sorted({each.correction_id for each in learnt if each.correction_id})
        record_row(connection, workspace, done, causes=[*corrections, *done.trace_ids])
        record_event(connection, workspace.project, at_us=done.at_us, actor=workspace.actor, event="made",
                     subject=made.id, reason=done.reason, causes=[done.id])  # fmt: skip
        promote(connection, workspace, name, made, reason=done.reason)
        settle(connection, workspace, corrections)
    return done
