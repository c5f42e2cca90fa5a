"""The detector in force: its weights are fitted to the audits as they come, and every version of them is an event."""

from sqlalchemy import Connection

from flows.workspace import Workspace
from models.combination import HAND, Choice, Combination, choose_combination, strongest
from models.detector import BEHAVIOURAL
from store.audit_stream import audited, signals_without_audit
from store.ledger import events_of, record_event

DETECTOR = "detector"
"""Subject of the events that say which weights are in force."""
MORE = 10
"""New audits after which the weights are fitted again."""


def in_force(connection: Connection, project: str) -> Choice:
    """The weights that pickup uses, and why."""
    past = events_of(connection, project, DETECTOR)
    if not past:
        return Choice(combination=HAND, reason=f"{HAND.version}: no weights were fitted to audits yet")
    return Choice(combination=Combination(**past[-1]["detail"]["combination"]), reason=past[-1]["reason"])


def refit(workspace: Workspace) -> Combination:
    """Fit the weights anew where enough audits came since they were; returns those in force."""
    with workspace.store.read() as connection:
        past = events_of(connection, workspace.project, DETECTOR)
        now = in_force(connection, workspace.project).combination
        verdicts = audited(connection, workspace.project)
        if len(verdicts) < (past[-1]["detail"]["audits"] if past else 0) + MORE:
            return now
        signals = signals_without_audit(connection, [each.trace_id for each in verdicts])
    rows = [strongest(signals.get(each.trace_id, ()), behavioural=BEHAVIOURAL) for each in verdicts]
    chosen = choose_combination(rows, [not each.good for each in verdicts])
    with workspace.write() as connection:
        record_event(
            connection, workspace.project, at_us=workspace.clock(), actor=workspace.actor, event="detector in force",
            subject=DETECTOR, reason=chosen.reason, causes=[each.trace_id for each in verdicts],
            detail={"audits": len(verdicts), "combination": chosen.combination.model_dump(mode="json")},
        )  # fmt: skip
    return chosen.combination
