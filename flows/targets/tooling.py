"""Tooling: policies that mend a call in the program's process, and tickets for what only the tool's owner can mend."""

from collections.abc import Sequence
from typing import Any

from pydantic import JsonValue, ValidationError
from sqlalchemy import Connection

from flows.targets.contract import Served
from flows.targets.documents import changed, content, serve, taken_back
from models.features.material import Material
from models.features.tooling import argument_repairs
from models.steps import arguments, error_text
from store.errors import NotAllowed
from store.records import Case, Change, Cluster, Operation, Proposal, Release, Span, Ticket, ToolPolicy, derived_id

SECTIONS = {
    "add": ("policies", "tool"),
    "edit": ("policies", "tool"),
    "retire": ("policies", "tool"),
    "ticket_open": ("tickets", "id"),
    "ticket_resolve": ("tickets", "id"),
}
CALL_EXAMPLES = 5
"""Trace ids a ticket carries."""


def propose(cluster: Cluster, material: Material) -> Proposal:
    """Normalisers where they would have mended the failing calls, else a ticket with the failing call."""
    tool = cluster.fingerprint.component
    normalisers = argument_repairs(material).get(tool)
    if normalisers:
        shown = "; ".join(f"`{path}`: {', '.join(names)}" for path, names in normalisers.items())
        return Proposal(
            target="tooling",
            summary=f"Normalise the arguments of `{tool}` before the call ({shown})",
            operations=(
                Operation(
                    target="tooling",
                    verb="add",
                    key=tool,
                    value={"normalisers": {path: list(names) for path, names in normalisers.items()}},
                ),
            ),
        )
    ticket = _ticket(cluster, material.cases)
    operation = Operation(
        target="tooling", verb="ticket_open", key=ticket.id, value=ticket.model_dump(mode="json", exclude={"id"})
    )
    return Proposal(target="tooling", summary=f"Open a ticket: {ticket.title}", operations=(operation,))


def answered(proposal: Proposal, answer: JsonValue, *, reviewer: str) -> Proposal:
    """The proposal with the reviewer's policy, given as JSON, in place of ours; or as it is."""
    if answer is None:
        return proposal
    operation = proposal.operations[0]
    try:
        policy = ToolPolicy(tool=operation.key, **answer)  # type: ignore[arg-type]
    except (ValidationError, TypeError) as error:
        fields = ", ".join(name for name in ToolPolicy.model_fields if name != "tool")
        raise NotAllowed(f"that is not a tool policy: give a JSON object with some of {fields}") from error
    value = policy.model_dump(mode="json", exclude={"tool"}, exclude_defaults=True)
    filled = operation.model_copy(update={"verb": "add", "value": value})
    return proposal.model_copy(update={"operations": (filled,), "summary": f"Policy for `{policy.tool}` by {reviewer}"})


def apply(
    connection: Connection, current: Release, operations: Sequence[Operation], *, correction_id: str, now_us: int
) -> Served:
    """Lay policies over those that are there; open, resolve or reopen tickets."""
    document = content(connection, current.tooling)
    settled = [_onto(document, operation) for operation in operations]
    return serve(connection, current, "tooling", changed(document, settled, SECTIONS), now_us=now_us)


def revert(connection: Connection, current: Release, change: Change, *, now_us: int) -> Served:
    """The live policies and tickets without this change."""
    document = taken_back(connection, current.tooling, change, SECTIONS)
    return serve(connection, current, "tooling", document, now_us=now_us)


def _onto(document: dict[str, list[dict[str, Any]]], operation: Operation) -> Operation:
    """A policy for a tool that has one is laid over it; a ticket that is there is opened again."""
    section, key = SECTIONS[operation.verb]
    old = next((entry for entry in document.get(section, []) if entry[key] == operation.key), None)
    if old is None or operation.verb not in ("add", "ticket_open"):
        return operation
    if operation.verb == "ticket_open":
        return operation.model_copy(update={"verb": "ticket_resolve", "value": {**operation.value, "resolved": False}})
    normalisers = {**old.get("normalisers", {}), **operation.value.get("normalisers", {})}  # type: ignore[dict-item]
    return operation.model_copy(
        update={"verb": "edit", "value": {**old, **operation.value, "normalisers": normalisers}}
    )


def _ticket(cluster: Cluster, cases: Sequence[Case]) -> Ticket:
    step = next((span for case in cases if (span := _failing(case)) is not None), None)
    return Ticket(
        id=derived_id("tkt", cluster.id),
        tool=cluster.fingerprint.component,
        title=cluster.name,
        trace_ids=tuple(case.failure.trace_id for case in cases[:CALL_EXAMPLES]),
        call={} if step is None else arguments(step),
        error="" if step is None else (error_text(step) or "")[:500],
    )


def _failing(case: Case) -> Span | None:
    return next((span for span in case.episode.spans if span.id == case.failure.span_id), None)
