"""The turn of `flows.turn` as a Prefect flow: one task a stage over all that is new, and a page a person can read for each.

What makes a turn safe to repeat is in the store, never in Prefect's states; nothing is retried or cached here.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context, copy_context
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from prefect import flow, task
from prefect.artifacts import create_markdown_artifact
from prefect.cache_policies import NO_CACHE
from prefect.exceptions import PrefectException
from prefect.settings import get_current_settings
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from flows.engine import CONNECT_S, Call, Result, Submit, on_dask, refuse_idle
from flows.turn import Stage, TurnSummary, turn
from flows.workspace import Workspace, open_workspace
from store.settings import read_settings
from store.settings_engine import EngineSection

UNREACHED = "Failed to reach API"
"""How Prefect begins the RuntimeError it raises where its server does not answer."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")


@flow(name="improve", persist_result=False, validate_parameters=True)
async def improve(settings_file: str, actor: str = "schedule") -> dict[str, Any]:
    """One turn over the project of these settings; its summary as JSON."""
    return _turn(Path(settings_file), actor)


def run_tracked(settings_file: Path, actor: str) -> TurnSummary | None:
    """One turn tracked by the server of `PREFECT_API_URL`; None: the server went away before it or in the middle of it."""
    try:
        return TurnSummary(**asyncio.run(improve(str(settings_file), actor)))
    except (httpx.HTTPError, PrefectException):
        return None
    except RuntimeError as error:
        if not str(error).startswith(UNREACHED):
            raise
        return None


def _turn(settings_file: Path, actor: str) -> dict[str, Any]:
    """In the flow's own thread, so that a SIGTERM reaches a stage at once; Prefect's heartbeat has a thread of its own."""
    with open_workspace(read_settings(settings_file), actor=actor) as workspace:
        engine = partial(by_task_runner, copy_context())
        return turn(workspace.acting(engine=engine), run_stage=_as_task).model_dump(mode="json")


def _as_task(name: str, stage: Stage, workspace: Workspace) -> Any:
    """Run one stage as a task of the flow, and leave its page."""

    @task(name=name, persist_result=False, cache_policy=NO_CACHE)
    def run() -> Any:
        result = stage(workspace)
        create_markdown_artifact(
            result.markdown(), key=f"filmroom-{name}", description=f"{name} of {workspace.turn_id}"
        )
        return result

    return run()


@contextmanager
def by_task_runner(flow_context: Context, section: EngineSection) -> Iterator[Submit]:
    """A task run a fit: Prefect's threads, or its Dask runner where the workers reach this server to tell of them.

    `flow_context` is the flow's own: that of a stage holds its workspace, which no worker could be sent.
    """
    if section.dask is not None and not _is_reached_from(section.dask):
        with on_dask(section) as submit:
            yield submit
        return
    with _task_runner(section) as runner:

        def submit(name: str, call: Call) -> Result:
            @task(name=name, persist_result=False, cache_policy=NO_CACHE)
            def fit() -> Any:
                return call()

            future = flow_context.copy().run(runner.submit, fit, parameters={})
            return lambda timeout: future.result(timeout=timeout)

        yield submit


@contextmanager
def _task_runner(section: EngineSection) -> Iterator[TaskRunner[Any]]:
    if section.dask is None:
        with ThreadPoolTaskRunner[Any](max_workers=section.threads) as threads:
            yield threads
        return
    from prefect_dask.task_runners import DaskTaskRunner

    with DaskTaskRunner(address=section.dask, client_kwargs={"timeout": CONNECT_S}) as cluster:
        refuse_idle(cluster.client)
        yield cluster


def _is_reached_from(address: str) -> bool:
    """Whether workers beside the scheduler at `address` reach the Prefect server, which may listen on loopback only."""
    server = urlsplit(get_current_settings().api.url or "").hostname
    return server not in LOOPBACK or urlsplit(address).hostname in LOOPBACK
