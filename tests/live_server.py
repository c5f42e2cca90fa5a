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
from flows.champion import found_model
from flows.targets import FLOWS
from flows.workspace import Workspace
from models.artifacts import Manifest, environment, save
from models.text_model import TextModel
from store.group_commit import GroupWriter
from store.records import Operation, Release, Target, Version
from store.releases import live_release, move_live, put_version


@contextmanager
def serving(workspace: Workspace, token: str | None = None, port: int = 0) -> Iterator[str]:
    """The base URL of the API over the workspace's store."""
    with GroupWriter(workspace.store, clock=workspace.clock) as writer:
        app = make_app(api_of(workspace.settings, workspace.store, writer, Access(token)))
        with hosting(app, port) as url:
            yield url


@contextmanager
def hosting(app: Any, port: int = 0) -> Iterator[str]:
    """The base URL of an application in a thread on a loopback port; `port` 0: any that is free."""
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
    given: dict[str, Any] = {"scope": scope, "scope_id": user, "subject": user, "predicate": predicate, "value": value}
    given |= {"source": user} if scope == "user" else {"source": "staff:ann", "authority": True}
    return Operation(target="memory", verb="add", key=key, value=given)


def policy(tool: str, **value: Any) -> Operation:
    return Operation(target="tooling", verb="add", key=tool, value=value)


def live(workspace: Workspace) -> Release:
    with workspace.store.read() as connection:
        return live_release(connection, workspace.project)


def swap_all(workspace: Workspace, number: int, model: str, user: str = "u3") -> Release:
    """One release in which all four targets are changed to say `number`, or to `model`; made live at once."""
    verb = "edit" if number else "add"
    targets: list[tuple[Target, Operation]] = [
        ("context", rule("rule_1", f"Say {number}.", verb=verb)),
        ("memory", fact(f"fact_{number}", user, "number", number)),
        ("tooling", policy("update_order", retries=number)),
    ]
    with workspace.store.write() as connection:
        current = live_release(connection, workspace.project)
        now_us = workspace.clock()
        made = current
        for target, operation in targets:
            served = FLOWS[target].apply(connection, made, [operation], correction_id="cor_test", now_us=now_us)
            made = served.release
        last = made.model_copy(
            update={"parent": current.id, "number": current.number + 1, "models": {"intents": model},
                    "actor": "staff:ann", "reason": "swap"}
        )  # fmt: skip
        move_live(connection, current, last)
        return last


def two_models(workspace: Workspace) -> tuple[str, str]:
    """Version ids of two models of `intents`; the second calls `status` by another name."""
    first = found_model(workspace, "intents")
    rows = [(f"where is order {n} now", "renamed") for n in range(20)]
    rows += [(f"i want to return item {n}", "return") for n in range(20)]
    model = TextModel().fit([text for text, _ in rows], [label for _, label in rows])
    manifest = Manifest(training="", arm="", code_version="", environment=environment())
    artifact = save(model, workspace.artifacts, manifest)
    second = Version(project=workspace.project, target="weights", model="intents", content={"artifact": artifact},
                     created_us=workspace.clock())  # fmt: skip
    with workspace.store.write() as connection:
        return first.id, put_version(connection, second)
