"""Turns on a schedule: one Prefect server, one process that serves one deployment; and what can be asked of them.

What a turn does is in `flows/improve.py`; that nothing is done twice is the store's business. Prefect is imported
inside the two functions that serve, after its environment has been applied: it reads its settings once.
"""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from flows.prefect_api import UNFINISHED, CallRefused, Json, PrefectApi, microseconds
from flows.prefect_environment import api_url, apply, importable, prefect_home
from flows.prefect_server import LOG_NAME, answers, bound_to, embedded_server, refuse_taken
from flows.schedule_logs import RunLog, logged_runs, run_log
from flows.schedule_process import ended_by_signals, only_schedule, running_schedule
from flows.schedule_state import ScheduledRun, ScheduleState, as_run, observed, planned
from store.errors import FilmroomError, NotAllowed, SettingsError
from store.settings import FILE_NAME, Settings

if TYPE_CHECKING:
    from prefect.client.schemas.schedules import CronSchedule, IntervalSchedule
    from prefect.deployments.runner import RunnerDeployment

ENTRYPOINT = "flows.improve.improve"
"""With a colon before its last part, Prefect would copy the working folder and put it first on `sys.path`."""

_SHORTEST_S = 10.0
_SWEEP_EVERY_S = 5.0
_PLAN_WITHIN_S = 10.0
_PATIENCE_S = 5.0
"""A busy machine's server may take so long to say that it is well."""


def start(
    settings: Settings, *, lease_held: Callable[[], bool], say: Callable[[str], None], entrypoint: str = ENTRYPOINT
) -> None:
    """Turn on schedule until SIGTERM or Ctrl-C; then end a running turn and the server, and return.

    `lease_held` says whether a live process is at work on the store, and is called from another thread as well; `say`
    is told what happens, a line at a time. For the main thread of a process of its own: changes the working folder,
    so that a `models/` in the user's does not shadow ours.
    Raises NotAllowed when a schedule runs here already or the port is taken, SettingsError for a wrong cron.
    """
    folder, port, file = prefect_home(settings.home), settings.schedule.port, (settings.home / FILE_NAME).resolve()
    with only_schedule(folder, port), ended_by_signals():
        refuse_taken(port)
        apply(settings.home, port)
        os.environ.update(importable())
        os.chdir(folder)
        deployment = _deployment(settings, file, entrypoint)
        say(f"starting Prefect on http://127.0.0.1:{port}")
        with embedded_server(folder, port) as server:
            _settle(PrefectApi(port), lease_held, say)
            with bound_to(server, folder / LOG_NAME):
                _serve(deployment, lambda: say(_turning(settings)))


def list_schedules(settings: Settings, *, last_turn: ScheduledRun | None = None) -> list[ScheduleState]:
    """The schedules of this home; where none answers, the one the settings describe, with the store's `last_turn`."""
    running = running_schedule(prefect_home(settings.home))
    if running is None or not answers(api_url(running.port), timeout_s=_PATIENCE_S):
        return [planned(settings, last_turn)]
    api = PrefectApi(running.port)
    return [observed(api, deployment) for deployment in api.deployments()] or [planned(settings, last_turn)]


def runs_logged(settings: Settings, *, limit: int = 20) -> list[RunLog]:
    """The newest runs on this home's server that have started, each with its log; empty where none answers."""
    running = running_schedule(prefect_home(settings.home))
    if running is None or not answers(api_url(running.port), timeout_s=_PATIENCE_S):
        return []
    return logged_runs(PrefectApi(running.port), limit=limit)


def log_of_run(settings: Settings, run_id: str, *, page: int = 1) -> RunLog:
    """A page of a run's log, newest lines first page. Raises NotFound, NotAllowed where no schedule runs here."""
    return run_log(_running_api(settings), run_id, page=page)


def pause(settings: Settings) -> ScheduleState:
    """Plan no turns until `resume` or the next start; a turn that runs goes on."""
    api = _running_api(settings)
    api.update(_ours(api, settings)["id"], {"paused": True})
    return observed(api, _ours(api, settings))


def resume(settings: Settings) -> ScheduleState:
    """Plan turns again."""
    api = _running_api(settings)
    api.update(_ours(api, settings)["id"], {"paused": False})
    return _replanned(api, settings)


def run_now(settings: Settings) -> ScheduledRun:
    """Ask for a turn now, also of a paused schedule. Raises NotAllowed while one is running."""
    api = _running_api(settings)
    deployment = _ours(api, settings)
    for run in api.runs(*UNFINISHED, of=deployment["id"], sort="START_TIME_DESC", limit=1):
        raise NotAllowed(f"a turn is running already ({run['id']}): wait for its end")
    return as_run(api.trigger(deployment["id"]))


def set_cron(settings: Settings, cron: str, *, timezone: str = "UTC") -> ScheduleState:
    """Turn by a cron expression, until the next start takes `[schedule]` from the settings again."""
    try:
        return _reschedule(settings, {"cron": cron, "timezone": timezone})
    except CallRefused as error:
        raise _no_cron(cron) from error


def set_interval(settings: Settings, interval_s: float) -> ScheduleState:
    """Turn every `interval_s` seconds, until the next start takes `[schedule]` from the settings again."""
    if interval_s < _SHORTEST_S:
        raise SettingsError(f"interval {interval_s:g} s: at least {_SHORTEST_S:g} s")
    zone = settings.schedule.timezone
    anchor = _anchor(zone).isoformat()
    return _reschedule(settings, {"interval": interval_s, "anchor_date": anchor, "timezone": zone})


def _deployment(settings: Settings, file: Path, entrypoint: str) -> "RunnerDeployment":
    """One turn at a time; one that is due meanwhile is dropped, since the next turn catches up from its cursor."""
    from prefect.client.schemas.objects import ConcurrencyLimitConfig, ConcurrencyLimitStrategy
    from prefect.deployments.runner import RunnerDeployment

    if not file.exists():
        raise SettingsError(f"{file}: no such settings file; write one with `filmroom init`")
    chosen = settings.schedule
    return RunnerDeployment.from_entrypoint(
        entrypoint,
        name=settings.project,
        schedules=[_checked(chosen.cron, chosen.interval_s, chosen.timezone)],
        concurrency_limit=ConcurrencyLimitConfig(limit=1, collision_strategy=ConcurrencyLimitStrategy.CANCEL_NEW),
        parameters={"settings_file": str(file)},
        paused=False,
    )


def _checked(cron: str | None, interval_s: float, timezone: str) -> "CronSchedule | IntervalSchedule":
    from prefect.client.schemas.schedules import CronSchedule, IntervalSchedule

    anchor = _anchor(timezone)
    if cron is None:
        return IntervalSchedule(interval=timedelta(seconds=interval_s), anchor_date=anchor, timezone=timezone)
    try:
        return CronSchedule(cron=cron, timezone=timezone)
    except ValueError as error:
        raise _no_cron(cron) from error


def _no_cron(cron: str) -> SettingsError:
    return SettingsError(f"[schedule] cron: {cron!r} is not a cron expression; try '0 3 * * *'")


def _anchor(timezone: str) -> datetime:
    """A fixed midnight that intervals count from, so that a restart does not put the next turn off."""
    try:
        return datetime(2024, 1, 1, tzinfo=ZoneInfo(timezone))
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise SettingsError(f"[schedule] timezone: {timezone!r} is not an IANA name; try 'Europe/Paris'") from error


def _settle(api: PrefectApi, lease_held: Callable[[], bool], say: Callable[[str], None]) -> None:
    """Put what an earlier start left behind in order, before the first turn is served."""
    for run in _missed(api):
        api.forget(run["id"])
    stale = [run["id"] for run in api.runs(*UNFINISHED, sort="START_TIME_DESC")]
    if not stale:
        return
    if _sweep(api, stale, lease_held):
        say(f"closed {len(stale)} run(s) that an earlier start left unfinished")
        return
    say("a turn of an earlier start is still at work; new ones wait for its end")
    threading.Thread(target=_sweep_later, args=(api, stale, lease_held), daemon=True).start()


def _missed(api: PrefectApi) -> list[Json]:
    """Planned runs whose time has passed, but the last: one turn catches up for all."""
    now_us = datetime.now(UTC).timestamp() * 1_000_000
    runs = api.runs("SCHEDULED", sort="EXPECTED_START_TIME_DESC")
    return [run for run in runs if (microseconds(run["expected_start_time"]) or 0) < now_us][1:]


def _sweep(api: PrefectApi, stale: list[str], lease_held: Callable[[], bool]) -> bool:
    """Force those of the `stale` runs that have not ended to Crashed: one would block the deployment for good.

    False, and nothing done, while a live process holds the store's lease: the run may be its own.
    """
    if lease_held():
        return False
    for run_id in stale:
        if api.run(run_id)["state_type"] in UNFINISHED:
            api.crash(run_id, "its process ended without a word")
    return True


def _sweep_later(api: PrefectApi, stale: list[str], lease_held: Callable[[], bool]) -> None:
    swept = False
    while not swept:
        time.sleep(_SWEEP_EVERY_S)
        with suppress(FilmroomError):
            swept = _sweep(api, stale, lease_held)


def _serve(deployment: "RunnerDeployment", ready: Callable[[], None]) -> None:
    """What `prefect.serve` does, and a word when it is ready: two processes at most, and no pause at its end."""
    from prefect.runner import Runner

    runner = Runner(limit=2, pause_on_shutdown=False)
    runner.add_deployment(deployment)
    # Ctrl-C, which would otherwise leave the running turn Running in Prefect's books; `start` sees to SIGTERM itself.
    signal.signal(signal.SIGINT, runner.handle_sigterm)
    ready()
    asyncio.run(runner.start())


def _turning(settings: Settings) -> str:
    return f"turning {planned(settings).rhythm}; `filmroom schedule list` shows it, Ctrl-C ends it"


def _running_api(settings: Settings) -> PrefectApi:
    """The API of the schedule that runs on this home; raises NotAllowed where none does."""
    running = running_schedule(prefect_home(settings.home))
    if running is None:
        raise NotAllowed("the schedule is not running: start it with `filmroom schedule start`")
    if not answers(api_url(running.port), timeout_s=_PATIENCE_S):
        raise NotAllowed(f"the schedule (process {running.pid}) does not answer yet: try again in half a minute")
    return PrefectApi(running.port)


def _ours(api: PrefectApi, settings: Settings) -> Json:
    for deployment in api.deployments():
        if deployment["name"] == settings.project:
            return deployment
    raise NotAllowed(f"project {settings.project} is not scheduled here: start it with `filmroom schedule start`")


def _reschedule(settings: Settings, schedule: Json) -> ScheduleState:
    api = _running_api(settings)
    api.update(_ours(api, settings)["id"], {"schedules": [{"schedule": schedule, "active": True}]})
    return _replanned(api, settings)


def _replanned(api: PrefectApi, settings: Settings) -> ScheduleState:
    """The schedule once Prefect has planned its next turn, which it does within seconds of a change."""
    until = time.monotonic() + _PLAN_WITHIN_S
    state = observed(api, _ours(api, settings))
    while state.state == "active" and state.next_run_us is None and time.monotonic() < until:
        time.sleep(0.25)
        state = observed(api, _ours(api, settings))
    return state
