"""Undo: one command for all four targets. Exactly the named change is taken back; what came after it stays."""

from sqlalchemy import Connection

from flows.apply import serve
from flows.retire import bring_back
from flows.router_undo import is_router, next_of, take_back
from flows.serving import roll_back
from flows.targets import FLOWS
from flows.workspace import Workspace
from models.write_gate import stale_ids
from store.changes import change, changes_of, set_change_state
from store.corrections import attempts, correction, set_state
from store.errors import NotAllowed, NotFound, Refused
from store.facts import facts_at
from store.failures import mark_no_single_place
from store.ids import changes_of_entry, whole_id
from store.ledger import causes_of, record_event
from store.records import Change, Record, Release, Retrain
from store.releases import live_release, release
from store.retrains import promotion

MAX_ATTEMPTS = 3
MAX_TARGETS = 2


class Undone(Record):
    """What an undo did."""

    undone: tuple[str, ...]
    """The changes that were taken back, or the correction that was opened again."""
    release: str
    """The release served now."""
    next: str
    rests_on_it: tuple[str, ...] = ()
    """What depended on it: facts that are stale now."""


def undo(workspace: Workspace, any_id: str, *, reason: str = "") -> Undone:
    """Take back the change, the change that this correction, review, version or release made, or the version of the router.

    A shortened id will do where it is the only one."""
    with workspace.write() as connection:
        any_id = whole_id(connection, workspace.project, any_id)
        if is_router(any_id):
            take_back(connection, workspace, any_id, reason=reason)
            live = live_release(connection, workspace.project)
            return Undone(undone=(any_id,), release=live.id, next=next_of(connection, workspace))
        promoted = promotion(connection, workspace.project, any_id)
        if promoted is not None:
            return _demote(connection, workspace, promoted, reason)
        found = _changes(connection, workspace, any_id)
        if not found:
            return _reopen(connection, workspace, any_id, reason)
        rests = tuple(id_ for each in found for id_ in facts_resting_on(connection, workspace, each))
        for each in reversed(found):
            revert_change(connection, workspace, each, reason=reason)
        now = live_release(connection, workspace.project)
    again = (
        "its cluster is routed again in the next turn" if any(each.correction_id for each in found) else "nothing waits"
    )
    return Undone(undone=tuple(each.id for each in found), release=now.id, next=again, rests_on_it=rests)


def facts_resting_on(connection: Connection, workspace: Workspace, found: Change) -> list[str]:
    """The facts in force that were concluded from what this change made: without it they are stale."""
    made = {operation.key for operation in found.operations} if found.target == "memory" else set()
    if not made:
        return []
    position = live_release(connection, workspace.project).memory
    known = facts_at(connection, workspace.project, position, workspace.clock())
    left = [fact for fact in known if fact.id not in made]
    return sorted(stale_ids(left) - stale_ids(known))


def _demote(connection: Connection, workspace: Workspace, promoted: Retrain, reason: str) -> Undone:
    live = live_release(connection, workspace.project).models.get(promoted.model)
    if live != promoted.version:
        raise NotAllowed(
            f"{promoted.version} is not the live version of {promoted.model} ({live} is): undo that one first"
        )
    row = roll_back(connection, workspace, promoted, reason=reason)
    now = live_release(connection, workspace.project)
    return Undone(undone=(promoted.id,), release=now.id, next=f"`filmroom history` shows it as {row.id}")


def revert_change(connection: Connection, workspace: Workspace, found: Change, *, reason: str) -> Release:
    """Take one live change back in the caller's transaction; its correction counts as an attempt that ended."""
    if found.state == "reverted":
        raise NotAllowed(f"{found.id} was taken back already")
    _refuse_built_on(connection, found)
    now_us = workspace.clock()
    current = live_release(connection, workspace.project)
    served = FLOWS[found.target].revert(connection, current, found, now_us=now_us)
    now = serve(connection, current, served, actor=workspace.actor, reason=reason or f"undo {found.id}")
    set_change_state(connection, found.id, "reverted")
    bring_back(connection, workspace, found)
    if found.correction_id:
        set_state(connection, found.correction_id, "reverted")
        _give_up_if_exhausted(connection, workspace, found.correction_id)
    record_event(
        connection,
        workspace.project,
        at_us=now_us,
        actor=workspace.actor,
        event="reverted",
        subject=found.id,
        reason=reason,
        detail={"release": now.id},
    )
    if now.id != current.id:
        record_event(connection, workspace.project, at_us=now_us, actor=workspace.actor, event="made", subject=now.id,
                     reason=reason, causes=[found.id])  # fmt: skip
    return now


def _refuse_built_on(connection: Connection, found: Change) -> None:
    """Raises Refused, naming all of them, newest first, where later live changes are about the same entry, be it to say the
    same."""
    if found.target not in ("context", "tooling"):
        return
    keys = {operation.key for operation in found.operations}
    at = release(connection, found.release_id).number
    rests = [
        other
        for other in changes_of(connection, found.project, state="live")
        if other.target == found.target
        and release(connection, other.release_id).number > at
        and keys & {operation.key for operation in other.operations}
    ]
    if rests:
        named = ", then ".join(f"{each.id} ({each.correction_id or 'by hand'})" for each in reversed(rests))
        raise Refused(f"what rests on {found.id} comes first: `filmroom undo` of {named}")


def _changes(connection: Connection, workspace: Workspace, any_id: str) -> list[Change]:
    """The live changes an id stands for, oldest first."""
    project = workspace.project
    prefix = any_id.split("_", 1)[0]
    if prefix == "chg":
        return [change(connection, project, any_id)]
    if prefix == "rev":
        correction_id = _correction_of_review(connection, project, any_id)
        return changes_of(connection, project, correction_id=correction_id, state="live")
    if prefix == "cor":
        correction(connection, project, any_id)
        return changes_of(connection, project, correction_id=any_id, state="live")
    if prefix == "ver":
        found = changes_of(connection, project, after=any_id, state="live")
    elif prefix == "rel":
        found = changes_of(connection, project, release_id=any_id, state="live")
    elif made := changes_of_entry(connection, project, any_id):
        raise NotFound(f"{any_id}: which of its changes? `filmroom undo {made[-1]}` takes back the last")
    else:
        raise NotFound(f"{any_id}: undo takes the id of a change, correction, review, version or release")
    if not found:
        raise NotFound(
            f"{any_id} made no change that is live; `filmroom rollback RELEASE` goes back to a whole release"
        )
    return found


def _correction_of_review(connection: Connection, project: str, review_id: str) -> str:
    causes = [each for each in causes_of(connection, project, review_id) if each.startswith("cor_")]
    if not causes:
        raise NotFound(f"no review {review_id}")
    return causes[0]


def _reopen(connection: Connection, workspace: Workspace, correction_id: str, reason: str) -> Undone:
    """A rejected or deferred correction, or one whose pull request is not merged, goes back to the queue."""
    found = correction(connection, workspace.project, correction_id)
    if found.state not in ("rejected", "deferred", "approved"):
        raise NotAllowed(f"{found.id} is {found.state}: there is nothing to undo")
    set_state(connection, found.id, "proposed")
    record_event(connection, workspace.project, at_us=workspace.clock(), actor=workspace.actor, event="reopened",
                 subject=found.id, reason=reason)  # fmt: skip
    now = live_release(connection, workspace.project)
    return Undone(undone=(found.id,), release=now.id, next="it waits for review again")


def _give_up_if_exhausted(connection: Connection, workspace: Workspace, correction_id: str) -> None:
    found = correction(connection, workspace.project, correction_id)
    failed = [each for each in attempts(connection, found.cluster_id) if each.state == "reverted"]
    targets = {each.proposal.target for each in failed if each.proposal is not None}
    if len(failed) >= MAX_ATTEMPTS or len(targets) >= MAX_TARGETS:
        mark_no_single_place(connection, found.cluster_id)
        record_event(connection, workspace.project, at_us=workspace.clock(), actor=workspace.actor,
                     event="no single place", subject=found.cluster_id,
                     reason=f"{len(failed)} attempts in {len(targets)} targets ended")  # fmt: skip
