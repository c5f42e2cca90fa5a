"""The trigger: is the evidence enough, and does a retrain pay? Either answer is a row."""

import time
from collections import Counter

from flows.candidate import train
from flows.champion import arm_of, found_model
from flows.history import leave_row, new_row
from flows.serving import live_version
from flows.training import training_rows
from flows.training_data import TrainingData, gather
from flows.workspace import Workspace
from models import minimum_evidence
from models.arms import Probe, candidates, probe
from models.minimum_evidence import EvidenceCase, EvidenceVerdict
from models.splits import JUDGING_SHARE
from models.trigger import TriggerInputs, evaluate
from store.errors import FilmroomError
from store.records import Retrain

REVIEW_MINUTES = 10.0
"""A person's time a training: reading the verdict and the labels that were held."""
FIRST_GATE_S = 10.0
"""Seconds of a gate before one was measured."""


def weigh(workspace: Workspace, name: str) -> Retrain:
    """One evaluation of the trigger, and the training where it says so."""
    started = time.perf_counter()
    try:
        if not training_rows(workspace.settings, name):
            return leave_row(workspace, new_row(workspace, name, "skipped", "no training file: there is nothing to refit on",
                                          to_yes=f"set `training` under [weights.{name}]"))  # fmt: skip
        _found_if_new(workspace, name)
        data = gather(workspace, name)
    except FilmroomError as error:
        return leave_row(
            workspace, new_row(workspace, name, "skipped", str(error), to_yes="mend that, then `filmroom run`")
        )
    return weighed(workspace, data, started)


def weighed(workspace: Workspace, data: TrainingData, started: float) -> Retrain:
    """The evaluation over what was gathered: evidence, probe, trigger, and the training where it says so."""
    evidence = _evidence(workspace, data)
    skipped = new_row(
        workspace, data.name, "skipped", evidence.sentence, to_yes=evidence.to_yes, numbers=evidence.numbers
    )
    skipped = skipped.model_copy(update={"data_digest": data.digest})
    if not evidence.ok:
        return leave_row(workspace, skipped)
    probed = probe(data.base, data.rows, data.served, incumbent=arm_of(data.live), task=data.task)
    verdict = evaluate(_inputs(data, probed), policy=workspace.policy, prices=workspace.settings.prices)
    numbers = {**evidence.numbers, **verdict.numbers}
    if not verdict.train:
        said = {"reason": verdict.reason, "to_yes": verdict.to_yes, "numbers": numbers}
        return leave_row(workspace, skipped.model_copy(update={**said, "estimator_fits": probed.estimator_fits}))
    return train(workspace, data, verdict, numbers, probed.estimator_fits, started)


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
        for each in data.new
        if each.failed
    ]
    return minimum_evidence.check(cases, policy=workspace.policy)


def _inputs(data: TrainingData, probed: Probe) -> TriggerInputs:
    counts = Counter(each.decision for each in data.evaluations)
    here = {each.arm for each in data.refused if each.data_digest == data.digest}
    windows = {each.data_digest for each in data.since_training if each.data_digest} | {data.digest}
    arms = candidates(arm_of(data.live), data.barred)
    return TriggerInputs(
        exposures=len(data.unseen),
        windows=len(windows),
        judged=probed.rows,
        repaired=probed.repaired,
        broken=probed.broken,
        slices=probed.slices,
        judging_share=JUDGING_SHARE,
        passes=counts["promoted"],
        refusals=counts["refused"],
        look=1 + len(data.refused),
        arms=len(arms),
        fit_s=probed.seconds / 2,
        gate_s=next((each.seconds for each in data.evaluations if each.arm), FIRST_GATE_S),
        review_minutes=REVIEW_MINUTES,
        data_digest=data.digest,
        arms_left=tuple(arm.name for arm in arms if arm.name not in here),
        rejected_digests=tuple(each.data_digest for each in data.refused if each.data_digest),
    )
