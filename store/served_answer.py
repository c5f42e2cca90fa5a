"""What served an answer: the release its trace names, the versions of the four targets in it, and the changes that made them."""

from typing import Any

from sqlalchemy import Connection, select

from store.changes import changes_of
from store.errors import NotFound
from store.facts import facts_at
from store.records import Change, Release
from store.releases import release, version
from store.tables import traces


def served_answer(connection: Connection, project: str, trace_id: str) -> dict[str, Any] | None:
    """`{"release", "number", "context", "memory", "tooling", "models", "changes"}` of a trace; None: it names no release of ours.

    `changes`: those whose rules, policies or facts for this user that release holds, and those that taught its models,
    oldest first.
    """
    row = connection.execute(
        select(traces.c.release, traces.c.user, traces.c.tenant, traces.c.started_us).where(
            traces.c.project == project, traces.c.id == trace_id
        )
    ).first()
    if row is None or not row.release:
        return None
    try:
        served = release(connection, row.release)
    except NotFound:
        return None
    if served.project != project:
        return None
    now_us = row.started_us or served.created_us
    facts = facts_at(connection, project, served.memory, now_us, user=row.user or "", tenant=row.tenant)
    held = {
        "context": _keys(connection, served.context),
        "tooling": _keys(connection, served.tooling),
        "memory": {fact.id for fact in facts},
    }
    found = [each for each in changes_of(connection, project) if _is_in(connection, each, served, held)]
    return {
        "release": served.id,
        "number": served.number,
        "context": served.context,
        "memory": served.memory,
        "tooling": served.tooling,
        "models": served.models,
        "changes": [each.id for each in found],
    }


def _keys(connection: Connection, version_id: str) -> set[str]:
    document: Any = version(connection, version_id).content
    return {str(entry.get("id") or entry.get("tool")) for entries in document.values() for entry in entries}


def _is_in(connection: Connection, change: Change, served: Release, held: dict[str, set[str]]) -> bool:
    """Whether a change was made by then, and what it made is in the release."""
    if release(connection, change.release_id).number > served.number:
        return False
    if change.target == "weights":
        models = {str(operation.value.get("model")) for operation in change.operations}
        return change.state == "live" and change.applied_us <= served.created_us and bool(models & served.models.keys())
    made = {operation.key for operation in change.operations if operation.verb not in ("retire", "forget")}
    return bool(made & held[change.target])
