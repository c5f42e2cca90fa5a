"""Home, traces and schedules."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from filmroom.console.api.access import Admin, Body, Text, Viewer
from filmroom.console.api.review_routes import Id
from filmroom.console.home_view import home_view
from filmroom.console.schedule_view import next_times, schedules_view
from filmroom.console.trace_pages import read_trace_filter, trace_view, traces_view
from flows.schedule import log_of_run, pause, resume, run_now, set_cron, set_interval
from flows.schedule_logs import RunLog
from flows.schedule_state import ScheduledRun, ScheduleState
from store.trace_page import TracePage

router = APIRouter(tags=["log"])


class Cron(Body):
    """When to turn."""

    cron: Text = Field(min_length=1, max_length=120)
    timezone: Text = Field(default="UTC", max_length=60)


class Interval(Body):
    """How often to turn."""

    interval_s: float = Field(ge=10, le=366 * 86_400)


@router.get("/home")
def home(caller: Viewer) -> dict[str, Any]:
    """What needs a person, how often it fails, where corrections went, what it was worth."""
    return home_view(caller.console)


@router.get("/traces")
def traces(
    caller: Viewer,
    text: Annotated[Text, Query(max_length=200)] = "",
    user: Annotated[Text, Query(max_length=300)] = "",
    session: Annotated[Text, Query(max_length=300)] = "",
    failed: Literal["", "yes", "no"] = "",
    cluster: Annotated[Text, Query(max_length=40)] = "",
    after: Annotated[Text, Query(max_length=40)] = "",
    before: Annotated[Text, Query(max_length=40)] = "",
    start: Annotated[Text, Query(max_length=60)] = "",
) -> TracePage:
    """A page of the log, newest first; `start` is the `following` of the page before."""
    wanted = read_trace_filter(
        {"text": text, "user": user, "session": session, "failed": failed, "cluster": cluster, "after": after,
         "before": before}
    )  # fmt: skip
    return traces_view(caller.console, wanted, start=start)


@router.get("/traces/{id}")
def trace(caller: Viewer, id: Id) -> dict[str, Any]:
    """One trace with its steps and feedback."""
    return trace_view(caller.console, id)


@router.get("/schedules")
def schedules(caller: Viewer) -> dict[str, Any]:
    """The schedules with last and next run, and recent runs with their logs; `away` says why nothing can be asked of them."""
    return schedules_view(caller.console)


@router.get("/schedules/next")
def schedule_next(
    caller: Viewer,
    cron: Annotated[Text, Query(min_length=1, max_length=120)],
    timezone: Annotated[Text, Query(max_length=60)] = "UTC",
) -> list[str]:
    """The next five times of a cron expression."""
    return [each.isoformat() for each in next_times(cron, timezone)]


@router.get("/schedules/runs/{id}/logs")
def schedule_logs(caller: Viewer, id: Id, page: Annotated[int, Query(ge=1, le=10_000)] = 1) -> RunLog:
    """A page of a run's log as Prefect keeps it: 200 lines, oldest first; page 1 has the newest."""
    return log_of_run(caller.console.settings, id, page=page)


@router.post("/schedules/run")
def schedule_run(caller: Admin) -> ScheduledRun:
    """A turn now."""
    done = run_now(caller.console.settings)
    caller.audit("schedule run", caller.console.project)
    return done


@router.post("/schedules/pause")
def schedule_pause(caller: Admin) -> ScheduleState:
    """Plan no turns until it is resumed."""
    done = pause(caller.console.settings)
    caller.audit("schedule pause", caller.console.project)
    return done


@router.post("/schedules/resume")
def schedule_resume(caller: Admin) -> ScheduleState:
    """Plan turns again."""
    done = resume(caller.console.settings)
    caller.audit("schedule resume", caller.console.project)
    return done


@router.post("/schedules/cron")
def schedule_cron(caller: Admin, body: Cron) -> ScheduleState:
    """Turn by a cron expression, until the next start."""
    next_times(body.cron, body.timezone)
    done = set_cron(caller.console.settings, body.cron, timezone=body.timezone)
    caller.audit("schedule cron", caller.console.project, cron=body.cron)
    return done


@router.post("/schedules/interval")
def schedule_interval(caller: Admin, body: Interval) -> ScheduleState:
    """Turn at an interval, until the next start."""
    done = set_interval(caller.console.settings, body.interval_s)
    caller.audit("schedule interval", caller.console.project, interval_s=body.interval_s)
    return done
