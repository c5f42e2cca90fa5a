"""Retrain: weights last. Every evaluation of the trigger leaves a row, whether it trains or not, and why."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from flows.apply import start_hold
from flows.champion import arm_of, demote, found_model, keep, live_version, promote, task_of
from flows.training import Labelled, labelled, training_rows
from flows.workspace import Workspace
from models import gate, minimum_evidence
from models.arms import ARMS, JUDGING_SHARE, ArmTrial, Probe, Task, candidates, fit_arm, judge_rows, probe, try_arms
from models.dataset import prepare, suspect_labels
from models.minimum_evidence import EvidenceCase, EvidenceVerdict
from models.trigger import TriggerInputs, TriggerVerdict, evaluate
from store.changes import changes_of
from store.corrections import correction, set_state
from store.errors import FilmroomError
from store.ledger import record_event
from store.records import DatasetRow, GateStage, Record, Retrain, Version, derived_id
from store.retrains import put_retrain, retrains_of

REVIEW_MINUTES = 10.0
"""A person's time a training: reading the verdict and the labels that were held."""
FIRST_GATE_S = 10.0
"""Seconds of a gate before one was measured."""
BARRED_AFTER = 2
"""Refusals after which an arm is not tried again until a promotion."""


class Retrained(Record):
    """The evaluations of this turn, one a model."""

    evaluations: tuple[Retrain, ...] = ()

    def markdown(self) -> str:
        lines = [f"* **{each.model}**: {each.decision}. {each.reason}" for each in self.evaluations]
        lines += [
            f"    * {stage.stage}: {stage.verdict}. {stage.sentence}"
            for each in self.evaluations
            for stage in each.gate
        ]
        return "\n".join(lines) or "No model is named in the settings."


@dataclass(frozen=True)
class Material:
    """Everything an evaluation looks at."""

    name: str
    task: Task
    live: Version | None
    base: tuple[DatasetRow, ...]
    """Rows the champion was trained on: the base set and what was promoted since."""
    new: tuple[Labelled, ...]
    """Labelled rows that are still to be learnt, suspects and rows over a cap left out."""
    held: int
    """Rows held back as suspect or over a cap."""
    digest: str
    history: tuple[Retrain, ...]
    """Evaluations since the last promotion, newest first."""

    @property
    def rows(self) -> list[DatasetRow]:
        return [each.row for each in self.new]

    @property
    def served(self) -> list[str | None]:
        return [each.served for each in self.new]

    @property
    def refused(self) -> list[Retrain]:
        return [each for each in self.history if each.decision == "refused"]

    @property
    def barred(self) -> list[str]:
        arms = [each.arm for each in self.refused]
        return sorted({arm for arm in arms if arm is not None and arms.count(arm) >= BARRED_AFTER})


def retrain(workspace: Workspace) -> Retrained:
    """Weigh a retrain of every model of the settings; train, gate and promote where it is worth it and proved."""
    return Retrained(evaluations=tuple(_weigh(workspace, name) for name in workspace.settings.weights))


def roll_back(connection: Connection, workspace: Workspace, found: Retrain, *, reason: str) -> Retrain:
    """Serve the version before a promotion again, and leave a row that says so."""
    release = demote(connection, workspace, found.model, found.parent, reason=reason)
    row = Retrain(
        project=workspace.project,
        id=derived_id("ret", found.id, "rolled back", release.id),
        model=found.model,
        at_us=workspace.clock(),
        decision="rolled_back",
        reason=reason or f"{found.version} was taken back by {workspace.actor}",
        arm=found.arm,
        version=found.parent,
        parent=found.version,
    )
    _record(connection, workspace, row, causes=[found.id])
    return row


def _weigh(workspace: Workspace, name: str) -> Retrain:
    started = time.perf_counter()
    try:
        if not training_rows(workspace.settings, name):
            return _leave(workspace, _row(workspace, name, "skipped", "no training file: there is nothing to refit on",
                                          to_yes=f"set `training` under [weights.{name}]"))  # fmt: skip
        _found_if_new(workspace, name)
        material = _material(workspace, name)
    except FilmroomError as error:
        return _leave(workspace, _row(workspace, name, "skipped", str(error), to_yes="mend that, then `filmroom run`"))
    evidence = _evidence(workspace, material)
    if not evidence.ok:
        return _leave(
            workspace,
            _row(workspace, name, "skipped", evidence.sentence, to_yes=evidence.to_yes, numbers=evidence.numbers),
        )
    probed = probe(material.base, material.rows, material.served, incumbent=arm_of(material.live), task=material.task)
    verdict = evaluate(_inputs(material, probed), policy=workspace.policy, prices=workspace.settings.prices)
    numbers = {**evidence.numbers, **verdict.numbers}
    if not verdict.train:
        row = _row(workspace, name, "skipped", verdict.reason, to_yes=verdict.to_yes, numbers=numbers)
        return _leave(workspace, row.model_copy(update={"estimator_fits": probed.estimator_fits,
                                                        "data_digest": material.digest}))  # fmt: skip
    return _train(workspace, material, verdict, numbers, probed.estimator_fits, started)


def _found_if_new(workspace: Workspace, name: str) -> None:
    """Where filmroom serves the model itself, its first version comes from the base set."""
    if workspace.settings.weights[name].champion != "ours":
        return
    with workspace.store.read() as connection:
        live = live_version(connection, workspace.project, name)
    if live is None:
        found_model(workspace, name)


def _material(workspace: Workspace, name: str) -> Material:
    with workspace.store.read() as connection:
        live = live_version(connection, workspace.project, name)
        rows = labelled(connection, workspace, name)
        evaluations = retrains_of(connection, workspace.project, name)
    learnt = _learnt(live, evaluations)
    base = list(training_rows(workspace.settings, name)) + [each.row for each in rows if each.row.trace_id in learnt]
    fresh = [each for each in rows if each.row.trace_id not in learnt]
    together = [*base, *(each.row for each in fresh)]
    suspects = [i - len(base) for i in suspect_labels(together, seed=workspace.settings.seed) if i >= len(base)]
    policy = workspace.policy
    capped = policy.profile != "benchmark"
    training = prepare(
        [each.row for each in fresh],
        cap_per_source=policy.cap_per_source if capped else None,
        max_source_share=policy.evidence.max_source_share,
        suspects=suspects,
    )
    used = [each for each, entry in zip(fresh, training.entries, strict=True) if entry.used]
    return Material(
        name=name,
        task=task_of(workspace, name),
        live=live,
        base=tuple(base),
        new=tuple(used),
        held=len(fresh) - len(used),
        digest=training.digest,
        history=_since_promotion(evaluations),
    )


def _learnt(live: Version | None, evaluations: Sequence[Retrain]) -> set[str]:
    """Traces that the live version and its ancestors have learnt from."""
    made = {each.version: each for each in evaluations if each.decision == "promoted"}
    learnt: set[str] = set()
    version = None if live is None else live.id
    while version in made:
        promoted = made.pop(version)
        learnt.update(promoted.trace_ids)
        version = promoted.parent
    return learnt


def _since_promotion(evaluations: Sequence[Retrain]) -> tuple[Retrain, ...]:
    found = []
    for each in evaluations:
        if each.decision in ("promoted", "rolled_back"):
            break
        found.append(each)
    return tuple(found)


def _evidence(workspace: Workspace, material: Material) -> EvidenceVerdict:
    """The minimum evidence over the failures that are to be learnt.

    In profile `benchmark` the named reviewer, who accepted each label, is the authority behind it.
    """
    named = workspace.policy.reviewer
    cases = [
        EvidenceCase(
            source=named or each.row.source,
            authority=named is not None or each.row.authority,
            at_us=each.row.at_us,
            weight=each.row.weight,
        )
        for each in material.new
        if each.failed
    ]
    return minimum_evidence.check(cases, policy=workspace.policy)


def _inputs(material: Material, probed: Probe) -> TriggerInputs:
    trained = [each for each in material.history if each.decision == "refused"]
    since = trained[0].at_us if trained else None
    fresh = [each for each in material.new if since is None or (each.row.at_us or since + 1) > since]
    later = [each for each in material.history if since is None or each.at_us > since]
    digests = {each.data_digest for each in later if each.data_digest} | {material.digest}
    tried_here = {each.arm for each in material.refused if each.data_digest == material.digest}
    arms = candidates(arm_of(material.live), material.barred)
    return TriggerInputs(
        exposures=len(fresh),
        windows=max(1, len(digests)),
        judged=probed.rows,
        repaired=probed.repaired,
        broken=probed.broken,
        judging_share=JUDGING_SHARE,
        passes=0,
        refusals=len(material.refused),
        look=1 + len(material.refused),
        arms=len(arms),
        fit_s=probed.seconds / 2,
        gate_s=material.refused[0].seconds if material.refused else FIRST_GATE_S,
        review_minutes=REVIEW_MINUTES,
        data_digest=material.digest,
        arms_left=tuple(arm.name for arm in arms if arm.name not in tried_here),
        rejected_digests=tuple(each.data_digest for each in material.refused if each.data_digest),
    )


def _train(
    workspace: Workspace,
    material: Material,
    verdict: TriggerVerdict,
    numbers: dict[str, float | None],
    fits: int,
    started: float,
) -> Retrain:
    incumbent = arm_of(material.live)
    again = {each.arm for each in material.refused if each.data_digest == material.digest and each.arm}
    trials = try_arms(
        material.base,
        material.rows,
        material.served,
        incumbent=incumbent,
        barred=sorted({*material.barred, *again}),
        task=material.task,
    )
    fits += sum(trial.estimator_fits for trial in trials)
    row = _row(workspace, material.name, "refused", "no arm could be trained on these rows", numbers=numbers)
    if trials[0].score is not None:
        row, judged_fits = _judge(workspace, material, trials[0], numbers)
        fits += judged_fits
    row = row.model_copy(
        update={
            "arms": tuple(trial.as_json() for trial in trials),
            "data_digest": material.digest,
            "estimator_fits": fits,
            "seconds": round(time.perf_counter() - started, 3),
            "numbers": {**numbers, "rows": float(len(material.new)), "held_rows": float(material.held)},
        }
    )
    if row.decision == "refused":
        return _leave(workspace, row)
    return _promote(workspace, material, row, verdict)


def _judge(
    workspace: Workspace, material: Material, best: ArmTrial, numbers: dict[str, float | None]
) -> tuple[Retrain, int]:
    """The best arm before the gate: a row that says promoted or refused, and the fits it took."""
    incumbent = arm_of(material.live)
    judged, fits = judge_rows(
        ARMS[best.arm], material.base, material.rows, material.served, incumbent=incumbent, task=material.task
    )
    stages = gate.judge(judged, policy=workspace.policy, checks=_checks(material), look=1 + len(material.refused))
    decision = "promoted" if gate.passed(stages) else "refused"
    failed = [stage for stage in stages if stage.verdict != "passed"]
    reason = (
        f"{best.arm} passed every stage of the gate"
        if not failed
        else f"{best.arm}: the gate's {failed[0].stage} stage says {failed[0].verdict}: {failed[0].sentence}"
    )
    row = _row(workspace, material.name, decision, reason, to_yes=gate.to_yes(stages), numbers=numbers)
    return row.model_copy(update={"arm": best.arm, "gate": stages, "metrics": _metrics(stages)}), fits


def _checks(material: Material) -> dict[str, bool | None]:
    return {"rows": bool(material.new), "base": bool(material.base), "digest": bool(material.digest)}


def _metrics(stages: Sequence[GateStage]) -> dict[str, float | None]:
    return {f"{stage.stage}_{name}": value for stage in stages for name, value in stage.numbers.items()}


def _promote(workspace: Workspace, material: Material, row: Retrain, verdict: TriggerVerdict) -> Retrain:
    """Fit the winner on all rows, keep it, and serve it; the holds of what it learnt start now."""
    rows = [*material.base, *material.rows]
    model = fit_arm(ARMS[row.arm or ""], material.base, material.rows, task=material.task)
    parent = None if material.live is None else material.live.id
    try:
        made = keep(workspace, material.name, model, row.arm or "", rows, parent=parent)
    except FilmroomError as error:
        return _leave(workspace, row.model_copy(update={"decision": "refused", "reason": str(error)}))
    learnt = tuple(each.row.trace_id for each in material.new if each.row.trace_id is not None)
    done = row.model_copy(
        update={
            "version": made.id,
            "parent": parent,
            "trace_ids": learnt,
            "reason": f"{row.reason}; {verdict.reason}",
            "estimator_fits": row.estimator_fits + model.estimator_fits,
        }
    )
    with workspace.write() as connection:
        corrections = sorted({each.row.correction_id for each in material.new if each.row.correction_id})
        _record(connection, workspace, done, causes=[*corrections, *learnt])
        record_event(connection, workspace.project, at_us=done.at_us, actor=workspace.actor, event="made",
                     subject=made.id, reason=done.reason, causes=[done.id])  # fmt: skip
        promote(connection, workspace, material.name, made, reason=done.reason)
        _settle(connection, workspace, corrections)
    return done


def _settle(connection: Connection, workspace: Workspace, corrections: Sequence[str]) -> None:
    """The corrections that were learnt are applied now, and watched."""
    for correction_id in corrections:
        found = correction(connection, workspace.project, correction_id)
        set_state(connection, correction_id, "applied")
        for change in changes_of(connection, workspace.project, correction_id=correction_id, state="live"):
            start_hold(
                connection, workspace, change.model_copy(update={"applied_us": workspace.clock()}), found.cluster_id
            )


def _row(
    workspace: Workspace,
    name: str,
    decision: str,
    reason: str,
    *,
    to_yes: str = "",
    numbers: dict[str, float | None] | None = None,
) -> Retrain:
    at_us = workspace.clock()
    return Retrain(
        project=workspace.project,
        id=derived_id("ret", workspace.project, name, workspace.turn_id, str(at_us)),
        model=name,
        at_us=at_us,
        decision=decision,
        reason=reason,
        to_yes=to_yes,
        numbers=numbers or {},
    )


def _leave(workspace: Workspace, row: Retrain) -> Retrain:
    with workspace.write() as connection:
        _record(connection, workspace, row, causes=[])
    return row


def _record(connection: Connection, workspace: Workspace, row: Retrain, *, causes: Sequence[str]) -> None:
    put_retrain(connection, row)
    record_event(
        connection,
        workspace.project,
        at_us=row.at_us,
        actor=workspace.actor,
        event=row.decision,
        subject=row.id,
        reason=row.reason,
        causes=causes,
        detail={"model": row.model, "arm": row.arm, "profile": workspace.policy.profile},
    )
