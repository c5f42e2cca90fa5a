"""The row that every evaluation of the trigger leaves."""

from collections.abc import Sequence

from sqlalchemy import Connection

from flows.workspace import Workspace
from store.ledger import record_event
from store.records import Retrain, RetrainDecision, derived_id
from store.retrains import put_retrain


def new_row(
    workspace: Workspace,
    name: str,
    decision: RetrainDecision,
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


def leave_row(workspace: Workspace, row: Retrain) -> Retrain:
    with workspace.write() as connection:
        record_row(connection, workspace, row, causes=[])
    return row


def record_row(connection: Connection, workspace: Workspace, row: Retrain, *, causes: Sequence[str]) -> None:
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
