"""Tickets: told to the address in the settings and to nobody else, signed; open again when the failure comes back."""

import hashlib
import hmac
import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from filmroom.signing_key import signing_key
from flows import tickets
from flows.auto_review import tell
from flows.edit import edit
from flows.review import reroute
from flows.tickets import SIGNATURE, TIMESTAMP, live_tickets
from flows.turn import turn
from flows.workspace import Workspace
from store.records import Ticket
from store.review_queue import review_queue
from tests.shop_log import said, satisfied, take_in, trace, working_in

Received = list[tuple[dict[str, str], bytes]]


def broken(number: int, *, day: int = 0) -> list[dict[str, Any]]:
    """A tool that fails whatever it is called with."""
    call = {"id": "c", "kind": "tool", "name": "get_stock", "input": {"item": f"i{number}"}, "status": "error",
            "error": "Error: no connection to the stock database"}  # fmt: skip
    return [trace(number, day=day, input="in stock?", output="I do not know", spans=[call]),
            said(number, day=day, name="thumb", score=0)]  # fmt: skip


@contextmanager
def receiver(*answers: int) -> Iterator[tuple[str, Received]]:
    """A server on loopback that answers with these codes, then with 200, and what it received."""
    received: Received = []
    codes = iter(answers)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append((dict(self.headers), body))
            self.send_response(next(codes, 200))
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook", received
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """A project with one open ticket."""
    monkeypatch.setattr(tickets, "PAUSE_S", 0.01)
    with working_in(tmp_path) as opened:
        take_in(opened, *(satisfied(n) for n in range(20)), *(broken(n) for n in range(40, 44)))
        turn(opened)
        [row] = review_queue(opened.store)
        reroute(opened, row["correction"], to="tooling")
        signing_key(opened.settings.home)
        yield opened


def ticket(workspace: Workspace) -> Ticket:
    with workspace.store.read() as connection:
        [found] = live_tickets(connection, workspace.project)
    return found


def telling(workspace: Workspace, url: str | None) -> Workspace:
    agent = workspace.settings.agent.model_copy(update={"webhook": url})
    return workspace.acting(settings=workspace.settings.model_copy(update={"agent": agent}))


def test_nothing_is_sent_by_default(workspace: Workspace) -> None:
    assert (tell(workspace).posted, tell(workspace).waiting) == ((), ())


def test_a_ticket_is_posted_once_and_signed(workspace: Workspace) -> None:
    with receiver() as (url, received):
        told = telling(workspace, url)
        assert (tell(told).posted, tell(told).posted) == ((ticket(workspace).id,), ())
    [(headers, body)] = received
    signed = headers[TIMESTAMP].encode() + b"." + body
    key = signing_key(workspace.settings.home).encode()
    assert headers[SIGNATURE] == "sha256=" + hmac.new(key, signed, hashlib.sha256).hexdigest()
    assert json.loads(body)["id"] == ticket(workspace).id


@pytest.mark.parametrize(("answers", "posts", "arrived"), [((500, 429), 3, True), ((400,), 1, False), ((302,), 1, False),
                                                           ((503, 503, 503), 3, False)])  # fmt: skip
def test_a_receiver_that_is_busy_is_asked_again_and_one_that_refuses_is_not(
    workspace: Workspace, answers: tuple[int, ...], posts: int, arrived: bool
) -> None:
    with receiver(*answers) as (url, received):
        assert bool(tell(telling(workspace, url)).posted) == arrived
        assert [headers["Host"] in url for headers, _ in received] == [True] * posts


def test_what_did_not_arrive_is_sent_in_the_next_turn(workspace: Workspace) -> None:
    assert tell(telling(workspace, "http://127.0.0.1:9/hook")).error == "127.0.0.1:9: ConnectError"
    with receiver() as (url, received):
        turn(telling(workspace, url))
        assert len(received) == 1


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://host/x", "javascript:1"])
def test_an_address_that_is_none_is_named_and_stops_nothing(workspace: Workspace, url: str) -> None:
    assert "no http address" in tell(telling(workspace, url)).error
    assert turn(telling(workspace, url)).run


def test_a_resolved_ticket_opens_again_when_its_failure_comes_back(workspace: Workspace) -> None:
    """An open ticket mends nothing: its failure going on takes nothing back. After it is called resolved it counts."""
    later = workspace.acting(clock=lambda: workspace.clock() + 400 * 86_400_000_000)
    take_in(workspace, *(broken(n, day=1) for n in range(100, 112)))
    turn(workspace)
    assert ticket(workspace).resolved is False
    edit(workspace, "tooling", "ticket_resolve", key=ticket(workspace).id)
    turn(workspace)
    assert ticket(workspace).resolved is True
    take_in(later, *(broken(n, day=700) for n in range(200, 202)))
    turn(later)
    assert (ticket(workspace).resolved, ticket(workspace).resolved_us) == (False, None)


def test_a_ticket_that_opens_again_is_posted_again(workspace: Workspace) -> None:
    with receiver() as (url, received):
        told = telling(workspace, url)
        tell(told)
        edit(told, "tooling", "ticket_resolve", key=ticket(workspace).id)
        take_in(told, *(broken(n, day=700) for n in range(200, 202)))
        turn(told)
        assert len(received) == 2
