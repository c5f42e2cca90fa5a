"""What programs send over HTTP: taken whole or told why not, durable when it is answered, open to this machine alone."""

import gzip
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

import httpx
import pytest
import uvicorn
from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from sqlalchemy import select

from filmroom.main import main
from filmroom.web.access import Access
from filmroom.web.app import Api, make_app
from store.database import Store, open_store
from store.errors import StoreUnreachable, WriterBusy
from store.group_commit import GroupWriter
from store.homes import count_parked
from store.ingest import ingest
from store.quarantine import quarantined
from store.records import Episode, Rejected, Trace
from store.sources.contract import SourceOptions
from store.tables import feedback, traces
from store.traces import count_traces, episodes

TRACE = "5b8efff798038103d269b633813fc60c"
JSON = {"content-type": "application/json"}
PROTOBUF = {"content-type": "application/x-protobuf"}


def span(number: int, *, trace_id: str = TRACE, parent: int | None = None, **more: Any) -> dict[str, Any]:
    return {"traceId": trace_id, "spanId": f"{number:016x}", "parentSpanId": f"{parent:016x}" if parent else "",
            "name": f"step {number}", "startTimeUnixNano": str(1_767_225_600_000_000_000 + number),
            "endTimeUnixNano": str(1_767_225_601_000_000_000 + number), **more}  # fmt: skip


def request_of(*spans: dict[str, Any]) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


def text(key: str, value: str) -> dict[str, Any]:
    return {"key": key, "value": {"stringValue": value}}


@pytest.fixture
def store(sqlite_url: str) -> Iterator[Store]:
    store = open_store(sqlite_url, create=True)
    yield store
    store.close()


@contextmanager
def serving(store: Store, token: str | None = None, max_bytes: int = 1 << 20) -> Iterator[httpx.Client]:
    """The application on a store, in a thread on a loopback port, and a client of it."""
    with socket.create_server(("127.0.0.1", 0)) as listener, GroupWriter(store) as writer:
        app = make_app(Api(store, writer, SourceOptions(source="otlp"), Access(token), max_bytes))
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        try:
            with httpx.Client(base_url=url, trust_env=False, timeout=60) as client:
                yield client
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture
def client(store: Store) -> Iterator[httpx.Client]:
    with serving(store) as client:
        yield client


def all_episodes(store: Store) -> list[Episode]:
    with store.read() as connection:
        return episodes(connection, list(connection.execute(select(traces.c.id)).scalars()))


def test_spans_as_json_become_a_trace(client: httpx.Client, store: Store) -> None:
    root = span(1, attributes=[text("input.value", "hello"), text("output.value", "good day")])
    answer = client.post("/v1/traces", json=request_of(root, span(2, parent=1)))
    assert (answer.status_code, answer.json()) == (200, {})
    [found] = all_episodes(store)
    assert (found.trace.external_id, found.trace.input, len(found.spans)) == (TRACE, "hello", 2)


def test_spans_as_compressed_protobuf_become_the_same_trace(client: httpx.Client, store: Store) -> None:
    request = ExportTraceServiceRequest()
    sent = request.resource_spans.add().scope_spans.add().spans.add()
    sent.trace_id, sent.span_id, sent.name = bytes.fromhex(TRACE), (1).to_bytes(8, "big"), "root"
    sent.start_time_unix_nano, sent.end_time_unix_nano = 1_767_225_600_000_000_000, 1_767_225_601_000_000_000
    body = gzip.compress(request.SerializeToString())
    answer = client.post("/v1/traces", content=body, headers={**PROTOBUF, "content-encoding": "gzip"})
    assert (answer.status_code, answer.content) == (200, b"")
    assert [found.trace.external_id for found in all_episodes(store)] == [TRACE]


def test_what_cannot_be_read_is_counted_with_its_reason_and_kept(client: httpx.Client, store: Store) -> None:
    answer = client.post("/v1/traces", json=request_of(span(1), span(2, trace_id="")))
    partial = answer.json()["partialSuccess"]
    assert (answer.status_code, partial["rejectedSpans"]) == (200, "1")
    [kept] = quarantined(store)
    assert kept["reason"] in partial["errorMessage"]
    with store.read() as connection:
        assert count_traces(connection, "default") == {"traces": 1, "spans": 1, "feedback": 0}


def test_a_partial_success_is_in_the_encoding_of_the_request(client: httpx.Client) -> None:
    request = ExportTraceServiceRequest()
    request.resource_spans.add().scope_spans.add().spans.add().name = "without ids"
    answer = client.post("/v1/traces", content=request.SerializeToString(), headers=PROTOBUF)
    assert answer.headers["content-type"] == "application/x-protobuf"
    said = MessageToDict(ExportTraceServiceResponse.FromString(answer.content))
    assert said["partialSuccess"]["rejectedSpans"] == "1"


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{", JSON, 400),
        (b"\xff\xff\xff", PROTOBUF, 400),
        (b"{}", {"content-type": "text/plain"}, 415),
        (b"{}", {**JSON, "content-encoding": "br"}, 415),
        (b"no gzip", {**JSON, "content-encoding": "gzip"}, 400),
        (gzip.compress(b"{}" * 100, mtime=0)[:-20], {**JSON, "content-encoding": "gzip"}, 400),
        (b" " * (1 << 20) + b"{}", JSON, 413),
    ],
)
def test_a_body_that_cannot_be_read_is_refused_with_the_reason(
    client: httpx.Client, store: Store, body: bytes, headers: dict[str, str], status: int
) -> None:
    answer = client.post("/v1/traces", content=body, headers=headers)
    assert answer.status_code == status
    assert len(answer.content) > 10
    assert all_episodes(store) == []


def test_a_bomb_does_not_unfold(store: Store) -> None:
    bomb = gzip.compress(b"0" * (200 << 20))
    assert len(bomb) < 1 << 20
    with serving(store) as client:
        answer = client.post("/v1/traces", content=bomb, headers={**JSON, "content-encoding": "gzip"})
    assert (answer.status_code, "1 MiB" in answer.json()["message"]) == (413, True)


def test_another_way_of_asking_is_told_as_json(client: httpx.Client) -> None:
    answer = client.get("/v1/feedback")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert answer.json() == {"message": "/v1/feedback takes POST"}
    answer = client.post("/v1/nothing")
    assert (answer.status_code, "/v1/traces" in answer.json()["message"]) == (404, True)


def test_feedback_is_kept_before_its_trace_is_there(client: httpx.Client, store: Store) -> None:
    given = {"trace": TRACE, "name": "thumb", "score": 0, "comment": "wrong shop", "principal": "ann"}
    answer = client.post("/v1/feedback", json=given)
    assert (answer.status_code, answer.json()) == (202, {"accepted": 1, "rejected": 0, "reasons": []})
    client.post("/v1/traces", json=request_of(span(1)))
    [found] = all_episodes(store)
    assert [(each.score, each.comment, each.principal) for each in found.feedback] == [(0.0, "wrong shop", "ann")]


NATIVE = Trace(source="native", external_id="ticket-7", input="where is my parcel")


@pytest.mark.parametrize("order", ["trace first", "feedback first"])
def test_feedback_finds_the_trace_of_another_log(client: httpx.Client, store: Store, order: str) -> None:
    if order == "trace first":
        ingest(store, [NATIVE])
    for _ in range(2):
        client.post("/v1/feedback", json={"trace": "ticket-7", "name": "thumb", "score": 0})
    ingest(store, [NATIVE])
    client.post("/v1/feedback", json={"trace": "ticket-7", "name": "thumb", "score": 0})
    [found] = all_episodes(store)
    assert [(each.source, each.score) for each in found.feedback] == [("native", 0.0)]


def test_feedback_on_a_name_that_two_logs_have_waits_until_it_says_which(client: httpx.Client, store: Store) -> None:
    given = {"trace": "ticket-7", "name": "thumb", "score": 0}
    ingest(store, [NATIVE, NATIVE.model_copy(update={"source": "tabular"})])
    client.post("/v1/feedback", json=given)
    assert [len(each.feedback) for each in all_episodes(store)] == [0, 0]
    with store.read() as connection:
        assert count_parked(connection, "default") == 1
    client.post("/v1/feedback", json={**given, "source": "tabular"})
    assert {each.trace.source: len(each.feedback) for each in all_episodes(store)} == {"native": 0, "tabular": 1}


def test_of_a_list_of_feedback_the_good_is_taken_and_the_rest_named(client: httpx.Client, store: Store) -> None:
    answer = client.post("/v1/feedback", json=[{"trace": TRACE, "score": 1}, {"score": 1}, 5])
    assert answer.status_code == 202
    assert {key: answer.json()[key] for key in ("accepted", "rejected")} == {"accepted": 1, "rejected": 2}
    assert [each["number"] for each in answer.json()["reasons"]] == [2, 3]
    assert len(quarantined(store)) == 2


def test_feedback_sent_again_is_not_counted_twice(client: httpx.Client, store: Store) -> None:
    for _ in range(3):
        client.post("/v1/feedback", json={"trace": TRACE, "name": "thumb", "score": 1})
    with store.read() as connection:
        assert count_traces(connection, "default")["feedback"] == 1


@pytest.mark.parametrize(
    ("configured", "sent", "status"),
    [
        ("secret", "Bearer secret", 202),
        ("sha256:" + hashlib.sha256(b"secret").hexdigest(), "Bearer secret", 202),
        ("secret", "Bearer wrong", 401),
        ("secret", "secret", 401),
        ("secret", "", 401),
    ],
)
def test_a_token_lets_in_whoever_has_it(store: Store, configured: str, sent: str, status: int) -> None:
    with serving(store, token=configured) as client:
        given = {"trace": TRACE, "score": 1}
        assert client.post("/v1/feedback", json=given, headers={"authorization": sent}).status_code == status


def test_without_a_token_a_request_must_name_this_machine(client: httpx.Client) -> None:
    given = {"trace": TRACE, "score": 1}
    assert client.post("/v1/feedback", json=given, headers={"host": "rebound.example"}).status_code == 400
    assert client.get("/health").json() == {"ok": True, "waiting": 0, "redacted": 0}


def test_a_store_that_is_gone_is_told_by_health_and_by_an_export(store: Store, tmp_path: Path) -> None:
    with serving(store) as client:
        store.close()
        for file in tmp_path.glob("filmroom.db*"):
            file.unlink()
        assert client.post("/v1/traces", json=request_of(span(1))).status_code == 503


def test_many_senders_share_commits_and_each_finds_its_part(store: Store) -> None:
    commits: list[int] = []
    with GroupWriter(store, clock=lambda: commits.append(1) or 1) as writer:  # type: ignore[func-returns-value]
        parts = [[Trace(source="t", external_id=f"{sender}-{n}") for n in range(5)] for sender in range(200)]
        with ThreadPoolExecutor(20) as pool:
            list(pool.map(lambda part: writer.submit(list(part)).result(timeout=60), parts))
    with store.read() as connection:
        assert count_traces(connection, "default")["traces"] == 1000
    assert len(commits) < 200


def test_one_senders_impossible_record_does_not_fail_the_others(store: Store) -> None:
    bad = Trace.model_construct(source="t", external_id=cast(str, 5))
    gate = threading.Event()

    def clock() -> int:
        gate.wait(10)
        return 1

    with GroupWriter(store, clock=clock) as writer:
        first = writer.submit([Trace(source="t", external_id="0")])
        later = [writer.submit([item]) for item in (Trace(source="t", external_id="1"), bad)]
        gate.set()
        assert (first.result(10), later[0].result(10)) == (None, None)
        assert isinstance(later[1].exception(10), (AttributeError, TypeError))


def test_a_writer_that_has_ended_takes_nothing_more(store: Store) -> None:
    with GroupWriter(store) as writer:
        pass
    with pytest.raises(WriterBusy):
        writer.submit([Rejected(path="x", line=None, reason="", raw="")])


def test_a_store_that_cannot_be_written_is_told_to_every_sender(store: Store, tmp_path: Path) -> None:
    with GroupWriter(store) as writer:
        store.close()
        for file in tmp_path.glob("filmroom.db*"):
            file.unlink()
        sent = [writer.submit([Trace(source="t", external_id=str(n))]) for n in range(3)]
        assert {type(each.exception(10)) for each in sent} == {StoreUnreachable}


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])  # noqa: S104  # that it is refused is tested
def test_other_machines_are_not_listened_to_without_a_token(
    host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    main(["init"])
    capfd.readouterr()
    assert main(["serve", "--host", host, "--port", "0"]) == 1
    said = capfd.readouterr().err
    assert (said.count("\n"), "FILMROOM_CONSOLE__TOKEN" in said) == (1, True)


@pytest.mark.slow
def test_a_stock_exporter_pointed_at_it_works_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    with running(tmp_path) as (url, process):
        exporter = OTLPSpanExporter(f"{url}/v1/traces", compression=Compression.Gzip)
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        with provider.get_tracer("shop").start_as_current_span("answer", attributes={"input.value": "hello"}):
            pass
        provider.shutdown()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    with_store = open_store(f"sqlite:///{tmp_path / 'filmroom.db'}")
    assert [found.trace.input for found in all_episodes(with_store)] == ["hello"]
    with_store.close()


@pytest.mark.slow
def test_what_was_answered_survives_a_kill(tmp_path: Path) -> None:
    with running(tmp_path) as (url, process):
        for number in range(20):
            httpx.post(f"{url}/v1/feedback", json={"trace": TRACE, "id": str(number), "score": 1}).raise_for_status()
        process.kill()
        process.wait()
    store = open_store(f"sqlite:///{tmp_path / 'filmroom.db'}")
    with store.read() as connection:
        assert len(list(connection.execute(select(feedback.c.id)))) == 20
    store.close()


@contextmanager
def running(home: Path) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    """`filmroom serve` as a process of its own, on a free port."""
    command = [sys.executable, "-m", "filmroom"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent.parent)}
    subprocess.run([*command, "init"], cwd=home, env=environment, check=True, capture_output=True)
    arguments = [*command, "serve", "--port", "0", "--json"]
    process = subprocess.Popen(arguments, cwd=home, env=environment, stdout=subprocess.PIPE, text=True)
    out = cast(IO[str], process.stdout)
    try:
        said = "".join(iter(out.readline, "}\n"))
        yield json.loads(said + "}")["url"], process
    finally:
        process.kill()
        process.wait()
        out.close()
