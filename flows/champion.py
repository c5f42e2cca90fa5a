"""The model that is served: founded on its base set, loaded from the live release, replaced by a promotion."""

from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as package_version

from pydantic import JsonValue

from flows.serving import artifact_of, live_version, promote
from flows.training import training_rows
from flows.workspace import Workspace
from models.arms import ARMS, DEFAULT_ARM, Model, Task, fit_arm
from models.artifacts import Manifest, environment, load, save, unchanged_by_saving
from models.dataset import dataset_digest, text_of
from models.estimator import refuse_unusable
from models.fitting import BASE, DEFAULT_ARMS
from models.ground import Ground, ground_of, save_ground
from models.patch import FROM_ROWS, Patched
from models.text_model import TextModel
from store.errors import NotFound, Refused, SettingsError
from store.records import DatasetRow, Version

load_model = lru_cache(maxsize=8)(load)
"""`load`, kept: a model file never changes under its digest, and a loaded model is never changed."""

CANARIES = 50
"""Inputs whose answers must survive saving and loading."""


def live_model(workspace: Workspace, name: str) -> Model:
    """The served model itself. Raises NotFound before there is one, ModelRefused for a file that cannot be trusted."""
    with workspace.store.read() as connection:
        live = live_version(connection, workspace.project, name)
    if live is None:
        raise NotFound(f"no version of model {name!r} is live: `filmroom history --model {name}` says why")
    return load_model(workspace.artifacts, artifact_of(live))


def arm_of(value: Version | None) -> str:
    """The arm that made a version, or the one beneath its patches; the default one where there is none."""
    content = value.content if value is not None else None
    name = str(content.get("refit") or content.get("arm")) if isinstance(content, dict) else DEFAULT_ARM
    return name if name in ARMS else DEFAULT_ARM


def task_of(workspace: Workspace, name: str) -> Task:
    """What stays the same for every arm of this model."""
    section = workspace.settings.weights[name]
    return Task(
        out_of_scope=section.out_of_scope,
        in_scope_rejection=section.in_scope_rejection,
        seed=workspace.settings.seed,
        kind=section.task,
        estimator=section.estimator,
        estimator_params=section.estimator_params,
    )


def check_estimator(workspace: Workspace, name: str) -> None:
    """Raises SettingsError, in a line, where the settings name an estimator that could never be served."""
    section = workspace.settings.weights[name]
    if section.estimator is None:
        return
    try:
        refuse_unusable(section.estimator, section.estimator_params, section.task, seed=workspace.settings.seed)
    except ValueError as error:
        raise SettingsError(f"[weights.{name}] {error}") from error


def patches(workspace: Workspace, name: str, base: Sequence[DatasetRow]) -> bool:
    """Whether corrections of this model are patched: as the settings say, or where it has many base rows."""
    asked = workspace.settings.weights[name].patch
    return len(base) >= FROM_ROWS if asked is None else asked


def ground_names(value: Version) -> dict[str, str] | None:
    """Where the ground of a version's patches lies; None: it keeps none."""
    names = value.content.get("ground") if isinstance(value.content, dict) else None
    return {str(key): str(name) for key, name in names.items()} if isinstance(names, dict) else None


def found_model(workspace: Workspace, name: str) -> Version:
    """Train the first version on the base set and serve it: there is nothing yet that it could be compared with.

    Raises Refused where the base set cannot train a model.
    """
    base = training_rows(workspace.settings, name)
    try:
        task = task_of(workspace, name)
        arm = DEFAULT_ARMS[task.kind]
        model = fit_arm(ARMS[arm], base, [], task=task)
    except ValueError as error:
        raise Refused(f"[weights.{name}] the training file cannot train a model: {error}") from error
    made = keep(workspace, name, model, arm, base, parent=None)
    with workspace.write() as connection:
        reason = f"first version of {name}, trained on its {len(base)} base rows: nothing to compare it with"
        promote(connection, workspace, name, made, reason=reason)
    return made


def keep(
    workspace: Workspace, name: str, model: Model, arm: str, rows: Sequence[DatasetRow], *, parent: str | None,
    patched: Patched | None = None, live: Version | None = None,
) -> Version:  # fmt: skip
    """Write the model file, check that it answers as the model in memory does, and describe it as a version.

    What a later patch needs is written beside it. `patched` says how the model was patched out of the version `live`.
    Raises Refused where the file answers otherwise.
    """
    digest = dataset_digest(rows)
    manifest = Manifest(training=digest, arm=arm, code_version=code_version(), environment=environment())
    artifact = save(model, workspace.artifacts, manifest)
    canaries = [text_of(row) for row in rows[:CANARIES]]
    if not unchanged_by_saving(model, load(workspace.artifacts, artifact), canaries):
        raise Refused(f"the saved model of {name} answers otherwise than the trained one: it is not served")
    content: dict[str, JsonValue] = {"artifact": artifact, "training": digest, "arm": arm, "rows": len(rows)}
    if live is not None:
        content["refit"] = arm_of(live)
    ground = _ground(workspace, name, model, rows) if patched is None else patched.ground
    if ground is not None:
        known = None if live is None else ground_names(live)
        content["ground"] = {**save_ground(ground, workspace.artifacts, known)}
    return Version(
        project=workspace.project,
        target="weights",
        model=name,
        content=content,
        parent=parent,
        created_us=workspace.clock(),
    )


def _ground(workspace: Workspace, name: str, model: Model, rows: Sequence[DatasetRow]) -> Ground | None:
    base = [row for row in rows if row.source == BASE]
    if not isinstance(model, TextModel) or not model.is_one_vs_rest or not patches(workspace, name, base):
        return None
    return ground_of(model, [text_of(row) for row in base])


def code_version() -> str:
    """filmroom's version; `0` in a checkout that was never installed."""
    try:
        return package_version("filmroom")
    except PackageNotFoundError:
        return "0"
