"""Rules that do nothing measurable are proposed for retirement: a person decides, nothing is retired by itself."""

from typing import Any

from sqlalchemy import Connection

from flows.rule_use import rule_use
from flows.workspace import Workspace
from models.hold import has_no_effect
from store.changes import changes_of, live_holds, set_change_state
from store.corrections import attempts, put_correction
from store.exposures import served_by_releases
from store.ledger import effects_of, record_event
from store.records import Change, Correction, Hold, Operation, Proposal
from store.releases import live_release, version

ENOUGH_TRACES = 200
"""Traces that name a release, among which a rule that was never in scope counts as unused."""


def propose_retirements(workspace: Workspace) -> list[str]:
    """Put each live rule without a measured effect up for review once; a line each."""
    with workspace.store.read() as connection:
        found = _without_effect(connection, workspace)
    lines = []
    for change, hold, key, why in found:
        with workspace.write() as connection:
            if _propose(connection, workspace, change, hold, key, why):
                lines.append(f"{key}: proposed for retirement, {why}")
    return lines


def end_retired(connection: Connection, workspace: Workspace, keys: set[str], by: Change) -> None:
    """What made a retired entry is no longer live, and no longer watched."""
    for each in changes_of(connection, workspace.project, state="live"):
        made = {operation.key for operation in each.operations if operation.verb in ("add", "edit")}
        if each.id == by.id or each.target != by.target or not made or not made <= keys:
            continue
        set_change_state(connection, each.id, "reverted")
        record_event(connection, workspace.project, at_us=by.applied_us, actor=by.actor, event="retired",
                     subject=each.id, causes=[by.id])  # fmt: skip


def bring_back(connection: Connection, workspace: Workspace, by: Change) -> None:
    """A retirement is taken back: what made the entry is live again, and watched as before."""
    for id_ in effects_of(connection, workspace.project, by.id):
        if id_.startswith("chg_"):
            set_change_state(connection, id_, "live")
            record_event(connection, workspace.project, at_us=workspace.clock(), actor=workspace.actor, event="live",
                         subject=id_, causes=[by.id])  # fmt: skip


def _without_effect(connection: Connection, workspace: Workspace) -> list[tuple[Change, Hold, str, str]]:
    release = live_release(connection, workspace.project)
    document: Any = version(connection, release.context).content
    live = {each["id"] for each in document["rules"]}
    watched = [
        (change, hold) for change, hold in live_holds(connection, workspace.project) if change.target == "context"
    ]
    if not watched or not live:
        return []
    used, served = {}, 0
    if any(hold.exposures == 0 and has_no_effect(hold) is None for _, hold in watched):
        used = rule_use(connection, workspace.project, release)
        served = len(served_by_releases(connection, workspace.project))
    found = []
    for change, hold in watched:
        key = change.operations[0].key
        why = has_no_effect(hold)
        if why is None and served >= ENOUGH_TRACES and used.get(key) == 0 and hold.exposures == 0:
            why = f"it was in scope of none of the last {served} traces"
        if why is not None and key in live:
            found.append((change, hold, key, why))
    return found


def _propose(
    connection: Connection, workspace: Workspace, change: Change, hold: Hold, key: str, why: str
) -> Correction | None:
    history = attempts(connection, hold.cluster_id)
    asked = any(
        each.key == key and each.verb == "retire"
        for correction in history
        if correction.proposal is not None
        for each in correction.proposal.operations
    )
    if asked or not history:
        return None
    proposal = Proposal(
        target="context",
        summary=f"Retire the rule {key}: {why}",
        operations=(Operation(target="context", verb="retire", key=key),),
    )
    correction = Correction(project=workspace.project, cluster_id=hold.cluster_id, attempt=len(history) + 1,
                            created_us=workspace.clock(), proposal=proposal)  # fmt: skip
    put_correction(connection, correction)
    record_event(connection, workspace.project, at_us=workspace.clock(), actor=workspace.actor, event="proposed",
                 subject=correction.id, reason=why, causes=[change.id])  # fmt: skip
    return correction
