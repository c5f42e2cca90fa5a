"""The live release over HTTP: whole, signed, told apart by its tag, and waited for."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from filmroom.signature import is_signed
from filmroom.signing_key import signing_key
from flows.champion import found_model, live_model
from flows.rollback import rollback
from flows.workspace import Workspace
from store.errors import SettingsError
from tests.live_server import change, fact, live, policy, rule, serving
from tests.shop_log import TOOLS, working_in


@pytest.fixture(scope="module")
def founded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """A project with one of everything; its tests only read, or say what they changed."""
    with working_in(tmp_path_factory.mktemp("shop")) as workspace:
        found_model(workspace, "intents")
        change(workspace, "context", [rule("rule_1", "Offer a voucher first.", intent="cancel")])
        change(workspace, "memory", [fact("fact_1", "u3", "pickup_shop", "Elm Street")])
        change(workspace, "tooling", [policy("update_order", normalisers={"order_id": ["prefix:#"]})])
        yield workspace


@pytest.fixture(scope="module")
def client(founded: Workspace) -> Iterator[httpx.Client]:
    with serving(founded) as url, httpx.Client(base_url=url, trust_env=False, timeout=60) as opened:
        yield opened


@pytest.fixture
def workspace(tmp_path: Path, store_url: str) -> Iterator[Workspace]:
    """A project of the test's own."""
    with working_in(tmp_path, url=store_url) as opened:
        yield opened


def connect(url: str) -> httpx.Client:
    return httpx.Client(base_url=url, trust_env=False, timeout=60)


def test_a_release_is_one_document(client: httpx.Client, founded: Workspace) -> None:
    found = client.get("/v1/release").json()
    now = live(founded)
    [given] = found["context"]["rules"]
    assert (found["release"], found["number"], found["memory"]) == (now.id, 4, {"position": 1})
    assert (given["text"], given["scope"]) == ("Offer a voucher first.", {"intent": "cancel"})
    assert found["tooling"] == {
        "version": now.tooling, "tickets": [], "schemas": TOOLS,
        "policies": [{"tool": "update_order", "normalisers": {"order_id": ["prefix:#"]}}]}  # fmt: skip
    assert found["models"]["intents"]["version"] == now.models["intents"]


def test_whoever_has_the_tag_is_told_that_nothing_changed(client: httpx.Client) -> None:
    first = client.get("/v1/release")
    again = client.get("/v1/release", headers={"if-none-match": f'"other", W/{first.headers["etag"]}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first.headers["etag"])


def test_a_release_is_signed_with_the_projects_key(client: httpx.Client, founded: Workspace) -> None:
    found = client.get("/v1/release").json()
    key = signing_key(founded.settings.home)
    assert is_signed(found, key)
    assert not is_signed({**found, "number": 5}, key)
    assert not is_signed(found, "0" * 64)


def test_the_key_is_its_owners_alone(tmp_path: Path) -> None:
    key = signing_key(tmp_path)
    path = tmp_path / ".filmroom" / "release.key"
    assert (path.stat().st_mode & 0o777, signing_key(tmp_path), list(path.parent.iterdir())) == (0o600, key, [path])
    path.chmod(0o644)
    with pytest.raises(SettingsError, match="chmod 600"):
        signing_key(tmp_path)


def test_who_waits_is_told_at_once(workspace: Workspace) -> None:
    with serving(workspace) as url, connect(url) as client:
        tag = client.get("/v1/release").headers["etag"]
        threading.Timer(0.5, lambda: change(workspace, "context", [rule("rule_1", "Be brief.")])).start()
        started = time.monotonic()
        found = client.get("/v1/release?wait=30", headers={"if-none-match": tag})
        waited = time.monotonic() - started
    assert found.json()["context"]["rules"][0]["text"] == "Be brief."
    assert 0.3 < waited < 10


def test_who_waits_in_vain_is_told_so_when_the_time_is_over(client: httpx.Client) -> None:
    tag = client.get("/v1/release").headers["etag"]
    started = time.monotonic()
    assert client.get("/v1/release?wait=0.5", headers={"if-none-match": tag}).status_code == 304
    assert time.monotonic() - started >= 0.4


def test_who_waits_without_a_release_gets_the_live_one(client: httpx.Client) -> None:
    assert client.get("/v1/release?wait=60", headers={"if-none-match": '"old"'}).status_code == 200


@pytest.mark.parametrize("query", ["wait=x", "wait=-1", "wait=61", "wait=nan", "wait=1&wait=2"])
def test_an_impossible_wait_is_refused(client: httpx.Client, query: str) -> None:
    assert client.get(f"/v1/release?{query}").status_code == 400


def test_a_rollback_is_a_new_release_with_the_old_state(workspace: Workspace) -> None:
    first = live(workspace)
    change(workspace, "context", [rule("rule_1", "Be brief.")])
    with serving(workspace) as url, connect(url) as client:
        second = client.get("/v1/release")
        rollback(workspace, first.id, reason="")
        third = client.get("/v1/release", headers={"if-none-match": second.headers["etag"]}).json()
    assert (third["number"], third["context"]["rules"], third["context"]["version"]) == (2, [], first.context)


def test_the_facts_of_a_user_and_of_nobody_else(client: httpx.Client, founded: Workspace) -> None:
    found = client.get("/v1/memory?user=u3").json()
    [given] = found["facts"]
    assert (found["user"], found["release"], found["position"]) == ("u3", live(founded).id, 1)
    assert (given["predicate"], given["value"], "source" in given) == ("pickup_shop", "Elm Street", False)
    assert client.get("/v1/memory?user=u4").json()["facts"] == []


def test_facts_have_a_tag_and_a_signature(client: httpx.Client, founded: Workspace) -> None:
    first = client.get("/v1/memory?user=u3")
    assert client.get("/v1/memory?user=u3", headers={"if-none-match": first.headers["etag"]}).status_code == 304
    assert is_signed(first.json(), signing_key(founded.settings.home))


def test_facts_as_of_an_earlier_release(workspace: Workspace) -> None:
    first = change(workspace, "memory", [fact("fact_1", "u3", "size", "M")])
    change(workspace, "memory", [fact("fact_2", "u3", "size", "L")])
    with serving(workspace) as url, connect(url) as client:
        values = [
            client.get(f"/v1/memory?user=u3{more}").json()["facts"][0]["value"] for more in (f"&release={first.id}", "")
        ]
    assert values == ["M", "L"]


@pytest.mark.parametrize(
    ("query", "status"),
    [("", 400), ("user=", 400), ("user=a&user=b", 400), ("user=a%00", 400), ("user=a&release=rel_nothing", 404)],
)
def test_facts_of_nobody_are_refused(client: httpx.Client, query: str, status: int) -> None:
    assert client.get(f"/v1/memory?{query}").status_code == status


def test_predictions_are_those_of_the_live_model(client: httpx.Client, founded: Workspace) -> None:
    texts = ["where is order 5", "i want to return item 9"]
    found = client.post("/v1/predict", json={"model": "intents", "texts": texts}).json()
    expected = [answer.model_dump() for answer in live_model(founded, "intents").predict(texts)]
    assert (found["predictions"], found["version"]) == (expected, live(founded).models["intents"])


def test_a_named_version_answers_also_after_another_is_live(workspace: Workspace) -> None:
    version = found_model(workspace, "intents").id
    first = live(workspace)
    asked: dict[str, Any] = {"model": "intents", "texts": ["where is order 5"]}
    with serving(workspace) as url, connect(url) as client:
        rollback(workspace, first.parent or "", reason="no model")
        assert client.post("/v1/predict", json=asked).status_code == 404
        assert client.post("/v1/predict", json={**asked, "version": version}).json()["version"] == version


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"model": "intents"}, 400),
        ({"model": "intents", "texts": "one"}, 400),
        ({"model": "intents", "texts": [5]}, 400),
        ({"model": "intents", "texts": ["x" * 20_001]}, 400),
        ({"model": "intents", "texts": ["x"] * 1001}, 413),
        ({"model": "other", "texts": ["x"]}, 404),
        ({"model": "intents", "texts": ["x"], "version": "ver_nothing"}, 404),
    ],
)
def test_what_cannot_be_predicted_is_refused(client: httpx.Client, body: dict[str, Any], status: int) -> None:
    answer = client.post("/v1/predict", json=body)
    assert (answer.status_code, bool(answer.json()["message"])) == (status, True)


def test_a_version_of_another_target_predicts_nothing(client: httpx.Client, founded: Workspace) -> None:
    asked = {"model": "intents", "texts": ["x"], "version": live(founded).context}
    assert client.post("/v1/predict", json=asked).status_code == 404


def test_a_model_file_is_what_its_digest_says(client: httpx.Client) -> None:
    digest = client.get("/v1/release").json()["models"]["intents"]["artifact"]
    assert hashlib.sha256(client.get(f"/v1/models/{digest}").content).hexdigest() == digest


@pytest.mark.parametrize("digest", ["0" * 64, "x", "..%2f..%2ffilmroom.toml", "%2e%2e%2frelease.key"])
def test_no_other_file_is_given_out(client: httpx.Client, digest: str) -> None:
    assert client.get(f"/v1/models/{digest}").status_code == 404


@pytest.mark.parametrize("path", ["/v1/release", "/v1/memory?user=u3", f"/v1/models/{'0' * 64}"])
def test_a_token_is_asked_for_where_there_is_one(workspace: Workspace, path: str) -> None:
    with serving(workspace, token="secret") as url, connect(url) as client:  # noqa: S106  # the test's own
        assert client.get(path).status_code == 401
        assert client.post("/v1/predict", json={}).status_code == 401
        assert client.get(path, headers={"authorization": "Bearer secret"}).status_code != 401


def test_a_web_page_by_another_name_reaches_nothing(client: httpx.Client) -> None:
    assert client.get("/v1/memory?user=u3", headers={"host": "rebound.example"}).status_code == 400


@pytest.mark.slow
def test_who_waits_does_not_keep_the_server_from_ending(workspace: Workspace) -> None:
    command = [sys.executable, "-m", "filmroom", "serve", "--port", "0", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent.parent)}
    home = workspace.settings.home
    environment["FILMROOM_STORE__URL"] = workspace.store.engine.url.render_as_string(hide_password=False)
    process = subprocess.Popen(command, cwd=home, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout:
        text = ""
        while not text.endswith("}\n"):
            text += process.stdout.readline()
        with connect(json.loads(text)["url"]) as client:
            tag = client.get("/v1/release").headers["etag"]
            threading.Timer(1.0, lambda: process.send_signal(signal.SIGINT)).start()
            started = time.monotonic()
            assert client.get("/v1/release?wait=60", headers={"if-none-match": tag}).status_code == 304
            assert process.wait(30) == 0
    assert time.monotonic() - started < 20
