"""The runs of a home's schedule and what each of them logged, as Prefect's server keeps it."""

from collections.abc import Sequence
from uuid import UUID

from flows.prefect_api import ENDED, UNFINISHED, CallRefused, Json, PrefectApi, microseconds
from flows.schedule_state import ScheduledRun, as_run
from store.errors import NotFound
from store.records import Record

LINES = 200
"""Lines in one answer: the most that Prefect gives."""
LONGEST = 4_000
"""Characters of a line."""
LEVELS = ((50, "critical"), (40, "error"), (30, "warning"), (20, "info"), (0, "debug"))


class LogLine(Record):
    """One line of a run's log."""

    at_us: int
    """Microseconds since 1970 UTC."""
    level: str
    message: str


class RunLog(Record):
    """The newest lines of a run, oldest first."""

    run: ScheduledRun
    lines: tuple[LogLine, ...]
    more: bool
    """Whether there may be older lines than these."""


def logged_runs(api: PrefectApi, *, limit: int = 20) -> list[RunLog]:
    """The newest runs that have started, planned or by hand, newest first; one answer of lines is shared out among them.

    Raises FilmroomError where the server is away.
    """
    found = api.runs(*UNFINISHED, *ENDED, "CANCELLED", sort="START_TIME_DESC", limit=limit)
    runs = [run for run in found if run["start_time"] is not None and run.get("parent_task_run_id") is None]
    return shared_out(runs, api.logs([run["id"] for run in runs], limit=LINES) if runs else [])


def shared_out(runs: Sequence[Json], newest: Sequence[Json], *, most: int = LINES) -> list[RunLog]:
    """Each run with its own of the `newest` lines, of which there were asked `most`: where so many came, more may be left."""
    told: dict[str, list[LogLine]] = {run["id"]: [] for run in runs}
    for line in reversed(newest):
        told[line["flow_run_id"]].append(as_line(line))
    whole_after_us = (microseconds(newest[-1]["timestamp"]) or 0) if len(newest) >= most else None
    return [
        RunLog(run=as_run(run), lines=tuple(told[run["id"]]),
               more=whole_after_us is not None and (microseconds(run["start_time"]) or 0) <= whole_after_us)
        for run in runs
    ]  # fmt: skip


def run_log(api: PrefectApi, run_id: str, *, page: int = 1) -> RunLog:
    """A page of one run's log, `page` 1 the newest lines. Raises NotFound, FilmroomError where the server is away."""
    try:
        run = api.run(str(UUID(run_id)))
    except (ValueError, CallRefused) as error:
        raise NotFound(f"Prefect knows no run {run_id[:60]}: the schedules' page lists those it knows") from error
    newest = api.logs([run["id"]], limit=LINES, offset=(page - 1) * LINES)
    lines = tuple(as_line(line) for line in reversed(newest))
    return RunLog(run=as_run(run), lines=lines, more=len(newest) >= LINES)


def as_line(line: Json) -> LogLine:
    """A line from Prefect's answer.

    >>> as_line({"timestamp": "1970-01-01T00:00:01Z", "level": 35, "message": "slow"}).level
    'warning'
    """
    level = next(name for least, name in LEVELS if line["level"] >= least)
    return LogLine(at_us=microseconds(line["timestamp"]) or 0, level=level, message=line["message"][:LONGEST])
