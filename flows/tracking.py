"""Retrains in an MLflow tracking server, where the settings name one: a run each, and the served model in its registry.

MLflow's REST API (mlflow.org, versions 2 and 3) is spoken over HTTP, so that neither needs the other's packages. What was
told is in the ledger; a server that is away is told in a later turn, and delays nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from flows.model_card import card_of
from flows.serving import artifact_of
from flows.workspace import Workspace
from models.artifacts import artifact_path
from store.errors import SettingsError
from store.ledger import events_of, record_event
from store.records import Record, Retrain, Version
from store.releases import live_release, version
from store.retrains import retrains_of

TIMEOUT_S = 20.0
NEWEST = 50
"""Retrains that are looked through for some that were not told yet."""
ALIAS = "champion"
"""The registry's alias of the version that is served."""


class Tracked(Record):
    """What was told."""

    runs: tuple[str, ...] = ()
    """Retrains that the server knows now."""
    error: str = ""
    """Why others are not known yet; they are told in the next turn."""


def track(workspace: Workspace) -> Tracked:
    """Tell the server of every trained retrain that it does not know yet, oldest first. Raises SettingsError."""
    url = workspace.settings.tracking.mlflow
    if url is None:
        return Tracked()
    if urlsplit(url).scheme not in ("http", "https"):
        raise SettingsError(f"[tracking] mlflow: {url!r} is no http address")
    told: list[str] = []
    try:
        with _server(url) as server:
            for each in _due(workspace):
                _tell(server, workspace, each)
                told.append(each.id)
    except httpx.HTTPError as error:
        return Tracked(runs=tuple(told), error=f"MLflow at {url}: {str(error) or type(error).__name__}")
    return Tracked(runs=tuple(told))


@contextmanager
def _server(url: str) -> Iterator[httpx.Client]:
    """No redirects and no proxies: it goes to the address in the settings alone."""
    with httpx.Client(base_url=url.rstrip("/"), timeout=TIMEOUT_S, trust_env=False, follow_redirects=False) as client:
        yield client


def _due(workspace: Workspace) -> list[Retrain]:
    with workspace.store.read() as connection:
        found = [each for each in retrains_of(connection, workspace.project, None, NEWEST) if each.arm is not None]
        known = {each.id: events_of(connection, workspace.project, each.id) for each in found}
    return [each for each in reversed(found) if not any(event["event"] == "tracked" for event in known[each.id])]


def _tell(server: httpx.Client, workspace: Workspace, retrain: Retrain) -> None:
    run = _run(server, workspace, retrain)
    if retrain.decision == "promoted" and retrain.version is not None:
        _register(server, workspace, retrain, run)
    with workspace.write() as connection:
        record_event(connection, workspace.project, at_us=workspace.clock(), actor=workspace.actor, event="tracked",
                     subject=retrain.id, reason=f"MLflow run {run['info']['run_id']}")  # fmt: skip


def _run(server: httpx.Client, workspace: Workspace, retrain: Retrain) -> dict[str, Any]:
    """The run of a retrain; one that an interrupted turn began is found again by its tag."""
    experiment = _experiment(server, workspace.settings.tracking.experiment)
    sought = {"experiment_ids": [experiment], "filter": f"tags.`filmroom.retrain` = '{retrain.id}'", "max_results": 1}
    known = _asked(server, "POST", "runs/search", sought).get("runs", [])
    started_ms = retrain.at_us // 1000
    tags = {
        "filmroom.retrain": retrain.id,
        "filmroom.decision": retrain.decision,
        "mlflow.note.content": retrain.reason,
    }
    made: dict[str, Any] = known[0] if known else _asked(server, "POST", "runs/create", {
        "experiment_id": experiment, "run_name": f"{retrain.model} {retrain.id}", "start_time": started_ms,
        "tags": [{"key": key, "value": value[:5000]} for key, value in tags.items()],
    })["run"]  # fmt: skip
    numbers = {**retrain.numbers, **retrain.metrics, "seconds": retrain.seconds, "fits": float(retrain.estimator_fits)}
    params = {"model": retrain.model, "arm": retrain.arm or "", "data_digest": retrain.data_digest or "",
              "version": retrain.version or "", "parent": retrain.parent or ""}  # fmt: skip
    run_id = made["info"]["run_id"]
    _asked(server, "POST", "runs/log-batch", {
        "run_id": run_id,
        "metrics": [{"key": key, "value": value, "timestamp": started_ms, "step": 0}
                    for key, value in numbers.items() if value is not None],
        "params": [{"key": key, "value": value} for key, value in params.items() if value],
    })  # fmt: skip
    ended_ms = started_ms + round(1000 * retrain.seconds)
    _asked(server, "POST", "runs/update", {"run_id": run_id, "status": "FINISHED", "end_time": ended_ms})
    return made


def _register(server: httpx.Client, workspace: Workspace, retrain: Retrain, run: dict[str, Any]) -> None:
    """The model file and its card as artefacts of the run, and a registered version; the live one has the alias."""
    with workspace.store.read() as connection:
        found: Version = version(connection, retrain.version or "")
        card = card_of(connection, workspace.artifacts, found)
        is_live = live_release(connection, workspace.project).models.get(retrain.model) == found.id
    file = artifact_path(workspace.artifacts, artifact_of(found))
    _upload(server, run, "model/model.skops", file)
    _upload(server, run, "model/card.md", card.encode())
    name = f"{workspace.project}.{retrain.model}"
    _asked(server, "POST", "registered-models/create", {"name": name}, taken=True)
    source = f"{run['info']['artifact_uri']}/model"
    made = _asked(server, "POST", "model-versions/create", {
        "name": name, "source": source, "run_id": run["info"]["run_id"], "description": f"{found.id}: {retrain.reason}"[:5000],
        "tags": [{"key": "filmroom.version", "value": found.id}],
    })  # fmt: skip
    if is_live:
        number = str(made["model_version"]["version"])
        _asked(server, "POST", "registered-models/alias", {"name": name, "alias": ALIAS, "version": number})


def _upload(server: httpx.Client, run: dict[str, Any], name: str, content: Path | bytes) -> None:
    info = run["info"]
    path = f"/api/2.0/mlflow-artifacts/artifacts/{info['experiment_id']}/{info['run_id']}/artifacts/{name}"
    body = content.read_bytes() if isinstance(content, Path) else content
    server.put(path, content=body, headers={"Content-Type": "application/octet-stream"}).raise_for_status()


def _experiment(server: httpx.Client, name: str) -> str:
    answer = server.get("/api/2.0/mlflow/experiments/get-by-name", params={"experiment_name": name})
    if answer.status_code == 404:
        return str(_asked(server, "POST", "experiments/create", {"name": name})["experiment_id"])
    answer.raise_for_status()
    return str(answer.json()["experiment"]["experiment_id"])


def _asked(
    server: httpx.Client, method: str, name: str, body: dict[str, Any], *, taken: bool = False
) -> dict[str, Any]:
    """The answer's JSON; `taken`: something of this name may be there already."""
    answer = server.request(method, f"/api/2.0/mlflow/{name}", json=body)
    if taken and answer.status_code == 400 and "ALREADY_EXISTS" in answer.text:
        return {}
    if answer.is_error:
        raise httpx.HTTPStatusError(
            f"{name} answered {answer.status_code}: {answer.text[:200]}", request=answer.request, response=answer
        )
    found: dict[str, Any] = answer.json()
    return found
