"""The data of changes, releases and why."""

from typing import Any

from sqlalchemy import Connection

from filmroom.console.chain import Picture, picture
from filmroom.console.console import Console
from filmroom.console.proposed import applied_lines
from store.change_page import PAGE, change_page, cluster_names, recurrence
from store.changes import change, changes_of, holds_of
from store.corrections import correction
from store.errors import NotFound
from store.failures import cluster
from store.ledger import story_of
from store.records import Change, Release, Version
from store.releases import live_release, release, version
from store.why import why


def changes_view(console: Console, *, target: str = "", state: str = "", page: int = 1) -> dict[str, Any]:
    """A page of changes: `changes`, `page`, and whether there are `more`."""
    with console.store.read() as connection:
        found = change_page(connection, console.project, target=target, state=state, offset=(page - 1) * PAGE,
                            limit=PAGE + 1)  # fmt: skip
    return {"changes": found[:PAGE], "page": page, "more": len(found) > PAGE}


def change_view(console: Console, change_id: str) -> dict[str, Any]:
    """One change with its operations as lines, its hold and what happened to it. Raises NotFound."""
    with console.store.read() as connection:
        found = change(connection, console.project, change_id)
        about = correction(connection, console.project, found.correction_id)
        each = cluster(connection, about.cluster_id)
        hold = next((hold for hold in holds_of(connection, console.project) if hold.change_id == found.id), None)
        events = story_of(connection, console.project, found.id)
        failed_at = recurrence(connection, console.project, about.cluster_id)
        operations = applied_lines(connection, found.operations, _content(connection, found))
    return {
        "change": found.id,
        "correction": found.correction_id,
        "cluster": about.cluster_id,
        "name": each.name if each else "",
        "summary": about.proposal.summary if about.proposal else "",
        "target": found.target,
        "state": found.state,
        "actor": found.actor,
        "applied_us": found.applied_us,
        "release": found.release_id,
        "before": found.before,
        "after": found.after,
        "probation": found.probation,
        "operations": operations,
        "hold": hold.model_dump(mode="json") if hold else None,
        "events": events,
        "failures_at": failed_at,
    }


def releases_view(console: Console) -> dict[str, Any]:
    """Every release, newest first, with which part each changed."""
    from store.releases import releases_of

    with console.store.read() as connection:
        live = live_release(connection, console.project)
        found = releases_of(connection, console.project, limit=200)
    by_id = {each.id: each for each in found}
    rows = [{**_row(each), "live": each.id == live.id, "changed": _changed(by_id.get(each.parent or ""), each)}
            for each in found]  # fmt: skip
    return {"live": live.id, "releases": rows}


def release_view(console: Console, release_id: str) -> dict[str, Any]:
    """One release: what it serves, what it changed, the changes that made it. Raises NotFound."""
    with console.store.read() as connection:
        found = release(connection, release_id)
        if found.project != console.project:
            raise NotFound(f"no release {release_id}")
        live = live_release(connection, console.project)
        parent = release(connection, found.parent) if found.parent else None
        made_by = changes_of(connection, console.project, release_id=release_id)
        context = version(connection, found.context)
        tooling = version(connection, found.tooling)
    return {
        **_row(found),
        "live": live.id == found.id,
        "live_number": live.number,
        "changed": _changed(parent, found),
        "changes": [{"change": each.id, "target": each.target, "state": each.state} for each in made_by],
        "rules": _section(context, "rules"),
        "policies": _section(tooling, "policies"),
        "tickets": _section(tooling, "tickets"),
    }


def why_view(console: Console, any_id: str) -> dict[str, Any]:
    """The chain of causes and effects of an id, and its picture. Raises NotFound."""
    with console.store.read() as connection:
        found = why(connection, console.project, any_id)
        drawn: Picture = picture(found)
        names = cluster_names(connection, [node.id for node in drawn.nodes if node.kind == "cluster"])
    return {**found, "picture": drawn, "names": names}


def _row(found: Release) -> dict[str, Any]:
    return {"release": found.id, **found.model_dump(mode="json")}


def _changed(before: Release | None, after: Release) -> list[str]:
    if before is None:
        return ["the first"]
    parts = [name for name in ("context", "memory", "tooling") if getattr(before, name) != getattr(after, name)]
    names = sorted({*before.models, *after.models})
    return parts + [f"weights {name}" for name in names if before.models.get(name) != after.models.get(name)]


def _section(found: Version, name: str) -> list[dict[str, Any]]:
    content = found.content
    entries = content.get(name, []) if isinstance(content, dict) else []
    return [dict(each) for each in entries if isinstance(each, dict)] if isinstance(entries, list) else []


def _content(connection: Connection, found: Change) -> Any:
    """The document before a change; None where it has none, or it is gone."""
    if found.target not in ("context", "tooling"):
        return None
    return version(connection, found.before).content
