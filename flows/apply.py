"""Apply: an approved correction becomes a version, a release and a change that can be taken back."""

from sqlalchemy import Connection

from flows.targets import FLOWS
from flows.targets.contract import Served
from flows.watch import baseline
from flows.workspace import Workspace
from store.changes import put_change, put_hold
from store.corrections import set_state
from store.errors import NotAllowed
from store.failures import cluster
from store.ledger import record_event
from store.records import Change, Correction, Hold, Proposal, Release
from store.releases import live_release, move_live


def apply_correction(
    connection: Connection, workspace: Workspace, correction: Correction, *, reviewer: str, cause: str
) -> Change:
    """Apply the correction's proposal and make it live, in the caller's transaction; its hold starts.

    `cause`: the review that approved it. Raises NotAllowed without a complete proposal, Refused where a named check refuses.
    """
    proposal = _complete(correction)
    now_us = workspace.clock()
    current = live_release(connection, workspace.project)
    served = FLOWS[proposal.target].apply(
        connection, current, proposal.operations, correction_id=correction.id, now_us=now_us
    )
    release = serve(connection, current, served, actor=reviewer, reason=proposal.summary)
    change = Change(
        project=workspace.project,
        correction_id=correction.id,
        target=proposal.target,
        operations=proposal.operations,
        before=served.before,
        after=served.after,
        release_id=release.id,
        applied_us=now_us,
        actor=reviewer,
        probation=proposal.target != "weights",
    )
    put_change(connection, change)
    set_state(connection, correction.id, "approved" if proposal.target == "weights" else "applied")
    _record(connection, workspace, change, proposal, cause)
    if proposal.target != "weights":
        start_hold(connection, workspace, change, correction.cluster_id)
    return change


def serve(connection: Connection, current: Release, served: Served, *, actor: str, reason: str) -> Release:
    """Make the release live; the current one stays where nothing that is served has changed."""
    if served.release.id == current.id:
        return current
    release = served.release.model_copy(update={"actor": actor, "reason": reason})
    move_live(connection, current, release)
    return release


def start_hold(connection: Connection, workspace: Workspace, change: Change, cluster_id: str) -> Hold:
    """Watch whether the cluster's failure stops recurring from now on."""
    found = cluster(connection, cluster_id)
    hold = Hold(
        project=workspace.project,
        change_id=change.id,
        cluster_id=cluster_id,
        baseline=None if found is None else baseline(connection, change, found),
        since_us=change.applied_us,
        updated_us=change.applied_us,
    )
    put_hold(connection, hold)
    return hold


def _complete(correction: Correction) -> Proposal:
    if correction.proposal is None:
        raise NotAllowed(f"{correction.id} has no place yet: `filmroom review reroute {correction.id} --to TARGET`")
    if correction.proposal.needs_answer:
        raise NotAllowed(f"{correction.id} needs an answer first: {correction.proposal.needs_answer}")
    return correction.proposal


def _record(connection: Connection, workspace: Workspace, change: Change, proposal: Proposal, cause: str) -> None:
    record_event(
        connection,
        workspace.project,
        at_us=change.applied_us,
        actor=change.actor,
        event="applied",
        subject=change.id,
        reason=proposal.summary,
        causes=[cause, change.correction_id],
        detail={"target": change.target, "probation": change.probation},
    )
    for effect in dict.fromkeys((change.after, change.release_id)):
        if effect.startswith(("ver_", "rel_")) and change.before != change.after:
            record_event(
                connection,
                workspace.project,
                at_us=change.applied_us,
                actor=change.actor,
                event="made",
                subject=effect,
                causes=[change.id],
            )
