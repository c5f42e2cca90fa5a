"""Tooling: policies that mend a call in the program's process, and tickets for what only the tool's owner can mend."""

import re
from collections.abc import Sequence
from typing import Any

from pydantic import JsonValue
from sqlalchemy import Connection

from flows.targets.contract import Served
from flows.targets.documents import Section, changed, content, serve, taken_back
from flows.targets.policies import tool_policy
from models.features.material import Material
from models.features.tooling import argument_repairs, calls_mended, missing_arguments, retry_helps
from models.steps import arguments, error_text
from store.records import Case, Change, Cluster, Operation, Proposal, Release, Span, Ticket, derived_id

CALL_EXAMPLES = 5
"""Trace ids a ticket carries."""
RETRIES = 2
"""Of a call that succeeded when it was made once more."""
_TICKET = re.compile(r"tkt_[0-9a-f]{20}")


def section_of(operation: Operation) -> Section:
    """Tickets go by their id, policies by the tool's name."""
    is_ticket = operation.verb.startswith("ticket_") or _TICKET.fullmatch(operation.key)
    return ("tickets", "id") if is_ticket else ("policies", "tool")


def propose(cluster: Cluster, material: Material) -> Proposal:
    """Normalisers where they would have mended the failing calls; retries where the same call then succeeded; required
    arguments where all calls that succeeded have them; else a ticket with the failing call."""
    tool = cluster.fingerprint.component
    normalisers = argument_repairs(material).get(tool)
    if normalisers:
        shown = "; ".join(f"`{path}`: {', '.join(names)}" for path, names in normalisers.items())
        mended, failing = calls_mended(material, tool, normalisers)
        reach = "" if mended == failing else f"; shown to mend {mended} of {failing} failing calls"
        value: dict[str, JsonValue] = {"normalisers": {path: list(names) for path, names in normalisers.items()}}
        return _policy(tool, f"Normalise the arguments of `{tool}` before the call ({shown}){reach}", value)
    if retry_helps(material, tool):
        return _policy(tool, f"Call `{tool}` up to {RETRIES} more times where it fails", {"retries": RETRIES})
    missing = missing_arguments(material, tool)
    if missing:
        names = ", ".join(f"`{name}`" for name in missing)
        summary = f"Refuse a call of `{tool}` without {names}, and say so to the model"
        return _policy(tool, summary, {"schema_patch": {"required": list(missing)}})
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
    tool = str(operation.value.get("tool") or operation.key)
    policy = tool_policy(tool, answer)
    value = policy.model_dump(mode="json", exclude={"tool"}, exclude_defaults=True)
    filled = operation.model_copy(update={"verb": "add", "key": tool, "value": value, "signed_by": reviewer})
    return proposal.model_copy(update={"operations": (filled,), "summary": f"Policy for `{policy.tool}` by {reviewer}"})


def apply(
    connection: Connection, current: Release, operations: Sequence[Operation], *, correction_id: str, now_us: int
) -> Served:
    """Lay policies over those that are there; open, resolve or reopen tickets."""
    document = content(connection, current.tooling)
    settled = [_onto(document, operation) for operation in operations]
    return serve(connection, current, "tooling", changed(document, settled, section_of), now_us=now_us)


def revert(connection: Connection, current: Release, change: Change, *, now_us: int) -> Served:
    """The live policies and tickets without this change."""
    document = taken_back(connection, current.tooling, change, section_of)
    return serve(connection, current, "tooling", document, now_us=now_us)


def _onto(document: dict[str, list[dict[str, Any]]], operation: Operation) -> Operation:
    """A policy for a tool that has one is laid over it; a ticket that is there is opened again."""
    section, key = section_of(operation)
    old = next((entry for entry in document.get(section, []) if entry[key] == operation.key), None)
    if old is None or operation.verb not in ("add", "ticket_open"):
        return operation
    if operation.verb == "ticket_open":
        again = {**operation.value, "resolved": False, "resolved_us": None}
        return operation.model_copy(update={"verb": "ticket_resolve", "value": again})
    given: dict[str, Any] = dict(operation.value)
    nested = {name: {**old.get(name, {}), **given[name]} for name in ("normalisers", "expected") if name in given}
    kept = {name: each for name, each in old.items() if name != key}
    return operation.model_copy(update={"verb": "edit", "value": {**kept, **given, **nested}})


def _policy(tool: str, summary: str, value: dict[str, JsonValue]) -> Proposal:
    operation = Operation(target="tooling", verb="add", key=tool, value=value)
    return Proposal(target="tooling", summary=summary, operations=(operation,))


def _ticket(cluster: Cluster, cases: Sequence[Case]) -> Ticket:
    step = next((span for case in cases if (span := _failing(case)) is not None), None)
    return Ticket(
        id=derived_id("tkt", cluster.id),
        tool=cluster.fingerprint.component,
        title=cluster.name,
        trace_ids=tuple(case.failure.trace_id for case in cases[:CALL_EXAMPLES]),
        call={} if step is None else arguments(step),
        error="" if step is None else (error_text(step) or "")[:500],
        cluster_id=cluster.id,
    )


def _failing(case: Case) -> Span | None:
    return next((span for span in case.episode.spans if span.id == case.failure.span_id), None)
