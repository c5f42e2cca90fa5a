"""Context: rules, examples and notes that the running program puts into its prompt. Templates filled with our own names,
or words that a reviewer signs."""

import re
from collections.abc import Sequence
from typing import Any

from pydantic import JsonValue, ValidationError
from sqlalchemy import Connection

from flows.targets.contract import Served
from flows.targets.documents import Section, changed, content, serve, taken_back
from models.conflicts import conflict
from models.features.material import Material
from store.errors import NotAllowed, Refused
from store.records import (
    ACTIONS,
    Change,
    Cluster,
    Example,
    Note,
    Operation,
    Proposal,
    Release,
    Rule,
    content_hash,
    derived_id,
)

CONFIRM = re.compile(
    r"\b(confirm|ask|check with)\b.{0,40}\bbefore\b|\bwithout (asking|confirm)", re.IGNORECASE | re.DOTALL
)
ENTRIES: dict[str, tuple[str, type[Rule | Example | Note]]] = {
    "rule": ("rules", Rule),
    "ex": ("examples", Example),
    "note": ("notes", Note),
}
"""Prefix of an entry's id to its section and record."""

NEEDED = (
    "a rule: one sentence for the prompt, which you sign (--answer '...'); or as JSON an action and argument, "
    '{"note": TEXT}, or {"example": {"input": ..., "output": ...}}'
)


def section_of(operation: Operation) -> Section:
    """The section of the entry, by the prefix of its id."""
    return ENTRIES.get(operation.key.split("_", 1)[0], ENTRIES["rule"])[0], "id"


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
    """The entry completed: a sentence becomes an `instruct`; an object gives `action`, `argument` and, if need be, `scope`, or
    a `note`, or an `example`; `replaces` names the entry that it takes the place of."""
    operation = proposal.operations[0]
    if operation.verb == "retire":
        return proposal
    if answer is None and proposal.needs_answer:
        raise NotAllowed(f"this correction needs an answer first: {proposal.needs_answer}")
    kind, given = _given(answer)
    key = operation.key if kind == "rule" else derived_id(kind, operation.key)
    signed = _signed(proposal, operation, kind, key, {**_about(kind, operation), **given, "author": reviewer})
    return _replacing(signed, answer, reviewer)


def apply(
    connection: Connection, current: Release, operations: Sequence[Operation], *, correction_id: str, now_us: int
) -> Served:
    """Add, edit or retire entries. Raises Refused where a rule or note that can hold at the same time says the opposite, another
    number of the same thing, or the same."""
    document = content(connection, current.context)
    gone = {operation.key for operation in operations if operation.verb == "retire"}
    entries = [*document["rules"], *document.get("notes", ())]
    said = [_as_rule(each["id"], each) for each in entries if each["id"] not in gone]
    for operation in operations:
        if operation.verb == "retire" or section_of(operation)[0] == "examples":
            continue
        rule = _as_rule(operation.key, operation.value)
        against = conflict(rule, said)
        if against is not None:
            other, why = against
            raise Refused(
                f"{other.id} says {why} ({other.action}: {other.argument[:200]}): a person decides; to replace it, "
                f'answer as JSON with "replaces": "{other.id}", or `filmroom edit context retire {other.id}` first; or '
                "reject this, or word it as an exception"
            )
        said.append(rule)
    return serve(connection, current, "context", changed(document, operations, section_of), now_us=now_us)


def revert(connection: Connection, current: Release, change: Change, *, now_us: int) -> Served:
    """The live entries without this change."""
    document = taken_back(connection, current.context, change, section_of)
    return serve(connection, current, "context", document, now_us=now_us)


def entry(key: str, value: dict[str, Any]) -> Rule | Example | Note:
    """The typed entry with this id. Raises NotAllowed, saying what is needed."""
    record = ENTRIES.get(key.split("_", 1)[0], ENTRIES["rule"])[1]
    try:
        made = record(id=key, **value)
    except (ValidationError, TypeError) as error:
        raise NotAllowed(f"that is not a rule: actions are {', '.join(ACTIONS)}; needed is {NEEDED}") from error
    words = [value for name, value in made.model_dump().items() if name in ("argument", "text", "input", "output")]
    if not all(str(each).strip() for each in words):
        raise NotAllowed(f"the {key.split('_', 1)[0]} is empty; needed is {NEEDED}")
    return made


def kind_of(value: dict[str, Any]) -> str:
    """Which prefix an entry with these fields has.

    >>> kind_of({"text": "We close at 8."}), kind_of({"action": "say", "argument": "hello"})
    ('note', 'rule')
    """
    if "text" in value:
        return "note"
    return "ex" if "input" in value else "rule"


def _given(answer: JsonValue) -> tuple[str, dict[str, Any]]:
    """The kind of entry that an answer writes, and its fields."""
    if answer is None:
        return "rule", {}
    if isinstance(answer, str):
        return "rule", {"action": "instruct", "argument": answer.strip()}
    if not isinstance(answer, dict):
        raise NotAllowed(f"the answer must be {NEEDED}")
    scope = {"scope": answer["scope"]} if "scope" in answer else {}
    if "note" in answer:
        return "note", {**scope, "text": answer["note"]}
    example = answer.get("example")
    if isinstance(example, dict):
        return "ex", {**scope, **example}
    return "rule", {"action": "instruct", **{name: value for name, value in answer.items() if name != "replaces"}}


def _about(kind: str, operation: Operation) -> dict[str, Any]:
    """What the proposal said already: all of a rule, the scope of a note or an example."""
    return operation.value if kind == "rule" else {"scope": operation.value.get("scope", {})}


def _signed(proposal: Proposal, operation: Operation, kind: str, key: str, value: dict[str, Any]) -> Proposal:
    made = entry(key, value)
    filled = operation.model_copy(
        update={"key": key, "value": made.model_dump(mode="json", exclude={"id"}), "signed_by": made.author}
    )
    summary = {
        "rule": lambda: f"{value.get('action')}: {value.get('argument')}",
        "note": lambda: f"note: {value.get('text')}",
        "ex": lambda: f"example: {value.get('input')} -> {value.get('output')}",
    }[kind]()
    return proposal.model_copy(update={"operations": (filled,), "needs_answer": None, "summary": summary})


def _replacing(proposal: Proposal, answer: JsonValue, reviewer: str) -> Proposal:
    """The proposal, which also retires the entry that the answer says it replaces."""
    replaced = answer.get("replaces") if isinstance(answer, dict) else None
    if replaced is None:
        return proposal
    if not isinstance(replaced, str) or replaced.split("_", 1)[0] not in ENTRIES:
        raise NotAllowed(
            f"replaces must be the id of one entry, such as rule_12ab34: `filmroom live` shows them, not {replaced!r}"
        )
    gone = Operation(target="context", verb="retire", key=replaced, signed_by=reviewer)
    summary = f"{proposal.summary} (in place of {replaced})"
    return proposal.model_copy(update={"operations": (*proposal.operations, gone), "summary": summary})


def _as_rule(key: str, value: dict[str, Any]) -> Rule:
    """What an entry tells the model, as a rule: a note is a sentence like another."""
    if "text" not in value:
        return Rule(**{**value, "id": key})
    return Rule(id=key, scope=value.get("scope", {}), action="instruct", argument=value["text"], author=value["author"])


def new_key(value: dict[str, Any]) -> str:
    """The id of an entry that a person adds by hand."""
    return derived_id(kind_of(value), content_hash(value))


def _operation(cluster: Cluster, verb: str, value: dict[str, Any]) -> Operation:
    return Operation(target="context", verb=verb, key=derived_id("rule", cluster.id), value=value)


def _scope(cluster: Cluster) -> dict[str, str]:
    step = cluster.fingerprint
    named = {"intent": step.intent, "channel": step.scope, "tool": step.component if step.kind == "tool" else ""}
    return {name: value for name, value in named.items() if value}


def _where(cluster: Cluster) -> str:
    scope = _scope(cluster)
    return ", ".join(f"{name} {value}" for name, value in scope.items()) or "every conversation"
