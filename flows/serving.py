"""Which version of a model is served: the pointer, not the model itself."""

from sqlalchemy import Connection

from flows.apply import serve
from flows.history import record_row
from flows.learnt import settle_anew
from flows.targets.contract import Served
from flows.targets.documents import following
from flows.workspace import Workspace
from store.ledger import record_event
from store.records import Release, Retrain, Version, derived_id
from store.releases import live_release, put_version, version


def live_version(connection: Connection, project: str, name: str) -> Version | None:
    """The version of the model that is served; None: filmroom serves none."""
    id_ = live_release(connection, project).models.get(name)
    return None if id_ is None else version(connection, id_)


def artifact_of(value: Version) -> str:
    """The digest of a model version's file."""
    content = value.content
    return str(content["artifact"]) if isinstance(content, dict) else ""


def promote(connection: Connection, workspace: Workspace, name: str, made: Version, *, reason: str) -> Release:
    """Serve a version of the model, in the caller's transaction."""
    put_version(connection, made)
    return _serve_models(connection, workspace, {name: made.id}, cause=made.id, reason=reason)


def demote(connection: Connection, workspace: Workspace, name: str, parent: str | None, *, reason: str) -> Release:
    """Serve the version before, or none; what it has not learnt waits again."""
    release = _serve_models(connection, workspace, {name: parent}, cause=parent, reason=reason)
    settle_anew(connection, workspace, name, live_version(connection, workspace.project, name))
    return release


def _serve_models(
    connection: Connection, workspace: Workspace, changed: dict[str, str | None], *, cause: str | None, reason: str
) -> Release:
    current = live_release(connection, workspace.project)
    merged = {**current.models, **changed}
    models = {name: id_ for name, id_ in merged.items() if id_ is not None}
    release = following(current, workspace.clock(), models=models)
    served = Served(before=current.id, after=release.id, release=release)
    live = serve(connection, current, served, actor=workspace.actor, reason=reason)
    record_event(
        connection,
        workspace.project,
        at_us=live.created_us,
        actor=workspace.actor,
        event="made",
        subject=live.id,
        reason=reason,
        causes=[] if cause is None else [cause],
    )
    return live


def roll_back(connection: Connection, workspace: Workspace, found: Retrain, *, reason: str) -> Retrain:
    """Serve the version before a promotion again, and leave a row that says so."""
    release = demote(connection, workspace, found.model, found.parent, reason=reason)
    told = reason or f"{found.version} was taken back by {workspace.actor}"
    return leave_rolled_back(
        connection, workspace, found.model, release, told, before=found.version, cause=found.id, arm=found.arm
    )


def leave_rolled_back(
    connection: Connection,
    workspace: Workspace,
    name: str,
    now: Release,
    reason: str,
    *,
    before: str | None,
    cause: str,
    arm: str | None = None,
) -> Retrain:
    """The row which says that release `now` serves another version of the model than `before`, and no newer one."""
    row = Retrain(
        project=workspace.project,
        id=derived_id("ret", cause, name, "rolled back", now.id),
        model=name,
        at_us=workspace.clock(),
        decision="rolled_back",
        reason=reason,
        arm=arm,
        version=now.models.get(name),
        parent=before,
    )
    record_row(connection, workspace, row, causes=[cause])
    return row
