"""`filmroom run`: one turn now, tracked by a Prefect server where one answers, the same turn untracked where none does."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flows.prefect_environment import apply, prefect_home
from flows.prefect_server import tracking_url
from flows.schedule_process import running_schedule
from flows.turn import Stage, TurnSummary, turn
from flows.workspace import Workspace


def run_turn(
    workspace: Workspace, settings_file: Path, *, done: Callable[[], None] = lambda: None
) -> tuple[TurnSummary, str]:
    """One turn, and a sentence on who tracked it. A server that goes away in the middle does not stop a turn: it is taken up
    again without it, which does nothing twice. `done` is told of each stage that ends.
    """

    def run_stage(_name: str, stage: Stage, at_work: Workspace) -> Any:
        result = stage(at_work)
        done()
        return result

    url = tracking_url(workspace.settings.home) if settings_file.exists() else None
    if url is None:
        return turn(
            workspace, run_stage=run_stage
        ), "not tracked by Prefect: no schedule runs here (`filmroom schedule start`), and none is needed"
    running = running_schedule(prefect_home(workspace.settings.home))
    if running is None:
        os.environ["PREFECT_API_URL"] = url
    else:
        apply(workspace.settings.home, running.port)
    from flows.improve import run_tracked

    summary = run_tracked(settings_file.resolve(), workspace.actor)
    if summary is None:
        return turn(workspace, run_stage=run_stage), f"not tracked by Prefect: its server at {url} went away"
    return summary, f"tracked by the Prefect server at {url}"
