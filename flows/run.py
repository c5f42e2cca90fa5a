"""`filmroom run`: one turn now, tracked by a Prefect server where one answers, the same turn untracked where none does."""

import os
from pathlib import Path

from flows.prefect_server import tracking_url
from flows.turn import TurnSummary, turn
from flows.workspace import Workspace


def run_turn(workspace: Workspace, settings_file: Path) -> tuple[TurnSummary, str]:
    """One turn, and a sentence on who tracked it. A server that goes away in the middle does not stop a turn: it is taken up
    again without it, which does nothing twice.
    """
    url = tracking_url(workspace.settings.home) if settings_file.exists() else None
    if url is None:
        return turn(workspace), "untracked: no Prefect server is running (`filmroom schedule start`)"
    os.environ["PREFECT_API_URL"] = url
    from flows.improve import run_tracked

    done = run_tracked(settings_file.resolve(), workspace.actor)
    if done is None:
        return turn(workspace), f"untracked: the Prefect server at {url} went away"
    return done, f"tracked by the Prefect server at {url}"
