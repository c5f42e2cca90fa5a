"""A program that takes the live release of a project, and what its tests wait for."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from filmroom.release_document import release_document
from filmroom.signature import signed
from filmroom.signing_key import signing_key
from filmroom_live import Live, Prediction
from flows.champion import found_model
from flows.workspace import Workspace
from store.traces import count_traces
from tests.live_server import change, fact, policy, rule
from tests.shop_log import working_in

ROOT = Path(__file__).resolve().parent.parent


@contextmanager
def one_of_everything(home: Path) -> Iterator[Workspace]:
    """A project with one of everything."""
    with working_in(home) as opened:
        found_model(opened, "intents")
        change(
            opened, "context", [rule("rule_1", "Offer a voucher first.", intent="cancel"), rule("rule_2", "Be brief.")]
        )
        change(opened, "memory", [fact("fact_1", "u3", "pickup_shop", "Elm Street")])
        change(opened, "tooling", [policy("update_order", normalisers={"order_id": ["trim", "prefix:#"]}, retries=2)])
        yield opened


@contextmanager
def live_of(url: str, **more: Any) -> Iterator[Live]:
    with Live(url=url, **more) as live:
        assert live.ready(30)
        yield live


def until(holds: Callable[[], bool], timeout_s: float = 20.0) -> bool:
    ends = time.monotonic() + timeout_s
    while not holds() and time.monotonic() < ends:
        time.sleep(0.02)
    return holds()


def free_port() -> int:
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def signed_release(workspace: Workspace) -> dict[str, Any]:
    with workspace.store.read() as connection:
        document = release_document(connection, workspace.project, {})
    return json.loads(json.dumps(signed(document, signing_key(workspace.settings.home))))  # type: ignore[no-any-return]


def feedback_in(workspace: Workspace) -> int:
    with workspace.store.read() as connection:
        return count_traces(connection, workspace.project)["feedback"]


def run_filmroom(workspace: Workspace, *arguments: str) -> str:
    command = [sys.executable, "-m", "filmroom", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=workspace.settings.home, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout


def same(found: Prediction | None, expected: Any) -> bool:
    assert found is not None
    is_close = abs(found.confidence - expected.confidence) < 1e-6
    return is_close and (found.label, found.rejected) == (expected.label, expected.rejected)
