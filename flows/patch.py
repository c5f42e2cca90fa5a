"""The patch arm: an approved correction of a large linear model is served at once where its own rows prove it."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flows.candidate import serve_candidate
from flows.cases import judge_cases
from flows.champion import ground_names, keep, load_model, patches, task_of
from flows.history import leave_row, new_row
from flows.lineage import learnt_traces
from flows.serving import artifact_of, live_version
from flows.training import Labelled, labelled, training_rows
from flows.workspace import Workspace
from models import gate, minimum_evidence
from models.dataset import dataset_digest, prepare
from models.fitting import Model, Task
from models.ground import Ground, load_ground
from models.judging import examples_of
from models.minimum_evidence import EvidenceCase, EvidenceVerdict
from models.patch import PATCH, Patched, Rows, judge_patch, judged_rows, make_patch, not_applicable, touched_classes
from store.errors import FilmroomError
from store.records import GateStage, Retrain, Version
from store.retrains import retrains_of

FULL = "the next turn weighs a full retrain"


@dataclass(frozen=True)
class _Material:
    """What one patch is made of."""

    live: Version
    model: Model
    ground: Ground | None
    rows: Rows
    taught: tuple[Labelled, ...]
    confirmed: tuple[Labelled, ...]
    """Right answers that were served and are not learnt yet."""
    task: Task
    look: int


def patch(workspace: Workspace, name: str, correction_id: str) -> Retrain | None:
    """Learn the rows of one approved correction where a patch applies; None: this model is not patched at all.

    The row it leaves says promoted, refused, or why there was nothing to patch.
    """
    started = time.perf_counter()
    if workspace.settings.weights[name].champion != "ours":
        return None
    try:
        if not patches(workspace, name, training_rows(workspace.settings, name)):
            return None
        found = _gathered(workspace, name, correction_id)
        if found is None:
            return None
        unfit = not_applicable(found.model, found.ground, found.rows, found.task)
        if unfit:
            return _skipped(workspace, name, f"not applicable: {unfit}", FULL)
        return _weighed(workspace, name, found, started)
    except FilmroomError as error:
        return _skipped(workspace, name, str(error), FULL)


def _gathered(workspace: Workspace, name: str, correction_id: str) -> _Material | None:
    """None: nothing is served yet, or the correction has no row that is still to be learnt."""
    with workspace.store.read() as connection:
        live = live_version(connection, workspace.project, name)
        every = labelled(connection, workspace, name)
        evaluations = retrains_of(connection, workspace.project, name)
    learnt = learnt_traces(live, evaluations)
    fresh = [each for each in every if each.row.trace_id not in learnt]
    own = [each for each in fresh if each.row.correction_id == correction_id]
    if live is None or not own:
        return None
    cap = None if workspace.policy.profile == "benchmark" else workspace.policy.cap_per_source
    entries = prepare([each.row for each in own], cap_per_source=cap).entries
    taught = tuple(each for each, entry in zip(own, entries, strict=True) if entry.used)
    traces = {each.row.trace_id for each in taught}
    names = ground_names(live)
    return _Material(
        live=live,
        model=load_model(workspace.artifacts, artifact_of(live)),
        ground=None if names is None else load_ground(workspace.artifacts, names),
        rows=Rows(
            base=training_rows(workspace.settings, name),
            learnt=[each.row for each in every if each.row.trace_id in learnt],
            taught=[each.row for each in taught],
            served=[each.served for each in taught],
        ),
        taught=taught,
        confirmed=tuple(each for each in fresh if not each.failed),
        task=task_of(workspace, name),
        look=1 + sum(each.arm == PATCH and each.decision == "refused" and bool(traces & set(each.trace_ids))
                     for each in evaluations),
    )  # fmt: skip


def _weighed(workspace: Workspace, name: str, found: _Material, started: float) -> Retrain:
    best = _evidence(workspace, found.taught, repair_rate=1.0, break_rate=0.0)
    if not best.ok:
        return _skipped(workspace, name, best.sentence, best.to_yes)
    made = make_patch(found.model, found.ground, found.rows, task=found.task)  # type: ignore[arg-type]
    evidence = _evidence(workspace, found.taught, **_rates(made, found))
    if not evidence.ok:
        return _skipped(workspace, name, evidence.sentence, evidence.to_yes)
    confirmed = [(each.row, each.served) for each in found.confirmed]
    judged = judged_rows(made, found.rows, confirmed, found.task)
    checks: dict[str, bool | None] = {
        "rows": bool(found.taught),
        "base": bool(found.rows.base),
        "held out": bool(made.held),
    }
    stages = judge_patch(judged, policy=workspace.policy, checks=checks, look=found.look)
    stages = (*stages, *judge_cases(workspace, name, found.live, made.model))
    row = _told(workspace, name, found, stages, evidence)
    row = row.model_copy(
        update={
            "arm": PATCH,
            "examples": examples_of(judged),
            "trace_ids": tuple(each.row.trace_id for each in found.taught if each.row.trace_id is not None),
            "data_digest": dataset_digest(found.rows.taught),
            "estimator_fits": made.estimator_fits,
        }
    )
    if row.decision == "refused":
        return leave_row(workspace, row.model_copy(update={"seconds": round(time.perf_counter() - started, 3)}))
    return _served(workspace, name, found, made, row, started)


def _told(
    workspace: Workspace, name: str, found: _Material, stages: tuple[GateStage, ...], evidence: EvidenceVerdict
) -> Retrain:
    """The row that says promoted or refused, and why."""
    touched = touched_classes(found.rows, found.task)
    failed = [stage for stage in stages if stage.verdict != "passed"]
    reason = (
        f"patch passed {', '.join(stage.stage for stage in stages)}; calibration and single sources are judged at the next full "
        f"retrain; {len(found.taught)} approved rows touch {len(touched)} classes ({', '.join(touched)}), which alone are learnt"
        if not failed
        else f"patch: the gate's {failed[0].stage} stage says {failed[0].verdict}: {failed[0].sentence}"
    )
    numbers = evidence.numbers | {"rows": float(len(found.taught)), "touched_classes": float(len(touched))}
    row = new_row(
        workspace,
        name,
        "refused" if failed else "promoted",
        reason,
        to_yes=gate.to_yes(stages),
        numbers=numbers,
    )
    return row.model_copy(update={"gate": stages, "metrics": gate.metrics(stages)})


def _served(workspace: Workspace, name: str, found: _Material, made: Patched, row: Retrain, started: float) -> Retrain:
    rows = [*found.rows.base, *found.rows.learnt, *found.rows.taught]
    version = keep(
        workspace, name, made.model, PATCH, rows, parent=found.live.id,
        patched=made, live=found.live,
    )  # fmt: skip
    row = row.model_copy(update={"seconds": round(time.perf_counter() - started, 3)})
    return serve_candidate(workspace, name, version, row, found.rows.taught)


def _rates(made: Patched, found: _Material) -> dict[str, float]:
    """What the patch repairs of its own rows, and breaks of the base rows that were right; on rows it did not learn."""
    pairs = zip(made.taught, found.rows.taught, found.rows.served, strict=True)
    wrong = [answer == row.label for answer, row, served in pairs if served != row.label]
    right = [new == old for i, old, new in made.held if old == found.rows.base[i].label]
    return {
        "repair_rate": sum(wrong) / max(1, len(wrong)),
        "break_rate": 1 - sum(right) / len(right) if right else 1.0,
    }


def _evidence(workspace: Workspace, cases: Sequence[Labelled], **rates: float) -> EvidenceVerdict:
    named = workspace.policy.reviewer
    failures: list[Any] = [
        EvidenceCase(
            source=named or each.row.source,
            authority=named is not None or each.row.authority,
            at_us=each.row.at_us,
            weight=each.row.weight,
        )
        for each in cases
        if each.failed
    ]
    return minimum_evidence.check(failures, policy=workspace.policy, **rates)


def _skipped(workspace: Workspace, name: str, reason: str, to_yes: str) -> Retrain:
    row = new_row(workspace, name, "skipped", f"patch: {reason}", to_yes=to_yes)
    return leave_row(workspace, row.model_copy(update={"arm": PATCH}))
