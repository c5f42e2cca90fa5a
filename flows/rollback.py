"""Rollback: a whole earlier release is served again. What it holds is live, and what it does not hold is taken back."""

from typing import Literal

from sqlalchemy import Connection

from flows.apply import serve
from flows.learnt import settle_anew
from flows.router_undo import go_back, next_of
from flows.serving import leave_rolled_back, live_version
from flows.targets.contract import Served
from flows.targets.documents import content, entries_of, following
from flows.undo import Undone
from flows.workspace import Workspace
from store.changes import changes_of, set_change_state
from store.corrections import OPEN, attempts, correction, set_state
from store.errors import NotAllowed, NotFound
from store.facts import append_fact, facts_at
from store.ids import whole_id
from store.ledger import record_event
from store.records import Change, Correction, Release
from store.releases import live_release, release


def rollback(workspace: Workspace, release_id: str, *, reason: str) -> Undone:
    """Serve the state of an earlier release again, as a new release; memory goes back by appending, never by cutting."""
    with workspace.write() as connection:
        now_us = workspace.clock()
        release_id = whole_id(connection, workspace.project, release_id)
        wanted = release(connection, release_id)
        current = live_release(connection, workspace.project)
        if wanted.project != workspace.project:
            raise NotFound(f"no release {release_id} in project {workspace.project}")
        if wanted.id == current.id:
            raise NotAllowed(f"{release_id} is live: there is nothing to roll back")
        position = _restore_memory(connection, current, wanted, now_us)
        if position == current.memory and _serves(current) == _serves(wanted):
            raise NotAllowed(
                f"{current.id}, which is live, serves what {release_id} did: there is nothing to roll back"
            )
        new = following(
            current, now_us, context=wanted.context, tooling=wanted.tooling, models=wanted.models, memory=position
        )
        why = reason or f"rollback to {release_id}"
        now = serve(connection, current, Served(current.id, new.id, new), actor=workspace.actor, reason=why)
        record_event(connection, workspace.project, at_us=now_us, actor=workspace.actor, event="rolled back",
                     subject=now.id, reason=reason, causes=[wanted.id])  # fmt: skip
        _restate(connection, workspace, now)
        for name in sorted({*current.models, *now.models}):
            before, again = current.models.get(name), now.models.get(name)
            if before != again:
                served = f"serves {again} again" if again else "serves no version of it"
                leave_rolled_back(connection, workspace, name, now, f"{served}: {why}", before=before, cause=now.id)
    return Undone(undone=(current.id,), release=now.id, next=f"`filmroom rollback {current.id}` goes forward again")


def rollback_router(workspace: Workspace, wanted: str, *, reason: str) -> Undone:
    """Let an earlier version of the router, or `rules`, decide again; the release stays. Raises NotFound, NotAllowed."""
    with workspace.write() as connection:
        taken = go_back(connection, workspace, wanted, reason=reason)
        live = live_release(connection, workspace.project)
        return Undone(undone=(taken,), release=live.id, next=next_of(connection, workspace))


def _serves(value: Release) -> tuple[str, str, dict[str, str]]:
    return value.context, value.tooling, value.models


def _restate(connection: Connection, workspace: Workspace, now: Release) -> None:
    """After a rollback: a change is live where the release holds all it made, and reverted where it does not; what a model has
    learnt is applied."""
    for name in workspace.settings.weights:
        settle_anew(connection, workspace, name, live_version(connection, workspace.project, name))
    for each in changes_of(connection, workspace.project):
        if each.target == "weights":
            continue
        state: Literal["live", "reverted"] = "live" if _is_in(connection, workspace, now, each) else "reverted"
        if state == each.state:
            continue
        set_change_state(connection, each.id, state)
        set_state(connection, each.correction_id, "applied" if state == "live" else "reverted")
        if state == "live" and each.correction_id:
            _close_later(connection, workspace, correction(connection, workspace.project, each.correction_id))
        record_event(connection, workspace.project, at_us=now.created_us, actor=workspace.actor, event=state,
                     subject=each.id, reason=now.reason, causes=[now.id], detail={"rollback": now.id})  # fmt: skip


def _close_later(connection: Connection, workspace: Workspace, back: Correction) -> None:
    """What was proposed for the cluster while `back` was not live has nothing to mend."""
    for each in attempts(connection, back.cluster_id):
        if each.attempt > back.attempt and each.state in OPEN:
            set_state(connection, each.id, "rejected")
            record_event(connection, workspace.project, at_us=workspace.clock(), actor=workspace.actor, event="closed",
                         subject=each.id, reason=f"{back.id} is live again", causes=[back.id])  # fmt: skip


def _is_in(connection: Connection, workspace: Workspace, now: Release, each: Change) -> bool:
    keys = {operation.key for operation in each.operations}
    if each.target == "memory":
        facts = facts_at(connection, workspace.project, now.memory, workspace.clock())
        return keys <= {fact.id for fact in facts}
    live = content(connection, now.context if each.target == "context" else now.tooling)
    made = content(connection, each.after)
    return all(entries_of(live, key) == entries_of(made, key) for key in keys)


def _restore_memory(connection: Connection, current: Release, wanted: Release, now_us: int) -> int:
    before = {fact.id: fact for fact in facts_at(connection, current.project, wanted.memory, now_us)}
    now = {fact.id: fact for fact in facts_at(connection, current.project, current.memory, now_us)}
    position = current.memory
    for id_ in now.keys() - before.keys():
        gone = now[id_].model_copy(update={"supersedes": None})
        position = append_fact(connection, current.project, "forget", gone, now_us)
    for id_ in before.keys() - now.keys():
        back = before[id_].model_copy(update={"supersedes": None})
        position = append_fact(connection, current.project, "add", back, now_us)
    return position
