"""Edit: a change that a person makes by hand, without a failure behind it. It goes the same way as a correction's: a version,
a release, a change that can be undone."""

from typing import Any, Literal, get_args

from pydantic import ValidationError
from sqlalchemy import Connection

from flows.apply import apply_operations
from flows.targets import context
from flows.targets.memory_proposal import operation as fact_operation
from flows.targets.policies import tool_policy
from flows.workspace import Workspace
from store.errors import NotAllowed
from store.facts import fact_named
from store.records import Change, Fact, Operation, Ticket, content_hash, derived_id
from store.releases import live_release, version

Editable = Literal["context", "memory", "tooling"]
VERBS: dict[str, tuple[str, ...]] = {
    "context": ("add", "edit", "retire"),
    "memory": ("add", "forget"),
    "tooling": ("add", "edit", "retire", "ticket_resolve"),
}
"""What can be done by hand, per target; a model's training data changes by corrections alone."""


def edit(
    workspace: Workspace, target: str, verb: str, *, key: str = "", value: dict[str, Any] | None = None, reason: str = ""
) -> Change:  # fmt: skip
    """Apply one delta, signed by whoever acts.

    `key`: the entry; for something new it may be left out, but for a tool. Raises NotAllowed for what is no such entry,
    Refused where a check speaks against it.
    """
    if target not in get_args(Editable) or verb not in VERBS[target]:
        ways = "; ".join(f"{name}: {', '.join(verbs)}" for name, verbs in VERBS.items())
        raise NotAllowed(f"{target} {verb} cannot be done by hand; what can: {ways}")

    def apply(connection: Connection) -> Change:
        operation = _operation(connection, workspace, target, verb, key, value or {})
        said = reason or f"{verb} {operation.key} by hand"
        return apply_operations(connection, workspace, (operation,), correction_id="", reason=said, causes=[])

    return workspace.decided(apply)


def _operation(
    connection: Connection, workspace: Workspace, target: str, verb: str, key: str, value: dict[str, Any]
) -> Operation:
    if not key and verb != "add":
        raise NotAllowed(f"{target} {verb}: of what? give the id that `filmroom live {target}` shows")
    if target == "context":
        return _entry(connection, workspace, verb, key, value)
    if target == "memory":
        return _fact(connection, workspace, verb, key, value)
    return _policy(connection, workspace, verb, key, value)


def _entry(connection: Connection, workspace: Workspace, verb: str, key: str, value: dict[str, Any]) -> Operation:
    if verb == "retire":
        _live(connection, workspace, "context", key)
        return Operation(target="context", verb="retire", key=key)
    old = _live(connection, workspace, "context", key) if verb == "edit" else {}
    given = {**old, **value, "author": workspace.actor}
    given.pop("id", None)
    named = key or context.new_key(given)
    made = context.entry(named, given).model_dump(mode="json", exclude={"id"})
    kind: Any = verb
    return Operation(target="context", verb=kind, key=named, value=made, signed_by=workspace.actor)


def _fact(connection: Connection, workspace: Workspace, verb: str, key: str, value: dict[str, Any]) -> Operation:
    if verb == "forget":
        known = fact_named(connection, workspace.project, key)
        said = {} if known is None else known.model_dump(mode="json", include={"scope", "scope_id"})
        return Operation(target="memory", verb="forget", key=key, value=said)
    base = {"scope": "user", "valid_from_us": workspace.clock(), "source": workspace.actor, "authority": True}
    given = {**base, **value}
    if given["scope"] == "global":
        given["scope_id"] = "*"
    given.setdefault("subject", given.get("scope_id"))
    named = key or derived_id("fact", workspace.project, content_hash(given))
    try:
        fact = Fact(id=named, **given)
    except (ValidationError, TypeError) as error:
        raise NotAllowed(
            'that is not a fact: give {"scope_id": USER, "predicate": ..., "value": ...}, or "scope": "global"'
        ) from error
    return fact_operation(fact).model_copy(update={"signed_by": workspace.actor})


def _policy(connection: Connection, workspace: Workspace, verb: str, key: str, value: dict[str, Any]) -> Operation:
    if not key:
        raise NotAllowed("tooling add: for which tool? name it")
    if verb == "retire":
        _live(connection, workspace, "tooling", key)
        return Operation(target="tooling", verb="retire", key=key)
    old = {} if verb == "add" else _live(connection, workspace, "tooling", key)
    if verb == "ticket_resolve":
        if "title" not in old:
            raise NotAllowed(f"{key} is no ticket: `filmroom live tooling` shows those there are")
        done = Ticket(**{**old, "resolved": True, "resolved_us": workspace.clock()})
        return Operation(target="tooling", verb=verb, key=key, value=done.model_dump(mode="json", exclude={"id"}))
    old.pop("tool", None)
    policy = tool_policy(key, {**old, **value})
    given = policy.model_dump(mode="json", exclude={"tool"}, exclude_defaults=True)
    kind: Any = verb
    return Operation(target="tooling", verb=kind, key=key, value=given, signed_by=workspace.actor)


def _live(connection: Connection, workspace: Workspace, target: Editable, key: str) -> dict[str, Any]:
    """The live entry with this key. Raises NotAllowed."""
    served = live_release(connection, workspace.project)
    document: Any = version(connection, served.context if target == "context" else served.tooling).content
    for entries in document.values():
        for each in entries:
            if key in (each.get("id"), each.get("tool")):
                return dict(each)
    raise NotAllowed(f"{target} has no {key}: `filmroom live {target}` shows what it has")
