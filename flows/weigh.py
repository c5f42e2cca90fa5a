"""The trigger: is the evidence enough, and does a retrain pay? Either answer is a row."""

import time

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
    evidence = _evidence(workspace, data)
    if not evidence.ok:
        return leave_row(
            workspace,
            new_row(workspace, name, "skipped", evidence.sentence, to_yes=evidence.to_yes, numbers=evidence.numbers),
        )
    probed = probe(data.base, data.rows, data.served, incumbent=arm_of(data.live), task=data.task)
    verdict = evaluate(_inputs(data, probed), policy=workspace.policy, prices=workspace.settings.prices)
    numbers = {**evidence.numbers, **verdict.numbers}
    if not verdict.train:
        row = new_row(workspace, name, "skipped", verdict.reason, to_yes=verdict.to_yes, numbers=numbers)
        return leave_row(workspace, row.model_copy(update={"estimator_fits": probed.estimator_fits,
                                                        "data_digest": data.digest}))  # fmt: skip
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
    trained = [each for each in data.history if each.decision == "refused"]
    since = trained[0].at_us if trained else None
    fresh = [each for each in data.new if since is None or (each.row.at_us or since + 1) > since]
    later = [each for each in data.history if since is None or each.at_us > since]
    digests = {each.data_digest for each in later if each.data_digest} | {data.digest}
    tried_here = {each.arm for each in data.refused if each.data_digest == data.digest}
    arms = candidates(arm_of(data.live), data.barred)
    return TriggerInputs(
        exposures=len(fresh),
        windows=max(1, len(digests)),
        judged=probed.rows,
        repaired=probed.repaired,
        broken=probed.broken,
        judging_share=JUDGING_SHARE,
        passes=0,
        refusals=len(data.refused),
        look=1 + len(data.refused),
        arms=len(arms),
        fit_s=probed.seconds / 2,
        gate_s=data.refused[0].seconds if data.refused else FIRST_GATE_S,
        review_minutes=REVIEW_MINUTES,
        data_digest=data.digest,
        arms_left=tuple(arm.name for arm in arms if arm.name not in tried_here),
        rejected_digests=tuple(each.data_digest for each in data.refused if each.data_digest),
    )
