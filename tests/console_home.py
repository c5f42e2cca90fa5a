"""A project with a queue to review, its console in a thread on a loopback port, and people who log in to it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from filmroom.console.app import console_of, console_routes
from filmroom.console.cookies import SESSION, Signer
from filmroom.console.passwords import hash_password
from filmroom.signing_key import signing_key
from filmroom.web.access import Access
from filmroom.web.app import make_app
from filmroom.web.server import api_of
from flows.turn import turn
from flows.workspace import Workspace
from store.corrections import waiting
from store.group_commit import GroupWriter
from store.settings import ConsoleSection
from store.users import Role, add_user, begin_login, user_named
from tests.live_server import hosting
from tests.shop_log import (
    TOOLS,
    bad_argument,
    forgotten_fact,
    misread,
    said,
    satisfied,
    take_in,
    trace,
    unwritten_rule,
    working_in,
)

PASSWORD = "a long password"  # noqa: S105 -- of invented people
TOOLS_MANY = 24
_HASH = hash_password(PASSWORD)


@contextmanager
def reviewing(folder: Path, *, tools: int = 0, url: str | None = None, **console: Any) -> Iterator[Workspace]:
    """A workspace after one turn: one correction of each of the four kinds, and `tools` more in tooling.

    `console`: fields of the settings' section.
    """
    with working_in(folder, url=url) as opened:
        names = [f"tool_{n}" for n in range(tools)]
        (folder / "tools.json").write_text(json.dumps({**TOOLS, **dict.fromkeys(names, TOOLS["update_order"])}))
        settings = opened.settings.model_copy(update={"console": ConsoleSection(**console)})
        workspace = opened.acting(settings=settings)
        take_in(workspace, *(satisfied(n) for n in range(20)), *(bad_argument(n) for n in range(40, 45)),
                *(unwritten_rule(n) for n in range(50, 55)), *(forgotten_fact(n) for n in range(60, 65)),
                *(misread(n) for n in range(70, 75)),
                *(_bad_call(1000 + 10 * k + n, name) for k, name in enumerate(names) for n in range(2 + k % 3)))  # fmt: skip
        turn(workspace)
        yield workspace


def _bad_call(number: int, tool: str) -> list[dict[str, Any]]:
    call = {"id": "c", "kind": "tool", "name": tool, "input": {"order_id": str(number)}, "status": "error",
            "error": "Error: order_id is not valid"}  # fmt: skip
    return [trace(number, input="change my order", output="that did not work", spans=[call]),
            said(number, name="thumb", score=0)]  # fmt: skip


@contextmanager
def console(workspace: Workspace) -> Iterator[str]:
    """The base URL of the workspace's console and API."""
    with GroupWriter(workspace.store, clock=workspace.clock) as writer:
        api = api_of(workspace.settings, workspace.store, writer, Access(None))
        app = make_app(api, console_routes(console_of(workspace)))
        with hosting(app) as url:
            yield url


def person(workspace: Workspace, name: str, role: Role = "reviewer") -> str:
    """The session cookie of a user, made where there is none of this name."""
    with workspace.store.write() as connection:
        found = user_named(connection, workspace.project, name)
        if found is None:
            found = add_user(connection, workspace.project, name, role, now_us=workspace.clock(), password=_HASH)
        secret = begin_login(connection, workspace.project, found.id, now_us=workspace.clock())
    return Signer(signing_key(workspace.settings.home)).sign("session", secret)


@contextmanager
def client(workspace: Workspace, base: str, name: str, role: Role = "reviewer") -> Iterator[httpx.Client]:
    """A client that is logged in, and sends the session's token with what it changes."""
    cookies = {SESSION: person(workspace, name, role)}
    with httpx.Client(base_url=base, trust_env=False, timeout=60, cookies=cookies) as made:
        made.headers["x-csrf-token"] = made.get("/api/me").json()["csrf"]
        yield made


def correction_in(workspace: Workspace, target: str) -> str:
    """The id of a correction that waits with this target, the largest first."""
    with workspace.store.read() as connection:
        queue = waiting(connection, workspace.project)
    return next(found.id for found, _, _ in queue if found.proposal and found.proposal.target == target)
