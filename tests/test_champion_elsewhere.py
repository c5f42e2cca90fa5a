"""A champion that another service serves: its answers of today are the baseline, what it mended is no failure."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from flows.champion_elsewhere import ChampionElsewhere
from flows.training_data import gather
from flows.turn import turn
from store.errors import SettingsError, SourceUnreachable
from store.settings import read_settings
from store.settings_weights import WeightsSection
from tests.shop_log import SETTINGS, working_in
from tests.test_retrain import promoted

Answer = Callable[[dict[str, Any]], tuple[int, Any]]


@contextmanager
def service(answer: Answer) -> Iterator[str]:
    """The address of a service that answers each request's JSON with a status and JSON."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, found = answer({**asked, "authorization": self.headers.get("Authorization")})
            body = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1/predict"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def says(label: str) -> Answer:
    return lambda asked: (200, {"predictions": [{"label": label} for _ in asked["texts"]]})


def test_it_is_asked_in_batches_with_its_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELSEWHERE", "secret")
    seen: list[dict[str, Any]] = []

    def answer(asked: dict[str, Any]) -> tuple[int, Any]:
        seen.append(asked)
        return 200, {"predictions": [{"label": "other"} if text == "7" else {"label": "a"} for text in asked["texts"]]}

    with service(answer) as url:
        section = WeightsSection(champion=url, champion_token_env="ELSEWHERE", out_of_scope="other")  # noqa: S106
        found = ChampionElsewhere("intents", section).predict([str(n) for n in range(600)])
    assert [(each["model"], len(each["texts"]), each["authorization"]) for each in seen] == [
        ("intents", 500, "Bearer secret"), ("intents", 100, "Bearer secret")]  # fmt: skip
    assert [n for n, each in enumerate(found) if each.answer is None] == [7]


@pytest.mark.parametrize(
    ("status", "body", "why"),
    [
        (500, {}, "cannot be asked"),
        (200, {"labels": []}, "answers no"),
        (200, {"predictions": []}, "0 answers to 1 texts"),
    ],
)
def test_another_answer_is_an_error_that_names_the_address(status: int, body: Any, why: str) -> None:
    with service(lambda _: (status, body)) as url, pytest.raises(SourceUnreachable, match=why) as error:
        ChampionElsewhere("intents", WeightsSection(champion=url)).predict(["a"])
    assert url in str(error.value)


def settings(url: str) -> str:
    return SETTINGS.replace("[policy]", f'champion = "{url}"\n[policy]')


def test_a_challenger_is_judged_against_what_the_service_answers_now(tmp_path: Path) -> None:
    with service(says("status")) as url, working_in(tmp_path, settings(url)) as workspace:
        assert promoted(workspace).retrain["decision"] == "promoted"


def test_what_the_service_has_mended_is_no_failure_any_more(tmp_path: Path) -> None:
    with service(says("return")) as url, working_in(tmp_path, settings(url)) as workspace:
        assert promoted(workspace).retrain["decision"] == "skipped"
        assert not any(each.failed for each in gather(workspace, "intents").new)


def test_a_service_that_is_away_trains_nothing_and_stops_no_turn(tmp_path: Path) -> None:
    with working_in(tmp_path, settings("http://127.0.0.1:9/predict")) as workspace:
        promoted(workspace)
        assert "cannot be asked" in turn(workspace).retrain["reason"]


def test_an_unknown_champion_is_refused_by_the_settings(tmp_path: Path) -> None:
    (tmp_path / "filmroom.toml").write_text('[weights.a]\nchampion = "theirs"\n', encoding="utf-8")
    with pytest.raises(SettingsError, match="champion"):
        read_settings(tmp_path / "filmroom.toml")
