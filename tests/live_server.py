"""The HTTP API of a project, in a thread on a loopback port, and what its tests change in the project."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import uvicorn

from filmroom.web.access import Access
from filmroom.web.app import make_app
from filmroom.web.server import api_of
from flows.apply import serve
from flows.targets import FLOWS
from flows.workspace import Workspace
from store.group_commit import GroupWriter
from store.records import Operation, Release, Target
from store.releases import live_release


@contextmanager
def serving(workspace: Workspace, token: str | None = None, port: int = 0) -> Iterator[str]:
    """The base URL of the API over the workspace's store."""
    with GroupWriter(workspace.store, clock=workspace.clock) as writer:
        app = make_app(api_of(workspace.settings, workspace.store, writer, Access(token)))
        config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error", lifespan="off", access_log=False)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            while not server.started:
                threading.Event().wait(0.01)
            yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        finally:
            server.should_exit = True
            server.force_exit = True
            thread.join()


def change(workspace: Workspace, target: Target, operations: Sequence[Operation]) -> Release:
    """A release with these deltas applied, made live."""
    with workspace.store.write() as connection:
        current = live_release(connection, workspace.project)
        now_us = workspace.clock()
        served = FLOWS[target].apply(connection, current, operations, correction_id="cor_test", now_us=now_us)
        return serve(connection, current, served, actor="staff:ann", reason="test")


def rule(key: str, argument: str, *, verb: str = "add", action: str = "instruct", **scope: str) -> Operation:
    value: dict[str, Any] = {"scope": scope, "action": action, "argument": argument, "author": "staff:ann"}
    return Operation(target="context", verb=verb, key=key, value=value)


def fact(key: str, user: str, predicate: str, value: Any, *, scope: str = "user") -> Operation:
    given = {"scope": scope, "scope_id": user, "subject": user, "predicate": predicate, "value": value, "source": user}
    return Operation(target="memory", verb="add", key=key, value=given)


def policy(tool: str, **value: Any) -> Operation:
    return Operation(target="tooling", verb="add", key=tool, value=value)


def live(workspace: Workspace) -> Release:
    with workspace.store.read() as connection:
        return live_release(connection, workspace.project)
