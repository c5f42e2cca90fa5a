"""The model that is served: founded on its base set, loaded from the live release, replaced by a promotion."""

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as package_version

from pydantic import JsonValue
from sqlalchemy import Connection

from flows.apply import serve
from flows.targets.contract import Served
from flows.targets.documents import following
from flows.training import training_rows
from flows.workspace import Workspace
from models.arms import ARMS, DEFAULT_ARM, Model, Task, fit_arm
from models.artifacts import Manifest, environment, load, save, unchanged_by_saving
from models.dataset import dataset_digest, text_of
from store.errors import NotFound, Refused
from store.ledger import record_event
from store.records import DatasetRow, Release, Version
from store.releases import live_release, put_version, version

CANARIES = 50
"""Inputs whose answers must survive saving and loading."""


def live_version(connection: Connection, project: str, name: str) -> Version | None:
    """The version of the model that is served; None: filmroom serves none."""
    id_ = live_release(connection, project).models.get(name)
    return None if id_ is None else version(connection, id_)


def live_model(workspace: Workspace, name: str) -> Model:
    """The served model itself. Raises NotFound before there is one, ModelRefused for a file that cannot be trusted."""
    with workspace.store.read() as connection:
        live = live_version(connection, workspace.project, name)
    if live is None:
        raise NotFound(f"no version of model {name!r} is live: `filmroom history --model {name}` says why")
    return load(workspace.artifacts, artifact_of(live))


def artifact_of(value: Version) -> str:
    """The digest of a model version's file."""
    content = value.content
    return str(content["artifact"]) if isinstance(content, dict) else ""


def arm_of(value: Version | None) -> str:
    """The arm that made a version; the default one where there is none."""
    content = value.content if value is not None else None
    name = str(content.get("arm")) if isinstance(content, dict) else DEFAULT_ARM
    return name if name in ARMS else DEFAULT_ARM


def task_of(workspace: Workspace, name: str) -> Task:
    """What stays the same for every arm of this model."""
    section = workspace.settings.weights[name]
    return Task(
        out_of_scope=section.out_of_scope,
        in_scope_rejection=section.in_scope_rejection,
        seed=workspace.settings.seed,
    )


def found_model(workspace: Workspace, name: str) -> Version:
    """Train the first version on the base set and serve it: there is nothing yet that it could be compared with.

    Raises Refused where the base set cannot train a model.
    """
    base = training_rows(workspace.settings, name)
    try:
        model = fit_arm(ARMS[DEFAULT_ARM], base, [], task=task_of(workspace, name))
    except ValueError as error:
        raise Refused(f"[weights.{name}] the training file cannot train a model: {error}") from error
    made = keep(workspace, name, model, DEFAULT_ARM, base, parent=None)
    with workspace.write() as connection:
        reason = f"first version of {name}, trained on its {len(base)} base rows: nothing to compare it with"
        promote(connection, workspace, name, made, reason=reason)
    return made


def keep(
    workspace: Workspace, name: str, model: Model, arm: str, rows: Sequence[DatasetRow], *, parent: str | None
) -> Version:
    """Write the model file, check that it answers as the model in memory does, and describe it as a version.

    Raises Refused where the file answers otherwise.
    """
    digest = dataset_digest(rows)
    manifest = Manifest(training=digest, arm=arm, code_version=code_version(), environment=environment())
    artifact = save(model, workspace.artifacts, manifest)
    canaries = [text_of(row) for row in rows[:CANARIES]]
    if not unchanged_by_saving(model, load(workspace.artifacts, artifact), canaries):
        raise Refused(f"the saved model of {name} answers otherwise than the trained one: it is not served")
    content: JsonValue = {"artifact": artifact, "training": digest, "arm": arm, "rows": len(rows)}
    return Version(
        project=workspace.project,
        target="weights",
        model=name,
        content=content,
        parent=parent,
        created_us=workspace.clock(),
    )


def promote(connection: Connection, workspace: Workspace, name: str, made: Version, *, reason: str) -> Release:
    """Serve a version of the model, in the caller's transaction."""
    put_version(connection, made)
    return _serve_models(connection, workspace, {name: made.id}, cause=made.id, reason=reason)


def demote(connection: Connection, workspace: Workspace, name: str, parent: str | None, *, reason: str) -> Release:
    """Serve the version before, or none."""
    return _serve_models(connection, workspace, {name: parent}, cause=parent, reason=reason)


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


def code_version() -> str:
    """filmroom's version; `0` in a checkout that was never installed."""
    try:
        return package_version("filmroom")
    except PackageNotFoundError:
        return "0"
