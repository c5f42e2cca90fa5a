"""Retrains in a real MLflow tracking server."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from flows.tracking import track
from flows.turn import turn
from flows.workspace import Workspace
from store.errors import SettingsError
from tests import peers
from tests.shop_log import SETTINGS, working_in
from tests.test_retrain import promoted

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def mlflow_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with peers.mlflow(tmp_path_factory.mktemp("mlflow")) as url:
        yield url


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    settings = SETTINGS.replace('out_of_scope = "other"', 'out_of_scope = "other"\nchampion = "ours"')
    with working_in(tmp_path, settings) as opened:
        yield opened


def tracking(workspace: Workspace, url: str) -> Workspace:
    section = workspace.settings.tracking.model_copy(update={"mlflow": url})
    return workspace.acting(settings=workspace.settings.model_copy(update={"tracking": section}))


def asked(url: str, call: str, **parameters: Any) -> Any:
    answer = httpx.get(f"{url}/api/2.0/mlflow/{call}", params=parameters, trust_env=False, timeout=20)
    return answer.raise_for_status().json()


@pytest.mark.peers
def test_a_promotion_is_a_run_and_a_registered_version_once(workspace: Workspace, mlflow_url: str) -> None:
    made = promoted(workspace).retrain
    told = track(tracking(workspace, mlflow_url))
    assert (told.runs, told.error) == ((made["retrain"],), "")
    alias = asked(mlflow_url, "registered-models/alias", name="default.intents", alias="champion")["model_version"]
    assert {tag["key"]: tag["value"] for tag in alias["tags"]} == {"filmroom.version": made["version"]}
    run = asked(mlflow_url, "runs/get", run_id=alias["run_id"])["run"]
    assert {each["key"]: each["value"] for each in run["data"]["params"]}["arm"] == "word_char_svc"
    assert "target_newly_right" in {each["key"] for each in run["data"]["metrics"]}
    files = asked(mlflow_url, "artifacts/list", run_id=alias["run_id"], path="model")["files"]
    assert sorted(each["path"] for each in files) == ["model/card.md", "model/model.skops"]
    assert track(tracking(workspace, mlflow_url)).runs == ()


def test_a_server_that_is_away_delays_nothing_and_is_told_later(workspace: Workspace) -> None:
    promoted(workspace)
    away = tracking(workspace, "http://127.0.0.1:9")
    assert track(away).error.startswith("MLflow at http://127.0.0.1:9: ")
    assert turn(away).retrain["decision"] == "skipped"


def test_nothing_is_sent_without_an_address(workspace: Workspace) -> None:
    assert track(workspace).runs == ()
    with pytest.raises(SettingsError, match="is no http address"):
        track(tracking(workspace, "file:///mlruns"))
