"""Context: rules the running program puts into its prompt. Templates filled with our own names, or a signed sentence."""

import re
from collections.abc import Sequence
from typing import Any

from pydantic import JsonValue, ValidationError
from sqlalchemy import Connection

from flows.targets.contract import Served
from flows.targets.documents import changed, content, serve, taken_back
from models.features.material import Material
from store.errors import NotAllowed, Refused
from store.records import ACTIONS, Change, Cluster, Operation, Proposal, Release, Rule, derived_id

SECTIONS = {"add": ("rules", "id"), "edit": ("rules", "id"), "retire": ("rules", "id")}
OPPOSITES = {("say", "never_say"), ("use_tool", "do_not_use_tool")}
CONFIRM = re.compile(
    r"\b(confirm|ask|check with)\b.{0,40}\bbefore\b|\bwithout (asking|confirm)", re.IGNORECASE | re.DOTALL
)

NEEDED = "a rule: one sentence for the prompt, which you sign (--answer '...'), or an action and argument as JSON"


def propose(cluster: Cluster, material: Material) -> Proposal:
    """A rule for the cluster's scope. Where every comment asks for a confirmation before a known tool, the template is filled;
    else a person writes the sentence."""
    step = cluster.fingerprint
    comments = [said.comment for case in material.cases for said in case.episode.feedback if said.comment]
    if step.kind == "tool" and comments and all(CONFIRM.search(comment) for comment in comments):
        rule = {"action": "confirm_before", "argument": step.component, "scope": _scope(cluster)}
        return Proposal(
            target="context",
            summary=f"Before `{step.component}`, ask the user to confirm",
            operations=(_operation(cluster, "add", rule),),
        )
    return Proposal(
        target="context",
        summary=f"A rule for {_where(cluster)}, written by you",
        operations=(_operation(cluster, "add", {"scope": _scope(cluster)}),),
        needs_answer=NEEDED,
    )


def answered(proposal: Proposal, answer: JsonValue, *, reviewer: str) -> Proposal:
    """The rule completed: a sentence becomes an `instruct`; an object gives `action`, `argument` and, if need be, `scope`."""
    if answer is None and proposal.needs_answer:
        raise NotAllowed(f"this correction needs an answer first: {proposal.needs_answer}")
    given: dict[str, Any] = {}
    if isinstance(answer, str):
        given = {"action": "instruct", "argument": answer.strip()}
    elif isinstance(answer, dict):
        given = dict(answer)
    elif answer is not None:
        raise NotAllowed(f"the answer must be {NEEDED}")
    operation = proposal.operations[0]
    value = {**operation.value, **given, "author": reviewer}
    try:
        rule = Rule(id=operation.key, **value)
    except (ValidationError, TypeError) as error:
        raise NotAllowed(f"that is not a rule: actions are {', '.join(ACTIONS)}; needed is {NEEDED}") from error
    if not rule.argument:
        raise NotAllowed(f"the rule is empty; needed is {NEEDED}")
    filled = operation.model_copy(update={"value": rule.model_dump(mode="json", exclude={"id"})})
    summary = f"{rule.action}: {rule.argument}"
    return proposal.model_copy(update={"operations": (filled,), "needs_answer": None, "summary": summary})


def apply(
    connection: Connection, current: Release, operations: Sequence[Operation], *, correction_id: str, now_us: int
) -> Served:
    """Add, edit or retire rules. Raises Refused where a rule of the same scope says the opposite."""
    document = content(connection, current.context)
    for operation in operations:
        _check_conflict(document["rules"], operation)
    return serve(connection, current, "context", changed(document, operations, SECTIONS), now_us=now_us)


def revert(connection: Connection, current: Release, change: Change, *, now_us: int) -> Served:
    """The live rules without this change."""
    document = taken_back(connection, current.context, change, SECTIONS)
    return serve(connection, current, "context", document, now_us=now_us)


def _check_conflict(rules: list[dict[str, Any]], operation: Operation) -> None:
    value = operation.value
    for rule in rules:
        pair = {(rule["action"], value.get("action")), (value.get("action"), rule["action"])}
        same = rule["scope"] == value.get("scope") and rule["argument"] == value.get("argument")
        if same and pair & OPPOSITES:
            raise Refused(f"rule {rule['id']} says the opposite ({rule['action']} {rule['argument']}): retire it first")


def _operation(cluster: Cluster, verb: str, value: dict[str, Any]) -> Operation:
    return Operation(target="context", verb=verb, key=derived_id("rule", cluster.id), value=value)


def _scope(cluster: Cluster) -> dict[str, str]:
    step = cluster.fingerprint
    named = {"intent": step.intent, "channel": step.scope, "tool": step.component if step.kind == "tool" else ""}
    return {name: value for name, value in named.items() if value}


def _where(cluster: Cluster) -> str:
    scope = _scope(cluster)
    return ", ".join(f"{name} {value}" for name, value in scope.items()) or "every conversation"
