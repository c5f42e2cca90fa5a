"""The trigger: is the evidence enough, and does a retrain pay? Either answer is a row."""

import time
from collections import Counter
from collections.abc import Sequence

from flows.anchoring import is_anchored
from flows.candidate import train
from flows.champion import check_estimator, found_model
from flows.engine import opened_engine
from flows.history import leave_row, new_row
from flows.labels import unknown_step
from flows.serving import live_version
from flows.training import case_rows, training_rows
from flows.training_data import TrainingData, gather
from flows.workspace import Workspace
from models import minimum_evidence
from models.arms import Probe, candidates, probe, probe_learnt
from models.minimum_evidence import EvidenceCase, EvidenceVerdict
from models.out_of_fold import OutOfFold
from models.trigger import TriggerInputs, TriggerVerdict, evaluate, pays_if_it_passes, settled_without_probe
from store.errors import EngineAway, FilmroomError
from store.records import Retrain

FIRST_GATE_S = 10.0
"""Seconds of a gate before one was measured."""


def weigh(workspace: Workspace, name: str) -> Retrain:
    """One evaluation of the trigger, and the training where it says so."""
    started = time.perf_counter()
    try:
        if not training_rows(workspace.settings, name):
            return leave_row(workspace, new_row(workspace, name, "skipped", "no training file: there is nothing to refit on",
                                          to_yes=f"set `training` under [weights.{name}]"))  # fmt: skip
        case_rows(workspace.settings, name, "golden")  # a file that is missing is said before anything is trained
        check_estimator(workspace, name)
        _found_if_new(workspace, name)
        data = gather(workspace, name)
    except FilmroomError as error:
        return leave_row(
            workspace, new_row(workspace, name, "skipped", str(error), to_yes="mend that, then `filmroom run`")
        )
    try:
        return weighed(workspace, data, started)
    except EngineAway as error:  # nothing is written before a candidate has passed
        row = new_row(
            workspace, name, "skipped", str(error), to_yes="mend that or take the line out, then `filmroom run`"
        )
        return leave_row(workspace, row.model_copy(update={"data_digest": data.digest}))


def weighed(workspace: Workspace, data: TrainingData, started: float) -> Retrain:
    """The evaluation over what was gathered: evidence, probe, trigger, and the training where it says so.

    Raises EngineAway where the fits cannot be run.
    """
    evidence = _evidence(workspace, data)
    skipped = new_row(
        workspace, data.name, "skipped", evidence.sentence, to_yes=evidence.to_yes, numbers=evidence.numbers
    )
    skipped = skipped.model_copy(update={"data_digest": data.digest})
    if not evidence.ok:
        return leave_row(workspace, skipped)
    known = _inputs(workspace, data)
    settled = settled_without_probe(known, policy=workspace.policy, prices=workspace.settings.prices)
    if settled is not None:
        return leave_row(workspace, _told(skipped, settled, evidence))
    with opened_engine(workspace.settings.engine, workspace.engine) as mapper:
        out_of_fold = OutOfFold(data.base, data.rows, data.task, mapper=mapper)
        return _probed(workspace, data, out_of_fold, known, evidence, skipped, started)


def _probed(
    workspace: Workspace,
    data: TrainingData,
    out_of_fold: OutOfFold,
    known: TriggerInputs,
    evidence: EvidenceVerdict,
    skipped: Retrain,
    started: float,
) -> Retrain:
    """The trigger with what a probe shows, and the training where it says so."""
    found = _with_probe(known, data, probe(out_of_fold, data.served, incumbent=data.incumbent), out_of_fold.folds)
    if pays_if_it_passes(found, policy=workspace.policy, prices=workspace.settings.prices):
        learnt = probe_learnt(out_of_fold, incumbent=data.incumbent) if found.learnt_rows else (0, 0)
        found = found.model_copy(update={"learnt": learnt})
    verdict = evaluate(found, policy=workspace.policy, prices=workspace.settings.prices)
    if not verdict.train:
        told = _told(skipped, verdict, evidence)
        return leave_row(workspace, told.model_copy(update={"estimator_fits": out_of_fold.estimator_fits}))
    return train(workspace, data, out_of_fold, verdict, {**evidence.numbers, **verdict.numbers}, started)


def _told(skipped: Retrain, verdict: TriggerVerdict, evidence: EvidenceVerdict) -> Retrain:
    numbers = {**evidence.numbers, **verdict.numbers}
    return skipped.model_copy(update={"reason": verdict.reason, "to_yes": verdict.to_yes, "numbers": numbers})


def _found_if_new(workspace: Workspace, name: str) -> None:
    """Where filmroom serves the model itself, its first version comes from the base set."""
    if workspace.settings.weights[name].champion != "ours":
        return
    with workspace.store.read() as connection:
        live = live_version(connection, workspace.project, name)
    if live is None:
        found_model(workspace, name)


def _evidence(workspace: Workspace, data: TrainingData) -> EvidenceVerdict:
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
        for each in data.evidence
    ]
    found = minimum_evidence.check(cases, policy=workspace.policy)
    if not cases and not data.new:
        with workspace.store.read() as connection:
            unknown = unknown_step(connection, workspace.project, data.name)
        if unknown is not None:
            return found.model_copy(
                update={"ok": False, "sentence": unknown, "to_yes": f"name [weights.{data.name}] as the log does"}
            )
    return found if found.ok else _said_in_full(found, data, cases)


def _said_in_full(found: EvidenceVerdict, data: TrainingData, cases: Sequence[EvidenceCase]) -> EvidenceVerdict:
    """Too little evidence, with why some labels ask for nothing, and what to do where there is none at all."""
    sentence, to_yes = found.sentence, found.to_yes
    if not cases:
        sentence, to_yes = (
            "no approved failure waits to be learnt",
            f"`filmroom review list` shows what could be; {to_yes}",
        )
    if data.capped:
        sentence += f"; {data.capped} more labels are over the cap of one source"
    known_then = sum(each.failed for each in data.new) - len(cases)
    if known_then and data.taken_back:
        back = data.taken_back[0].version
        sentence = f"{back} was taken back, and the {known_then} failures known then ask for no retrain; beside them {sentence}"
        to_yes += f"; or `filmroom rollback` to a release with {back} serves it again"
    return found.model_copy(update={"sentence": sentence, "to_yes": to_yes})


def _inputs(workspace: Workspace, data: TrainingData) -> TriggerInputs:
    """What is known before a probe, in the best case: every failure repaired, nothing broken, no machine time."""
    counts = Counter(each.decision for each in data.full)
    here = {each.arm for each in data.refused if each.data_digest == data.digest}
    arms = candidates(data.incumbent, data.task, data.barred)
    asked = workspace.policy.reviewer is None
    return TriggerInputs(
        exposures=len(data.unseen),
        windows=data.windows,
        judged=len(data.new),
        repaired=sum(each.failed for each in data.new),
        broken=0,
        learnt_rows=data.learnt_rows,
        anchored_right=sum(not each.failed for each in data.new) if is_anchored(workspace, data) else None,
        passes=counts["promoted"],
        refusals=counts["refused"],
        look=data.look,
        arms=len(arms),
        fit_s=0.0,
        gate_s=0.0,
        held_labels=data.held if asked else 0,
        data_digest=data.digest,
        arms_left=tuple(arm.name for arm in arms if arm.name not in here),
        rejected_digests=tuple(each.data_digest for each in data.refused if each.data_digest),
    )


def _with_probe(known: TriggerInputs, data: TrainingData, probed: Probe, folds: int) -> TriggerInputs:
    return known.model_copy(
        update={
            "repaired": probed.repaired,
            "broken": probed.broken,
            "slices": probed.slices,
            "fit_s": probed.seconds / folds,
            "gate_s": next((each.seconds for each in data.full if each.gate), FIRST_GATE_S),
        }
    )
