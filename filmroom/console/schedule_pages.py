"""Schedules: what runs when, and the buttons that change it."""

from starlette.responses import Response

from filmroom.console.ask import Ask
from filmroom.console.guard import Page
from filmroom.console.schedule_view import next_times, prefect_page, schedules_view
from flows.schedule import log_of_run, pause, resume, run_now, set_cron, set_interval
from store.errors import FilmroomError, NotFound, SettingsError


def schedules(ask: Ask) -> Response:
    """The page; with `cron` it shows the next five times of that expression."""
    cron, timezone = ask.query("cron"), ask.query("timezone") or ask.console.settings.schedule.timezone
    times, wrong = [], ""
    if cron:
        try:
            times = next_times(cron, timezone)
        except SettingsError as error:
            wrong = str(error)
    return ask.page("schedules.html", view=schedules_view(ask.console), cron=cron, timezone=timezone, times=times,
                    wrong=wrong)  # fmt: skip


def run_page(ask: Ask) -> Response:
    """One run's log."""
    page = int(ask.query("page")) if ask.query("page").isdecimal() and len(ask.query("page")) < 6 else 1
    found = log_of_run(ask.console.settings, ask.part("id"), page=max(1, page))
    return ask.page("run_log.html", found=found, page=max(1, page), prefect=prefect_page(ask.console))


def act(ask: Ask) -> Response:
    """Run now, pause, resume, or turn at another rhythm."""
    verb = ask.part("verb")
    try:
        note = change_schedule(ask, verb)
    except NotFound:
        raise
    except FilmroomError as error:
        return ask.see("/schedules", note=str(error), wrong=True)
    ask.audit(f"schedule {verb}", ask.console.project, cron=ask.form.get("cron", ""))
    return ask.see("/schedules", note=note)


def change_schedule(ask: Ask, verb: str) -> str:
    """Do it, through the functions of `filmroom schedule`; a sentence of what was done. Raises FilmroomError."""
    settings = ask.console.settings
    if verb == "run":
        return f"A turn is asked for ({run_now(settings).id}); it starts within seconds."
    if verb == "pause":
        return f"{pause(settings).name} is paused: no turns are planned until it is resumed."
    if verb == "resume":
        return f"{resume(settings).name} turns again."
    if verb == "cron":
        cron, timezone = ask.form.get("cron", "").strip(), ask.form.get("timezone", "").strip() or "UTC"
        next_times(cron, timezone)
        return f"It turns {set_cron(settings, cron, timezone=timezone).rhythm}, until the next start takes the settings again."
    if verb == "interval":
        return f"It turns {set_interval(settings, _seconds(ask.form.get('interval_s', ''))).rhythm}."
    raise NotFound(f"a schedule cannot {verb}")


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 10 <= found <= 366 * 86_400:
        raise SettingsError("the interval is in seconds, from 10 to a year")
    return found


PAGES = [
    Page("/schedules", schedules),
    Page("/schedules/runs/{id}", run_page),
    Page("/schedules/{verb}", act, role="admin", method="POST"),
]
