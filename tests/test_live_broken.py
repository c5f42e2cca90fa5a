"""Nothing that happens to the server is noticed by the program that takes releases from it."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from filmroom.signing_key import signing_key
from filmroom_live import Live
from flows.workspace import Workspace
from tests.live_program import feedback_in, free_port, live_of, one_of_everything, signed_release, until
from tests.live_server import serving


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """A project with one of everything."""
    with one_of_everything(tmp_path / "shop") as opened:
        yield opened


def test_feedback_waits_on_the_disk_while_the_server_is_away(workspace: Workspace, tmp_path: Path) -> None:
    port, cache = free_port(), tmp_path / "cache"
    with Live(url=f"http://127.0.0.1:{port}", cache=cache) as live:
        for number in range(500):
            live.feedback("t1", name="thumb", score=number)
    assert sum(len(file.read_text().splitlines()) for file in (cache / "feedback").iterdir()) == 500
    with serving(workspace, port=port) as url, live_of(url, cache=cache) as live:
        assert until(lambda: live.status.feedback_waiting == 0)
    assert (feedback_in(workspace), list((cache / "feedback").iterdir())) == (500, [])


def test_the_last_good_release_is_served_when_the_server_is_away(workspace: Workspace, tmp_path: Path) -> None:
    key = signing_key(workspace.settings.home)
    with serving(workspace) as url, live_of(url, cache=tmp_path / "cache", key=key) as live:
        release = live.release
        assert until((tmp_path / "cache" / "release.json").exists)
    with Live(url=url, cache=tmp_path / "cache", key=key) as live:
        assert (live.release, "Be brief." in live.context()) == (release, True)
        assert until(lambda: "refused" in live.status.error)


def test_a_release_on_the_disk_that_was_tampered_with_is_not_served(workspace: Workspace, tmp_path: Path) -> None:
    document = signed_release(workspace)
    document["context"]["rules"][0]["text"] = "Obey."
    (tmp_path / "release.json").write_text(json.dumps(document))
    with Live(url=f"http://127.0.0.1:{free_port()}", cache=tmp_path, key=signing_key(workspace.settings.home)) as live:
        assert (live.context(), live.release.id) == ("", "")


@contextmanager
def answering(answer: Callable[[socket.socket], object]) -> Iterator[str]:
    """A server that does this with every connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        stop = threading.Event()

        def talk(connection: socket.socket) -> None:
            with connection:
                try:
                    connection.recv(65_536)
                    answer(connection)
                except OSError:
                    return

        def listen() -> None:
            listener.settimeout(0.1)
            while not stop.is_set():
                try:
                    connection, _ = listener.accept()
                except TimeoutError:
                    continue
                threading.Thread(target=talk, args=(connection,), daemon=True).start()

        thread = threading.Thread(target=listen)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            stop.set()
            thread.join()


def ok(body: bytes, status: str = "200 OK") -> bytes:
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\nETag: x\r\n\r\n" % (status.encode(), len(body)) + body


def drip(connection: socket.socket) -> None:
    for byte in ok(b"{}" * 500):
        connection.sendall(bytes([byte]))
        time.sleep(0.05)


RUBBISH: dict[str, Callable[[socket.socket], object]] = {
    "nothing": lambda connection: None,
    "no http": lambda connection: connection.sendall(b"\x00\xff" * 1000),
    "a page": lambda connection: connection.sendall(ok(b"<html>welcome</html>")),
    "an error": lambda connection: connection.sendall(ok(b"{}", "500 Oh")),
    "not changed": lambda connection: connection.sendall(ok(b"", "304 Not Modified")),
    "another document": lambda connection: connection.sendall(ok(b'{"format": 1, "release": "rel_x"}')),
    "a list": lambda connection: connection.sendall(ok(b"[" * 100_000)),
    "half": lambda connection: connection.sendall(ok(b'{"format": 1' + b" " * 100)[:-50]),
    "a redirect": lambda connection: connection.sendall(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\n"),
    "silence": lambda connection: time.sleep(3),
    "drops": drip,
}


@pytest.mark.parametrize("kind", RUBBISH)
def test_a_broken_server_is_not_noticed(workspace: Workspace, tmp_path: Path, kind: str) -> None:
    (tmp_path / "release.json").write_text(json.dumps(signed_release(workspace)))
    slowest = 0.0
    with answering(RUBBISH[kind]) as url, Live(url=url, cache=tmp_path) as live:
        for number in range(300):
            started = time.perf_counter()
            assert live.context(intent="cancel").count("\n") == 2
            assert live.tool_call("update_order", {"order_id": "1"}).arguments == {"order_id": "#1"}
            assert live.memory(f"u{number}") == ()
            live.feedback("t1", score=1)
            slowest = max(slowest, time.perf_counter() - started)
            time.sleep(0.001)
        started = time.perf_counter()
        assert live.predict("intents", "hello", timeout_s=0.2) is None
        assert time.perf_counter() - started < 2
    assert slowest < 1


def test_nothing_unsigned_is_taken_where_a_key_is_given(workspace: Workspace) -> None:
    with serving(workspace) as url, Live(url=url, key="another key") as live:
        assert until(lambda: "not signed" in live.status.error)
        assert live.release.id == ""


def test_a_wrong_token_is_told_by_the_status(workspace: Workspace) -> None:
    with serving(workspace, token="secret") as url:  # noqa: S106  # the test's own
        with Live(url=url, token="wrong") as live:  # noqa: S106
            assert until(lambda: "401" in live.status.error)
        with live_of(url, token="secret") as live:  # noqa: S106
            assert live.status.error == ""


def test_a_source_that_is_none_is_told_at_once() -> None:
    with pytest.raises(ValueError, match="either url or folder"):
        Live()
    with pytest.raises(ValueError, match="not an http address"):
        Live(url="ftp://example")
