"""Review: a person's verdict on a route. Approving applies at once unless a named check refuses."""

import difflib
from contextlib import suppress
from typing import Any

from pydantic import JsonValue
from sqlalchemy import Connection

from flows.apply import apply_correction, no_place
from flows.replay import replay_correction, tried
from flows.route import CASES, SATISFIED, propose
from flows.targets import FLOWS
from flows.training import labels_of
from flows.workspace import Workspace
from models.features.material import Material
from store.corrections import OPEN, correction, put_correction, put_review, set_state
from store.errors import NotAllowed, Refused
from store.failures import cases_of, cluster
from store.ledger import record_event
from store.records import Change, Correction, Proposal, Record, Review, Target, Verdict
from store.releases import live_release
from store.traces import episodes, satisfied_ids


class Reviewed(Record):
    """What a verdict did."""

    correction: str
    verdict: Verdict
    state: str
    change: str | None = None
    version: str | None = None
    """The target's version after the change; for memory its position."""
    live: bool = False
    """Whether the running program gets it now; training data waits for a retrain, but where a patch serves it."""
    model: str | None = None
    """The model whose training data it joined."""
    undo: str | None = None
    """The command that takes it back."""
    next: str = ""
    """What happens next."""


def approve(
    workspace: Workspace, correction_id: str, *, answer: JsonValue = None, reason: str = "", to: Target | None = None
) -> Reviewed:
    """Accept the correction, where it is or in the target `to`, completed by `answer` where it needs one.

    Where the settings name a replay hook, the change is tried first, unless that was done already.
    """
    _replay_first(workspace, correction_id, answer, to)
    done = workspace.decided(
        lambda connection: _approve(connection, workspace, correction_id, answer=answer, reason=reason, to=to)
    )
    return _patched(workspace, done)


def reroute(
    workspace: Workspace, correction_id: str, *, to: Target, answer: JsonValue = None, reason: str = ""
) -> Reviewed:
    """Send the correction to another target. With what that target needs it is applied at once, else it waits for the answer."""
    _replay_first(workspace, correction_id, answer, to)
    done = workspace.decided(
        lambda connection: _reroute(connection, workspace, correction_id, to=to, answer=answer, reason=reason)
    )
    return _patched(workspace, done)


def reject(workspace: Workspace, correction_id: str, *, reason: str = "") -> Reviewed:
    """Nothing is to be corrected here."""
    return _close(workspace, correction_id, "reject", reason, "it comes back only if its cluster grows by half")


def defer(workspace: Workspace, correction_id: str, *, reason: str = "") -> Reviewed:
    """Not now: it stays in the queue, behind the others."""
    return _close(workspace, correction_id, "defer", reason, "it waits at the end of the queue")


def _patched(workspace: Workspace, done: Reviewed) -> Reviewed:
    """What was approved for a large model's weights is learnt at once, where a patch of the touched classes passes its gate."""
    if done.model is None or done.state != "approved":
        return done
    from flows.patch import patch

    row = patch(workspace, done.model, done.correction)
    if row is None:
        return done
    if row.decision == "promoted":
        served = {"state": "applied", "live": True, "next": f"{row.version} is served: {row.reason}"}
        return done.model_copy(update=served)
    return done.model_copy(update={"next": f"{row.reason}; {done.next}"})


def _replay_first(workspace: Workspace, correction_id: str, answer: JsonValue, to: Target | None) -> None:
    """Try the change as it would be applied; what it lacks, or what cannot be applied, is said by the approval itself."""
    if workspace.settings.agent.replay is None:
        return
    with workspace.store.read() as connection:
        found = _open(connection, workspace, correction_id)
        moved = found if to is None else _moved(connection, workspace, found, to)
    if moved.proposal is None or (moved.proposal.needs_answer and answer is None):
        return
    completed = FLOWS[moved.proposal.target].answered(moved.proposal, answer, reviewer=workspace.actor)
    with suppress(Refused):
        replay_correction(workspace, correction_id, operations=completed.operations)


def _approve(
    connection: Connection,
    workspace: Workspace,
    correction_id: str,
    *,
    answer: JsonValue,
    reason: str,
    to: Target | None,
) -> Reviewed:
    found = _open(connection, workspace, correction_id)
    verdict: Verdict = "approve" if to is None else "reroute"
    if to is not None:
        found = _moved(connection, workspace, found, to)
    if found.proposal is None:
        raise NotAllowed(no_place(found.id))
    if isinstance(answer, str) and answer.strip() and not answer.strip(".\N{HORIZONTAL ELLIPSIS} "):
        raise NotAllowed(f"{answer.strip()!r} stands for the answer: write the answer itself in its place")
    completed = FLOWS[found.proposal.target].answered(found.proposal, answer, reviewer=workspace.actor)
    found = found.model_copy(update={"proposal": completed, "state": "approved"})
    put_correction(connection, found)
    review = _say(connection, workspace, found, verdict=verdict, target=completed.target, reason=reason, answer=answer)
    try:
        shown = tried(connection, found, completed.operations)
    except Refused as error:
        raise Refused(f"{found.id} is not applied, the replay refuses: {error}") from error
    measured = shown is not None and shown.verdict == "repairs"
    try:
        change = apply_correction(
            connection, workspace, found, reviewer=workspace.actor, cause=review.id, measured=measured
        )
    except Refused as error:
        raise Refused(f"{found.id} is not applied, the conflict check refuses: {error}") from error
    return _applied(connection, workspace, found, verdict, change)


def _reroute(
    connection: Connection,
    workspace: Workspace,
    correction_id: str,
    *,
    to: Target,
    answer: JsonValue,
    reason: str,
) -> Reviewed:
    found = _open(connection, workspace, correction_id)
    moved = _moved(connection, workspace, found, to)
    if moved.proposal is not None and (answer is not None or moved.proposal.needs_answer is None):
        return _approve(connection, workspace, correction_id, answer=answer, reason=reason, to=to)
    put_correction(connection, moved)
    _say(connection, workspace, found, verdict="reroute", target=to, reason=reason)
    needed = moved.proposal.needs_answer if moved.proposal else ""
    return Reviewed(
        correction=found.id,
        verdict="reroute",
        state="proposed",
        next=f"it needs an answer: {needed}; then `filmroom review approve {found.id} --answer ...`",
    )


def _applied(
    connection: Connection, workspace: Workspace, found: Correction, verdict: Verdict, change: Change
) -> Reviewed:
    learns = change.target == "weights"
    live = live_release(connection, workspace.project)
    return Reviewed(
        correction=found.id,
        verdict=verdict,
        state="approved" if learns else "applied",
        change=change.id,
        version=change.after,
        live=not learns and live.id == change.release_id,
        model=str(change.operations[0].value["model"]) if learns else None,
        undo=f"filmroom undo {change.id}",
        next=_unknown_label(workspace, change) + "the next turn weighs whether to retrain"
        if learns
        else f"{'on probation' if change.probation else 'repaired its cases in replay'}: the hold test watches whether it recurs",
    )


def _unknown_label(workspace: Workspace, change: Change) -> str:
    """A word on labels that the model cannot say yet: a class of its own, or a slip."""
    name = str(change.operations[0].value["model"])
    known = labels_of(workspace.settings, name) if name in workspace.settings.weights else set()
    unknown = sorted({str(each.value["label"]) for each in change.operations} - known)
    if not known or not unknown:
        return ""
    near = difflib.get_close_matches(unknown[0], sorted(known), 1)
    meant = f", and near to `{near[0]}`" if near else ""
    return f"`{unknown[0]}` is a new class of {name}{meant}: undo it if that was a slip; "


def _moved(connection: Connection, workspace: Workspace, found: Correction, to: Target) -> Correction:
    """The correction with the proposal of another target."""
    if found.proposal is not None and found.proposal.target == to:
        return found
    each = cluster(connection, found.cluster_id)
    if each is None:
        raise NotAllowed(f"the cluster of {found.id} is gone")
    deployment = workspace.deployment(connection)
    if to not in deployment.targets:
        raise NotAllowed(f"this deployment has no {to}: it has {', '.join(deployment.targets)}")
    neighbours = episodes(connection, satisfied_ids(connection, workspace.project, limit=SATISFIED))
    cases = tuple(cases_of(connection, each.id, CASES))
    material = Material(cases=cases, satisfied=tuple(neighbours), deployment=deployment, policy=workspace.policy)
    proposal = propose(each, material, to)
    if proposal is not None and to == "weights" and not _is_model(workspace, proposal):
        models = ", ".join(workspace.settings.weights)
        raise NotAllowed(
            f"no model of the settings answered there (`{each.fingerprint.component}` did): models are {models}"
        )
    return found.model_copy(update={"proposal": proposal})


def _is_model(workspace: Workspace, proposal: Proposal) -> bool:
    return all(each.value["model"] in workspace.settings.weights for each in proposal.operations)


def _open(connection: Connection, workspace: Workspace, correction_id: str) -> Correction:
    found = correction(connection, workspace.project, correction_id)
    if found.state == "reverted":
        raise NotAllowed(f"{found.id} was taken back; its cluster is routed again in the next turn")
    if found.state not in OPEN:
        raise NotAllowed(f"{found.id} is already {found.state}: `filmroom undo {found.id}` takes that back")
    return found


def _close(workspace: Workspace, correction_id: str, verdict: Verdict, reason: str, following: str) -> Reviewed:
    with workspace.write() as connection:
        found = _open(connection, workspace, correction_id)
        state: Any = "rejected" if verdict == "reject" else "deferred"
        set_state(connection, found.id, state)
        _say(connection, workspace, found, verdict=verdict, reason=reason)
    return Reviewed(correction=found.id, verdict=verdict, state=state, undo=f"filmroom undo {found.id}", next=following)


def _say(
    connection: Connection,
    workspace: Workspace,
    found: Correction,
    *,
    verdict: Verdict,
    target: Target | None = None,
    reason: str = "",
    answer: JsonValue = None,
) -> Review:
    review = Review(
        project=workspace.project,
        correction_id=found.id,
        verdict=verdict,
        target=target,
        reason=reason,
        answer=answer,
        reviewer=workspace.actor,
        authority=True,
        at_us=workspace.clock(),
    )
    put_review(connection, review)
    record_event(
        connection,
        workspace.project,
        at_us=review.at_us,
        actor=workspace.actor,
        event="reviewed",
        subject=review.id,
        reason=reason,
        causes=[found.id],
        detail={"verdict": verdict, "target": target},
    )
    return review
