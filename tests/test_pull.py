"""Pulls from running systems: what is new, what changed late, through rate limits and broken pages, from where it left off."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from sqlalchemy import select

from filmroom.main import main
from flows.pull import pull
from store.database import Store, open_store, wall_clock
from store.errors import SettingsError, SourceUnreachable
from store.failures import cursor
from store.ingest import Tally
from store.pulls import pull_source, recognise_system, sample
from store.quarantine import quarantined
from store.records import Episode
from store.settings import SourceSection, read_settings
from store.sources.pull.slices import DAY_US, Slice, iso
from store.sources.sniff import sniff_items
from store.tables import traces
from store.traces import count_traces, episodes
from tests import peers
from tests.shop_log import SETTINGS, working_in

NOW_US = 1_767_225_600_000_000
HOUR_US = 3_600_000_000


@pytest.fixture
def store(sqlite_url: str) -> Iterator[Store]:
    store = open_store(sqlite_url, create=True)
    yield store
    store.close()


def all_episodes(store: Store) -> dict[str, Episode]:
    with store.read() as connection:
        found = episodes(connection, list(connection.execute(select(traces.c.id)).scalars()))
    return {each.trace.external_id: each for each in found}


# Langfuse: a server on loopback that answers as its API documents


def observation(number: int, *, at_us: int, trace: str | None = None, root: bool = True) -> dict[str, Any]:
    return {"id": f"o{number}", "traceId": trace or f"t{number}", "startTime": iso(at_us), "endTime": iso(at_us + 5000),
            "projectId": "p", "parentObservationId": None if root else f"o{number - 1}", "type": "SPAN", "name": "answer",
            "level": "DEFAULT", "input": f'"hello {number}"', "output": '"good day"', "userId": "ann", "environment": "default",
            "isRootObservation": root}  # fmt: skip


def score(number: int, *, at_us: int, trace: str) -> dict[str, Any]:
    return {"id": f"s{number}", "projectId": "p", "name": "thumb", "value": 0, "dataType": "NUMERIC", "source": "API",
            "timestamp": iso(at_us), "createdAt": iso(at_us), "updatedAt": iso(at_us), "environment": "default",
            "comment": "wrong", "subject": {"kind": "trace", "id": trace}}  # fmt: skip


@dataclass
class Langfuse:
    """What the server holds, how it misbehaves, and what it was asked."""

    observations: list[dict[str, Any]] = field(default_factory=list)
    scores: list[dict[str, Any]] = field(default_factory=list)
    busy: int = 0
    """So many requests are answered 429 first."""
    broken: set[str] = field(default_factory=set)
    """A page with one of these ids is cut off."""
    down: bool = False
    older: bool = False
    """Whether it has only what came before observations by version 2 and scores by version 3."""
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def answer(self, path: str, query: dict[str, str]) -> tuple[int, bytes]:
        self.asked.append((path, query))
        if self.down:
            return 503, b"down"
        if self.busy:
            self.busy -= 1
            return 429, b'{"error": "rate limit"}'
        if self.older:
            return self._older(path, query)
        if path == "/api/public/v2/observations":
            return 200, self._page(self.observations, "startTime", query, ("fromStartTime", "toStartTime"))
        if path == "/api/public/health":
            return 200, b'{"status": "OK", "version": "3.1"}'
        if path == "/api/public/v3/scores":
            return 200, self._page(self.scores, "timestamp", query, ("fromTimestamp", "toTimestamp"))
        return 404, b'{"message": "not found"}'

    def _older(self, path: str, query: dict[str, str]) -> tuple[int, bytes]:
        traces = [
            {"id": row["traceId"], "timestamp": row["startTime"], "name": "answer", "userId": "ann"}
            for row in self.observations
        ]
        if path == "/api/public/traces":
            return 200, self._numbered(traces, query)
        if path == "/api/public/v2/scores":
            rows = [
                {**row, "stringValue": None, "traceId": row["subject"]["id"], "subject": None} for row in self.scores
            ]
            return 200, self._numbered(rows, query)
        for trace, row in zip(traces, self.observations, strict=True):
            if path == f"/api/public/traces/{trace['id']}":
                return 200, json.dumps({**trace, "observations": [row], "scores": []}).encode()
        return 404, b"{}"

    def _numbered(self, rows: list[dict[str, Any]], query: dict[str, str]) -> bytes:
        inside = [row for row in rows if query["fromTimestamp"] <= row["timestamp"] < query["toTimestamp"]]
        number, limit = int(query["page"]), int(query["limit"])
        page = inside[(number - 1) * limit : number * limit]
        return json.dumps({"data": page, "meta": {"page": number, "totalPages": -(-len(inside) // limit)}}).encode()

    def _page(self, rows: list[dict[str, Any]], key: str, query: dict[str, str], bounds: tuple[str, str]) -> bytes:
        low, high = query.get(bounds[0], ""), query.get(bounds[1], "z")
        inside = sorted((row for row in rows if low <= row[key] < high), key=lambda row: str(row[key]))
        start, limit = int(query.get("cursor", 0)), int(query["limit"])
        page = inside[start : start + limit]
        more = {"cursor": str(start + limit)} if start + limit < len(inside) else {}
        body = json.dumps({"data": page, "meta": {"limit": limit, **more}}).encode()
        return body[: len(body) // 2] if self.broken & {row["id"] for row in page} else body


@contextmanager
def listening(system: Langfuse) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            address = urlsplit(self.path)
            query = {name: values[-1] for name, values in parse_qs(address.query).items()}
            status, body = system.answer(address.path, query)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            if status == 429:
                self.send_header("Retry-After", "7")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def langfuse() -> Langfuse:
    rows = [observation(n, at_us=NOW_US - (n + 1) * HOUR_US) for n in range(12)]
    return Langfuse(observations=rows, scores=[score(0, at_us=NOW_US - HOUR_US, trace="t3")])


def taken(store: Store, system: Langfuse, *, now_us: int = NOW_US, **section: Any) -> tuple[Tally, list[float]]:
    """One pull of at most five records a page; what became of them, and the waits it would have made."""
    waits: list[float] = []
    with listening(system) as url:
        options = SourceSection(format="langfuse", pull=url, page_size=5, since_days=2, **section)
        tally = pull_source(store, "prod", options, clock=lambda: now_us, sleep=waits.append)
    return tally, waits


def test_all_pages_are_read_and_scores_find_their_traces(store: Store, langfuse: Langfuse) -> None:
    tally, _ = taken(store, langfuse)
    assert tally == Tally(read=25, stored=25, traces=12, spans=12, feedback=1)
    said = all_episodes(store)["t3"]
    assert (said.trace.input, said.trace.user, [each.comment for each in said.feedback]) == (
        "hello 3",
        "ann",
        ["wrong"],
    )
    assert {query.get("cursor") for path, query in langfuse.asked if "observations" in path} >= {None, "5"}


def test_an_older_server_gives_the_same_traces_and_scores(store: Store, langfuse: Langfuse) -> None:
    langfuse.older = True
    tally, _ = taken(store, langfuse)
    assert tally == Tally(read=25, stored=25, traces=12, spans=12, feedback=1)
    assert [each.comment for each in all_episodes(store)["t3"].feedback] == ["wrong"]


def test_the_next_pull_begins_where_the_last_began_less_the_overlap(store: Store, langfuse: Langfuse) -> None:
    taken(store, langfuse)
    langfuse.asked.clear()
    tally, _ = taken(store, langfuse, now_us=NOW_US + HOUR_US, overlap_hours=2)
    starts = [query["fromStartTime"] for _, query in langfuse.asked if "fromStartTime" in query]
    assert (min(starts), tally.stored) == (iso(NOW_US - 2 * HOUR_US), 0)
    with store.read() as connection:
        assert cursor(connection, "default", "pull prod") == NOW_US + HOUR_US


def test_a_score_that_comes_late_is_seen(store: Store, langfuse: Langfuse) -> None:
    taken(store, langfuse)
    langfuse.scores.append(score(1, at_us=NOW_US + 40 * DAY_US, trace="t11"))
    tally, _ = taken(store, langfuse, now_us=NOW_US + 40 * DAY_US + HOUR_US)
    assert (tally.feedback, len(all_episodes(store)["t11"].feedback)) == (1, 1)


def test_a_busy_server_is_waited_for_as_long_as_it_asks(store: Store, langfuse: Langfuse) -> None:
    langfuse.busy = 3
    tally, waits = taken(store, langfuse)
    assert (tally.traces, waits) == (12, [7.0, 7.0, 7.0])


def test_a_broken_page_is_kept_with_its_place_and_the_rest_is_read(store: Store, langfuse: Langfuse) -> None:
    langfuse.broken = {"o7"}
    tally, _ = taken(store, langfuse)
    assert set(all_episodes(store)) == {f"t{n}" for n in range(12)} - {"t7"}
    [kept] = quarantined(store)
    assert (tally.quarantined, "/api/public/v2/observations?" in kept["path"]) == (1, True)


def test_a_page_that_is_mended_is_read_by_the_next_pull(store: Store, langfuse: Langfuse) -> None:
    langfuse.broken = {"o7"}
    taken(store, langfuse)
    langfuse.broken = set()
    taken(store, langfuse, now_us=NOW_US + HOUR_US)
    assert "t7" in all_episodes(store)


def test_a_server_that_is_down_leaves_the_cursor_where_it_was(store: Store, langfuse: Langfuse) -> None:
    langfuse.down = True
    with pytest.raises(SourceUnreachable):
        taken(store, langfuse)
    with store.read() as connection:
        assert cursor(connection, "default", "pull prod") == 0
    assert len(langfuse.asked) < 500


def test_a_server_that_is_not_there_does_not_stop_a_turn(tmp_path: Path) -> None:
    settings = SETTINGS + '[sources.prod]\nformat = "langfuse"\npull = "http://127.0.0.1:9"\n'
    with working_in(tmp_path, settings) as workspace:
        [line] = pull(workspace).lines
    assert line.startswith("prod: not read: http://127.0.0.1:9 does not answer")


def test_a_source_is_pulled_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [observation(1, at_us=wall_clock() - HOUR_US)]
    with listening(Langfuse(observations=rows)) as url:
        source = f'[sources.prod]\nformat = "langfuse"\npull = "{url}"\nsince_days = 1\n'
        (tmp_path / "filmroom.toml").write_text(source)
        assert main(["ingest", "--source", "prod", "--json"]) == 0
    said = json.loads(capfd.readouterr().out)
    assert (said["traces"], said["spans"], said["format"]) == (1, 1, "langfuse")


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"format": "opik", "pull": "http://127.0.0.1:9"}, "langfuse, mlflow, phoenix"),
        ({"format": "langfuse", "pull": "http://127.0.0.1:9", "token_env": "NOT_SET"}, "NOT_SET"),
    ],
)
def test_settings_that_cannot_be_pulled_with_are_named(store: Store, section: dict[str, str], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        pull_source(store, "prod", SourceSection(**section))


def test_the_keys_are_sent_as_the_settings_name_them(
    store: Store, langfuse: Langfuse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PUBLIC", "pk")
    monkeypatch.setenv("SECRET", "sk")
    heard: list[str | None] = []
    transport = httpx.Client.send

    def listen(client: httpx.Client, request: httpx.Request, **more: Any) -> httpx.Response:
        answer = transport(client, request, **more)
        heard.append(answer.request.headers.get("authorization"))
        return answer

    monkeypatch.setattr(httpx.Client, "send", listen)
    taken(store, langfuse, user_env="PUBLIC", password_env="SECRET")  # noqa: S106  # the name of a variable
    assert set(heard) == {"Basic cGs6c2s="}


def test_init_and_scan_look_at_a_running_system(
    langfuse: Langfuse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    now_us = wall_clock()
    langfuse.observations = [observation(1, at_us=now_us - 3_600_000_000)]
    langfuse.scores = [score(1, at_us=now_us - 1_800_000_000, trace=langfuse.observations[0]["traceId"])]
    with listening(langfuse) as url:
        assert main(["init", "--from", url]) == 0
        assert "next: filmroom ingest --source langfuse" in capfd.readouterr().out
        section = read_settings(tmp_path / "filmroom.toml").sources["langfuse"]
        assert (section.format, section.pull) == ("langfuse", url)
        assert main(["ingest", "--source", "langfuse", "--json"]) == 0
        assert json.loads(capfd.readouterr().out)["traces"] == 1
        assert main(["scan", url, "--json"]) == 0
        assert json.loads(capfd.readouterr().out)["log"]["feedback"] == 1


def test_init_says_when_what_answers_is_none_of_the_systems(
    langfuse: Langfuse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with listening(langfuse) as url:
        assert main(["init", "--from", f"{url}/elsewhere"]) == 1
    assert "none of langfuse, mlflow, phoenix" in capfd.readouterr().err
    assert main(["init", "--from", url]) == 1
    assert "does not answer" in capfd.readouterr().err


def test_a_day_is_the_longest_slice() -> None:
    assert [part.end_us - part.start_us for part in Slice(0, 2 * DAY_US + 5).days()] == [DAY_US, DAY_US, 5]


# MLflow and Phoenix: the real servers


def send(url: str, count: int, headers: dict[str, str] | None = None) -> list[tuple[str, str]]:
    """Send traces of two spans each with a stock exporter; their trace ids and root span ids."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(f"{url}/v1/traces", headers=headers)))
    tracer = provider.get_tracer("shop")
    ids = []
    for number in range(count):
        said = {"openinference.span.kind": "AGENT", "input.value": f"hello {number}", "output.value": "good day"}
        with tracer.start_as_current_span("answer", attributes=said) as root:
            with tracer.start_as_current_span("search", attributes={"openinference.span.kind": "TOOL"}):
                pass
            context = root.get_span_context()
            ids.append((f"{context.trace_id:032x}", f"{context.span_id:016x}"))
    provider.shutdown()
    return ids


def looked_at(url: str) -> tuple[str, int, int]:
    """The system that is recognised at a URL, and how many traces and feedback a first look finds."""
    format = recognise_system(url)
    with sample(SourceSection(format=format, pull=url, since_days=1), wall_clock()) as parts:
        found = sniff_items(url, format, *parts)
    return format, found.traces, found.feedback


def pulled(store: Store, format: str, url: str) -> Tally:
    return pull_source(store, "peer", SourceSection(format=format, pull=url, page_size=4, since_days=1))


@pytest.fixture(scope="module")
def mlflow_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with peers.mlflow(tmp_path_factory.mktemp("mlflow")) as url:
        yield url


@pytest.fixture(scope="module")
def phoenix_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with peers.phoenix(tmp_path_factory.mktemp("phoenix")) as url:
        yield url


@pytest.mark.slow
@pytest.mark.peers
def test_mlflow_is_pulled_with_late_feedback_and_nothing_twice(store: Store, mlflow_url: str) -> None:
    [(first, _), *_] = send(mlflow_url, 10, {"x-mlflow-experiment-id": "0"})
    assert pulled(store, "mlflow", mlflow_url) == Tally(read=30, stored=30, traces=10, spans=20)
    assessment = {"assessment_name": "thumb", "trace_id": f"tr-{first}", "feedback": {"value": False},
                  "source": {"source_type": "HUMAN", "source_id": "ann"}, "rationale": "wrong shop"}  # fmt: skip
    path = f"{mlflow_url}/api/3.0/mlflow/traces/tr-{first}/assessments"
    httpx.post(path, json={"assessment": assessment}).raise_for_status()
    late = pulled(store, "mlflow", mlflow_url)
    assert (late.stored, late.feedback) == (1, 1)
    said = all_episodes(store)[f"tr-{first}"]
    assert (said.trace.input, said.feedback[0].principal, said.feedback[0].comment) == ("hello 0", "ann", "wrong shop")
    assert pulled(store, "mlflow", mlflow_url).stored == 0
    assert looked_at(mlflow_url) == ("mlflow", 10, 1)


@pytest.mark.slow
@pytest.mark.peers
def test_phoenix_is_pulled_with_late_annotations_and_nothing_twice(store: Store, phoenix_url: str) -> None:
    [(first, root), *_] = send(phoenix_url, 10)
    wait_for_spans(phoenix_url, 20)
    tally = pulled(store, "phoenix", phoenix_url)
    assert (tally.quarantined, count(store)) == (0, {"traces": 10, "spans": 20, "feedback": 0})
    said = {"annotator_kind": "HUMAN", "result": {"label": "bad", "score": 0, "explanation": "wrong shop"}}
    for kind, id_ in (("span", root), ("trace", first)):
        body = {"data": [{f"{kind}_id": id_, "name": f"{kind} thumb", **said}]}
        httpx.post(f"{phoenix_url}/v1/{kind}_annotations?sync=true", json=body).raise_for_status()
    assert pulled(store, "phoenix", phoenix_url).feedback == 2
    found = all_episodes(store)[first]
    assert [(each.name, each.score, each.comment) for each in sorted(found.feedback, key=lambda each: each.name)] == [
        ("span thumb", 0.0, "wrong shop"),
        ("trace thumb", 0.0, "wrong shop"),
    ]
    assert pulled(store, "phoenix", phoenix_url).stored == 0
    assert looked_at(phoenix_url) == ("phoenix", 10, 2)


def wait_for_spans(url: str, wanted: int) -> None:
    """Phoenix stores a moment after it answers."""
    for _ in range(100):
        found = httpx.get(f"{url}/v1/projects/default/spans", params={"limit": 1000})
        if found.status_code == 200 and len(found.json()["data"]) >= wanted:
            return
        threading.Event().wait(0.2)
    pytest.fail("the spans did not arrive")


def count(store: Store) -> dict[str, int]:
    with store.read() as connection:
        return count_traces(connection, "default")
