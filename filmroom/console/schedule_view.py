"""The schedules as the console shows them: through the same functions as `filmroom schedule`."""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from filmroom.console.console import Console
from flows.prefect_environment import prefect_home
from flows.schedule import list_schedules, runs_logged
from flows.schedule_process import running_schedule
from flows.schedule_state import ScheduledRun
from store.errors import FilmroomError, SettingsError
from store.turns import turns_of

NEXT = 5


def schedules_view(console: Console, *, quick: bool = False) -> dict[str, Any]:
    """The schedules with last and next run, recent runs, the store's own turns, and where Prefect's page is.

    Each run has the newest `lines` of its log, and `more` where there may be others.
    `away`: why nothing can be asked of them, in a sentence; empty where they answer. `quick`: without the runs.
    """
    turns = _turns(console)
    last = _as_run(turns[0]) if turns else None
    running = running_schedule(prefect_home(console.settings.home))
    away = (
        ""
        if running
        else "No schedule is running here. Start it with `filmroom schedule start`; turns go on by hand with `filmroom run`."
    )
    try:
        found = list_schedules(console.settings, last_turn=last)
        runs = [] if quick or running is None else runs_logged(console.settings)
    except FilmroomError as error:
        away, runs = (
            f"The schedule's server does not answer: {error}. It may be starting; try again in half a minute.",
            [],
        )
        found = []
    if running and found and all(each.state == "not running" for each in found):
        away = f"The schedule (process {running.pid}) does not answer yet. Try again in half a minute."
    return {
        "schedules": [{**each.model_dump(mode="json"), "rhythm": each.rhythm} for each in found],
        "runs": [
            {**each.run.model_dump(mode="json"), "lines": [line.model_dump() for line in each.lines], "more": each.more}
            for each in runs
        ],
        "turns": turns,
        "away": away,
        "prefect": prefect_page(console),
    }


def prefect_page(console: Console) -> str | None:
    """The address of Prefect's own page; None where no schedule runs here."""
    running = running_schedule(prefect_home(console.settings.home))
    return f"http://127.0.0.1:{running.port}" if running else None


def next_times(cron: str, timezone: str, *, now: datetime | None = None) -> list[datetime]:
    """The next five times of a cron expression, in its time zone. Raises SettingsError for one that cannot be read.

    >>> from datetime import UTC
    >>> [each.isoformat() for each in next_times("0 3 * * *", "UTC", now=datetime(2026, 1, 1, tzinfo=UTC))][:2]
    ['2026-01-01T03:00:00+00:00', '2026-01-02T03:00:00+00:00']
    """
    try:
        zone = ZoneInfo(timezone)
        times = CronSim(cron, (now or datetime.now(zone)).astimezone(zone))
        return [each for each, _ in zip(times, range(NEXT), strict=False)]
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise SettingsError(f"{timezone[:60]!r} is no time zone: try Europe/Paris") from error
    except CronSimError as error:
        raise SettingsError(
            f"{cron[:60]!r} is not a cron expression: try `0 3 * * *` (3 o'clock each night)"
        ) from error


def _turns(console: Console) -> list[dict[str, Any]]:
    with console.store.read() as connection:
        return turns_of(connection, console.project, 20)


def _as_run(turn: dict[str, Any]) -> ScheduledRun:
    seconds = None if turn["ended_us"] is None else (turn["ended_us"] - turn["started_us"]) / 1_000_000
    state = "completed" if turn["state"] == "done" else turn["state"]
    return ScheduledRun(id=turn["id"], state=state, started_us=turn["started_us"], seconds=seconds)
