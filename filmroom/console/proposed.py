"""The change that a correction proposes, as lines that go and lines that come."""

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

from flows.workspace import Workspace
from store.bodies import bodies_of
from store.facts import facts_in
from store.records import Correction, Fact, Operation, Release
from store.releases import live_release, version

LONGEST = 20_000
"""Characters of a line; the page folds long ones."""
MOST = 60
"""Operations shown."""

Line = dict[str, str]
"""`sign` (`-`, `+`, or a blank) and `text`."""


def proposed_lines(connection: Connection, workspace: Workspace, found: Correction) -> list[dict[str, Any]]:
    """Each operation of the proposal: `what` it acts on, its `lines`, and `missing` where a person must write it first."""
    if found.proposal is None:
        return []
    live = live_release(connection, workspace.project)
    operations = found.proposal.operations[:MOST]
    facts = _known_facts(connection, workspace, live, operations) if found.proposal.target == "memory" else []
    spans = [str(each.value["span_id"]) for each in operations if each.value.get("span_id")]
    steps = bodies_of(connection, spans) if found.proposal.target == "weights" else {}
    return [
        {"what": _what(each), "lines": _lines(connection, live, each, facts, steps),
         "missing": bool(found.proposal.needs_answer)}
        for each in operations
    ]  # fmt: skip


def applied_lines(connection: Connection, operations: Sequence[Operation], before: Any) -> list[dict[str, Any]]:
    """The same of operations that were applied; `before`: the content of the version before, of context and tooling."""
    shown = operations[:MOST]
    steps = bodies_of(connection, [str(each.value["span_id"]) for each in shown if each.value.get("span_id")])
    found = []
    for each in shown:
        if each.target == "memory":
            lines = _memory_lines(each, [])
        elif each.target == "weights":
            lines = _row_lines(each, steps.get(str(each.value.get("span_id"))) or {})
        else:
            lines = operation_lines(each, entry_in(before, each.key))
        found.append({"what": _what(each), "lines": lines})
    return found


def entry_in(content: Any, key: str) -> dict[str, Any] | None:
    """The entry of a document that goes by this key; None: it has none."""
    sections = content.values() if isinstance(content, dict) else []
    entries = (each for section in sections if isinstance(section, list) for each in section)
    return next(
        (dict(each) for each in entries if isinstance(each, dict) and key in (each.get("id"), each.get("tool"))), None
    )


def operation_lines(operation: Operation, before: dict[str, Any] | None) -> list[Line]:
    """What an operation takes away and what it brings, field by field.

    >>> operation_lines(Operation(target="tooling", verb="edit", key="t", value={"retries": 2}), {"tool": "t", "retries": 1})
    [{'sign': '-', 'text': 'retries: 1'}, {'sign': '+', 'text': 'retries: 2'}]
    """
    if operation.verb in ("retire", "forget", "dataset_remove"):
        return [_line("-", name, value) for name, value in (before or {}).items() if name not in _KEYS]
    after = {name: value for name, value in operation.value.items() if name not in _KEYS}
    old = {name: value for name, value in (before or {}).items() if name not in _KEYS}
    lines: list[Line] = []
    for name in dict.fromkeys((*old, *after)):
        if name in old and name in after and old[name] == after[name]:
            lines.append(_line(" ", name, old[name]))
            continue
        if name in old and name in after:
            lines.append(_line("-", name, old[name]))
        if name in after:
            lines.append(_line("+", name, after[name]))
    return lines


_KEYS = ("id", "tool", "project", "span_id", "trace_id", "at_us", "authority")


def _lines(
    connection: Connection, live: Release, operation: Operation, facts: list[Fact], steps: dict[str, Any]
) -> list[Line]:
    if operation.target == "memory":
        return _memory_lines(operation, facts)
    if operation.target == "weights":
        return _row_lines(operation, steps.get(str(operation.value.get("span_id"))) or {})
    content = version(connection, live.context if operation.target == "context" else live.tooling).content
    return operation_lines(operation, entry_in(content, operation.key))


def _memory_lines(operation: Operation, facts: list[Fact]) -> list[Line]:
    value = operation.value
    place = tuple(value.get(name) for name in ("scope", "scope_id", "subject", "predicate"))
    old = next((each for each in facts if (each.scope, each.scope_id, each.subject, each.predicate) == place), None)
    lines = [] if old is None else [_line("-", old.predicate, old.value), _line(" ", "source", old.source)]
    said = value.get("predicate")
    if said is not None:
        lines.append(_line("+", str(said), value.get("value")))
    lines += [_line("+", name, value[name]) for name in ("scope", "scope_id", "source", "ttl_s") if value.get(name)]
    return lines


def _row_lines(operation: Operation, step: dict[str, Any]) -> list[Line]:
    """A training row: the text, the answer it got, and the label that it should get."""
    value = operation.value
    lines = [_line(" ", "text", step["input"])] if step.get("input") is not None else []
    if step.get("output") is not None:
        lines.append(_line("-", "answered", step["output"]))
    lines.append(_line("+", "label", value.get("label") or "(you write it)"))
    return [*lines, _line(" ", "said by", value["source"])] if value.get("source") else lines


def _known_facts(
    connection: Connection, workspace: Workspace, live: Release, operations: Sequence[Operation]
) -> list[Fact]:
    """The facts in force in the scopes that the proposal touches."""
    scopes = {(str(each.value.get("scope")), str(each.value.get("scope_id"))) for each in operations}
    return facts_in(connection, workspace.project, live.memory, workspace.clock(), scopes=scopes)


def _what(operation: Operation) -> str:
    verbs = {"add": "add", "edit": "edit", "retire": "retire", "supersede": "replace", "forget": "forget",
             "ticket_open": "open a ticket for", "ticket_resolve": "settle the ticket of",
             "dataset_add": "add a training row for", "dataset_remove": "take out a training row of"}  # fmt: skip
    nouns = {"context": "rule", "memory": "fact", "tooling": "policy of", "weights": ""}
    name = {"memory": operation.value.get("scope_id"), "weights": operation.value.get("model"),
            "tooling": operation.value.get("tool")}.get(operation.target)  # fmt: skip
    noun = "" if operation.verb.startswith(("ticket", "dataset")) else nouns[operation.target]
    return " ".join(part for part in (verbs[operation.verb], noun, str(name or operation.key)) if part)


def _line(sign: str, name: str, value: Any) -> Line:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return {"sign": sign, "text": f"{name}: {text}"[:LONGEST]}
