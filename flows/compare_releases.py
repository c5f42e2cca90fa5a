"""Two releases side by side: each of the four targets, entry by entry."""

from typing import Any

from sqlalchemy import Connection

from flows.compare import Comparison, compare
from flows.workspace import Workspace
from models.write_gate import shown
from store.errors import NotAllowed, NotFound
from store.facts import facts_at
from store.ids import whole_id
from store.records import Fact, Record, Release
from store.releases import release


class ReleaseComparison(Record):
    """What changes from one release to another."""

    before: str
    after: str
    context: Comparison | None = None
    """None: the same version."""
    tooling: Comparison | None = None
    memory: Comparison | None = None
    models: tuple[Comparison, ...] = ()
    """Of each model with another version in both."""
    models_added: tuple[str, ...] = ()
    models_removed: tuple[str, ...] = ()


def compare_any(workspace: Workspace, before: str, after: str) -> Comparison | ReleaseComparison:
    """Compare two versions, or two releases. Raises NotFound, and NotAllowed where they are not of one kind."""
    with workspace.store.read() as connection:
        before, after = (whole_id(connection, workspace.project, each) for each in (before, after))
    kinds = {each.split("_", 1)[0] for each in (before, after)}
    if kinds == {"ver"}:
        return compare(workspace, before, after)
    if kinds != {"rel"}:
        raise NotAllowed(f"{before} and {after}: two versions (ver_...) or two releases (rel_...) can be compared")
    with workspace.store.read() as connection:
        first, second = (_of_project(connection, workspace, each) for each in (before, after))
        memory = _memory(connection, workspace, first, second)
    both = sorted(first.models.keys() & second.models.keys())
    return ReleaseComparison(
        before=before,
        after=after,
        context=_unless_same(workspace, first.context, second.context),
        tooling=_unless_same(workspace, first.tooling, second.tooling),
        memory=memory,
        models=tuple(
            compare(workspace, first.models[name], second.models[name])
            for name in both
            if first.models[name] != second.models[name]
        ),
        models_added=tuple(sorted(second.models.keys() - first.models.keys())),
        models_removed=tuple(sorted(first.models.keys() - second.models.keys())),
    )


def _of_project(connection: Connection, workspace: Workspace, id_: str) -> Release:
    found = release(connection, id_)
    if found.project != workspace.project:
        raise NotFound(f"no release {id_}: `filmroom release` lists them")
    return found


def _unless_same(workspace: Workspace, before: str, after: str) -> Comparison | None:
    return None if before == after else compare(workspace, before, after)


def _memory(connection: Connection, workspace: Workspace, first: Release, second: Release) -> Comparison | None:
    if first.memory == second.memory:
        return None
    was, now = (
        {fact.id: fact for fact in facts_at(connection, workspace.project, each.memory, workspace.clock())}
        for each in (first, second)
    )
    return Comparison(
        before=str(first.memory),
        after=str(second.memory),
        target="memory",
        added=tuple(_entry(now[id_]) for id_ in now if id_ not in was),
        removed=tuple(_entry(was[id_]) for id_ in was if id_ not in now),
    )


def _entry(fact: Fact) -> dict[str, Any]:
    return {"section": "facts", "text": shown(fact), **fact.model_dump(mode="json")}
