"""What people do to the router: take its version back, go back to an earlier one, pin it to the rules."""

from sqlalchemy import Connection

from flows.router_versions import in_force, rolled_back
from flows.workspace import Workspace
from models.router import PRIOR
from models.router_gate import MORE
from models.router_state import versions_of
from store.errors import NotAllowed, NotFound
from store.records import RouterEvent
from store.router_log import ROUTER, put_router_event, router_events

RULES = "rules"
"""How the rules are named, whatever version of them filmroom has."""


def is_router(any_id: str) -> bool:
    """Whether the id is of a learned router, or means the rules."""
    return any_id.startswith("rtr_") or any_id == RULES


def take_back(connection: Connection, workspace: Workspace, version_id: str, *, reason: str) -> None:
    """Take the version in force back; what it replaced decides again. Raises NotFound, NotAllowed."""
    events = router_events(connection, workspace.project)
    if version_id not in {each.subject for each in events}:
        raise NotFound(f"no router version {version_id}: `filmroom router` lists them")
    if version_id not in versions_of(events):
        raise NotAllowed(f"{version_id} was refused and has never decided: there is nothing to undo")
    now = in_force(workspace, connection)
    if now.state.version != version_id:
        other = "the rules do" if now.state.version is None else f"{now.state.version} does: undo that one first"
        raise NotAllowed(f"{version_id} does not decide, {other}")
    go_back(connection, workspace, versions_of(events)[version_id].parent, reason=reason)


def go_back(connection: Connection, workspace: Workspace, wanted: str, *, reason: str) -> str:
    """Let an earlier version, or the rules, decide again; names what decided until now. Raises NotFound, NotAllowed."""
    now = in_force(workspace, connection)
    versions = versions_of(now.events)
    if wanted.startswith("rtr_") and wanted not in versions:
        raise NotFound(f"no router version {wanted}: `filmroom router` lists them")
    restored = wanted if wanted in versions else PRIOR.version
    taken = now.state.version or PRIOR.version
    if taken == restored:
        raise NotAllowed(f"{restored} decides already: there is nothing to roll back")
    said = reason or f"{workspace.actor} let {restored} decide again"
    subject = taken if taken in versions else restored
    put_router_event(connection, workspace.project, rolled_back(workspace, now, subject, to=restored, reason=said))
    return taken


def next_of(connection: Connection, workspace: Workspace) -> str:
    """What follows a rollback, in words."""
    now = in_force(workspace, connection)
    more = f"a learned router competes again after {MORE} more decided clusters"
    if now.pinned and now.state.version is not None:
        return f"the rules decide ({now.pinned}), and {now.state.version} once they do no longer; {more}"
    return f"{'the rules decide' if now.version is None else f'{now.version.id} decides'}; {more}"


def pin(workspace: Workspace, *, pinned: bool, reason: str) -> str:
    """Let the rules decide, whatever is learned, until they are unpinned; names what decides now. Raises NotAllowed."""
    with workspace.write() as connection:
        now = in_force(workspace, connection)
        if pinned == (now.state.pin is not None):
            kept = f": {now.pinned}" if now.pinned else ""
            raise NotAllowed(f"the rules are {'pinned already' if pinned else 'not pinned by a person'}{kept}")
        event = RouterEvent(
            at_us=workspace.clock(),
            actor=workspace.actor,
            event="pinned" if pinned else "unpinned",
            subject=ROUTER,
            reason=reason,
            detail={"router": PRIOR.version if pinned or now.state.version is None else now.state.version},
        )
        put_router_event(connection, workspace.project, event)
        return in_force(workspace, connection).router.version
