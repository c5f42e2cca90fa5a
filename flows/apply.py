"""Apply: an approved correction becomes a version, a release and a change that can be taken back."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

from flows.retire import end_retired
from flows.targets import FLOWS
from flows.targets.contract import Served
from flows.targets.policies import check_tools
from flows.watch import baseline
from flows.workspace import Workspace
from models.conflicts import over_budget
from store.changes import put_change, put_hold
from store.corrections import set_state
from store.errors import NotAllowed, Refused
from store.failures import cluster
from store.ledger import record_event
from store.records import TARGETS, Change, Correction, Hold, Operation, Proposal, Release, Rule
from store.releases import live_release, move_live, version


def apply_correction(
    connection: Connection,
    workspace: Workspace,
    correction: Correction,
    *,
    reviewer: str,
    cause: str,
    measured: bool = False,
) -> Change:
    """Apply the correction's proposal and make it live, in the caller's transaction; its hold starts.

    `cause`: the review that approved it. `measured`: a replay showed that it repairs; else it is on probation.
    Raises NotAllowed without a complete proposal, Refused where a named check refuses.
    """
    proposal = _complete(correction)
    change = apply_operations(
        connection,
        workspace.acting(actor=reviewer),
        proposal.operations,
        correction_id=correction.id,
        reason=proposal.summary,
        causes=[cause, correction.id],
        measured=measured,
    )
    set_state(connection, correction.id, "approved" if proposal.target == "weights" else "applied")
    if proposal.target != "weights" and _is_watched(proposal.operations):
        start_hold(connection, workspace, change, correction.cluster_id)
    return change


def apply_operations(
    connection: Connection, workspace: Workspace, operations: Sequence[Operation], *, correction_id: str, reason: str,
    causes: Sequence[str], measured: bool = False,
) -> Change:  # fmt: skip
    """Apply the deltas of one target and make them live, in the caller's transaction. Raises Refused where a check refuses,
    NotAllowed for a tool or argument that a person named and `[agent] tools` does not have."""
    target = operations[0].target
    if target in ("context", "tooling"):
        check_tools(operations, workspace.tools, by_hand=not correction_id)
    now_us = workspace.clock()
    current = live_release(connection, workspace.project)
    if target == "context":
        _check_budget(connection, workspace, current, operations)
    served = FLOWS[target].apply(connection, current, operations, correction_id=correction_id, now_us=now_us)
    release = serve(connection, current, served, actor=workspace.actor, reason=reason)
    change = Change(
        project=workspace.project,
        correction_id=correction_id,
        target=target,
        operations=tuple(operations),
        before=served.before,
        after=served.after,
        release_id=release.id,
        applied_us=now_us,
        actor=workspace.actor,
        probation=target != "weights" and not measured,
    )
    put_change(connection, change)
    _record(connection, workspace, change, reason, causes)
    retired = {each.key for each in operations if each.verb == "retire"}
    if retired:
        end_retired(connection, workspace, retired, change)
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


def no_place(correction_id: str) -> str:
    """Why a correction without a target cannot be approved, and what can be done with it."""
    return (
        f"{correction_id} has no place yet, so there is nothing to approve: "
        f"`filmroom review reroute {correction_id} --to PLACE` sends it to {', '.join(TARGETS)}; or reject it"
    )


def _complete(correction: Correction) -> Proposal:
    if correction.proposal is None:
        raise NotAllowed(no_place(correction.id))
    if correction.proposal.needs_answer:
        raise NotAllowed(f"{correction.id} needs an answer first: {correction.proposal.needs_answer}")
    return correction.proposal


def _is_watched(operations: Sequence[Operation]) -> bool:
    """Whether something changes that should make a failure stop. A ticket tells somebody, and is opened again when the
    failure comes back after it was resolved; a retirement ends what did not work."""
    return any(operation.verb not in ("ticket_open", "ticket_resolve", "retire") for operation in operations)


def _check_budget(
    connection: Connection, workspace: Workspace, current: Release, operations: Sequence[Operation]
) -> None:
    document: Any = version(connection, current.context).content
    gone = {each.key for each in operations if each.verb == "retire"}
    rules = [Rule(**each) for each in document["rules"] if each["id"] not in gone]
    for operation in operations:
        if operation.verb == "retire" or "action" not in operation.value:
            continue
        rule = Rule(id=operation.key, **operation.value)
        policy = workspace.policy
        why = over_budget(rule, rules, most_rules=policy.context_rules, most_tokens=policy.context_tokens)
        if why is not None:
            raise Refused(f"the budget of the context is used up: {why}")


def _record(connection: Connection, workspace: Workspace, change: Change, reason: str, causes: Sequence[str]) -> None:
    record_event(
        connection,
        workspace.project,
        at_us=change.applied_us,
        actor=change.actor,
        event="applied",
        subject=change.id,
        reason=reason,
        causes=causes,
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
