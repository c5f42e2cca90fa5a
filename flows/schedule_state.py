"""What a schedule is doing, as frozen records, from Prefect's answers or from the settings alone."""

from typing import Literal

from flows.prefect_api import ENDED, Json, PrefectApi, microseconds
from store.records import Record
from store.settings import Settings

UNITS = (("day", 86_400), ("h", 3600), ("min", 60))


class ScheduledRun(Record):
    """One run of the turn, as the schedule saw it."""

    id: str
    state: str
    """In lower case: `scheduled`, `pending`, `running`, `completed`, `failed`, `crashed`, `cancelled`, ..."""
    started_us: int | None
    """Microseconds since 1970 UTC; None: it has not started."""
    seconds: float | None
    """How long it took, or has taken so far; None: it has not started."""
    by_hand: bool = False
    """Whether `filmroom run` turned, and not the schedule."""


class ScheduleState(Record):
    """A schedule, what ran last and what runs next."""

    name: str
    """The project it turns."""
    cron: str | None
    interval_s: float | None
    """Exactly one of the two is set."""
    timezone: str
    state: Literal["active", "paused", "not running"]
    last_run: ScheduledRun | None
    """The last that started; None: none has."""
    next_run_us: int | None
    """Microseconds since 1970 UTC; None: none is planned (yet: Prefect plans within 5 s of a change)."""

    @property
    def rhythm(self) -> str:
        """How often it turns, in words: `every 15 min`, `at 0 3 * * * (UTC)`."""
        if self.cron is not None:
            return f"at {self.cron} ({self.timezone})"
        every_s = self.interval_s or 0.0
        unit, seconds = next((each for each in UNITS if every_s and not every_s % each[1]), ("s", 1))
        return f"every {every_s / seconds:g} {unit}"


def planned(settings: Settings, last_turn: ScheduledRun | None = None) -> ScheduleState:
    """The schedule that the settings describe, not running.

    >>> planned(Settings()).rhythm
    'every 1 h'
    """
    chosen = settings.schedule
    return ScheduleState(
        name=settings.project,
        cron=chosen.cron,
        interval_s=None if chosen.cron else chosen.interval_s,
        timezone=chosen.timezone,
        state="not running",
        last_run=last_turn,
        next_run_us=None,
    )


def observed(api: PrefectApi, deployment: Json) -> ScheduleState:
    """What a served deployment is doing."""
    chosen = deployment["schedules"][0]["schedule"]
    following = api.runs("SCHEDULED", of=deployment["id"], sort="EXPECTED_START_TIME_ASC", limit=1)
    return ScheduleState(
        name=deployment["name"],
        cron=chosen.get("cron"),
        interval_s=chosen.get("interval"),
        timezone=chosen.get("timezone") or "UTC",
        state="paused" if deployment["paused"] else "active",
        last_run=_last(api, deployment["id"]),
        next_run_us=microseconds(following[0]["expected_start_time"]) if following else None,
    )


def as_run(run: Json) -> ScheduledRun:
    """A run from Prefect's answer."""
    started = run["start_time"]
    return ScheduledRun(
        id=run["id"],
        state=run["state_name"].lower(),
        started_us=microseconds(started),
        seconds=None if started is None else run["estimated_run_time"],
        by_hand=run.get("deployment_id") is None,
    )


def _last(api: PrefectApi, deployment_id: str) -> ScheduledRun | None:
    """Leaves out the runs that were dropped because one was running: Prefect gives them a start time too."""
    started = api.runs("RUNNING", "CANCELLING", *ENDED, of=deployment_id, sort="START_TIME_DESC", limit=1)
    stopped = api.runs("CANCELLED", of=deployment_id, sort="START_TIME_DESC", limit=20)
    runs = [as_run(run) for run in started + stopped if run["run_count"]]
    return max(runs, key=lambda run: run.started_us or 0, default=None)
