"""`schedule`: turns on a cron or an interval, from one process."""

from typing import Annotated, Any

import typer

from filmroom.session import Json, Session, say, say_json, table, time_text

group = typer.Typer(no_args_is_help=True, help="Turns on a schedule: start, list, pause, resume, run.")


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="schedule")


@group.command()
def start(context: typer.Context) -> None:
    """Turn on schedule until Ctrl-C: one process, with its own Prefect server beside the store."""
    from flows.schedule import start as serve
    from store.leases import holder_of

    session: Session = context.obj
    settings = session.settings()
    with session.store() as store:
        serve(settings, lease_held=lambda: holder_of(store) is not None, say=say)


@group.command(name="list")
def list_(context: typer.Context, as_json: Json = False) -> None:
    """Schedules with their last run, next run and state."""
    from flows.schedule import list_schedules

    session: Session = context.obj
    found = list_schedules(session.settings(), last_turn=_last_turn(session))
    if as_json:
        say_json([{**each.model_dump(mode="json"), "rhythm": each.rhythm} for each in found])
        return
    table(
        ["schedule", "turns", "state", "last run", "", "seconds", "next run"],
        [
            [
                each.name,
                each.rhythm,
                each.state,
                time_text(each.last_run.started_us) if each.last_run else "-",
                each.last_run.state if each.last_run else "",
                f"{each.last_run.seconds:.1f}" if each.last_run and each.last_run.seconds is not None else "",
                time_text(each.next_run_us),
            ]
            for each in found
        ],
    )
    if all(each.state == "not running" for each in found):
        say("next: filmroom schedule start")


@group.command()
def pause(context: typer.Context, as_json: Json = False) -> None:
    """Plan no turns until `resume`; a turn that runs goes on."""
    from flows.schedule import pause as pause_it

    _say_state(pause_it(context.obj.settings()), as_json)


@group.command()
def resume(context: typer.Context, as_json: Json = False) -> None:
    """Plan turns again."""
    from flows.schedule import resume as resume_it

    _say_state(resume_it(context.obj.settings()), as_json)


@group.command()
def run(context: typer.Context, as_json: Json = False) -> None:
    """Ask the running schedule for a turn now."""
    from flows.schedule import run_now

    asked = run_now(context.obj.settings())
    if as_json:
        say_json(asked.model_dump(mode="json"))
        return
    say(f"a turn is asked for ({asked.id}); `filmroom schedule list` shows when it runs")


@group.command(name="set")
def set_(
    context: typer.Context,
    cron: Annotated[str | None, typer.Option(help="For example '0 3 * * *'.")] = None,
    interval_s: Annotated[float | None, typer.Option(help="Seconds between turns.")] = None,
    as_json: Json = False,
) -> None:
    """Turn at another rhythm, until the next start takes the one of the settings again."""
    from flows.schedule import set_cron, set_interval

    settings = context.obj.settings()
    if (cron is None) == (interval_s is None):
        raise typer.BadParameter("give one of the two", param_hint="--cron or --interval-s")
    if cron is not None:
        _say_state(set_cron(settings, cron, timezone=settings.schedule.timezone), as_json)
        return
    _say_state(set_interval(settings, interval_s or 0.0), as_json)


def _say_state(state: Any, as_json: bool) -> None:
    if as_json:
        say_json(state.model_dump(mode="json"))
        return
    say(f"{state.name}: {state.state}, turns {state.rhythm}; next {time_text(state.next_run_us)}")


def _last_turn(session: Session) -> Any:
    from flows.schedule_state import ScheduledRun
    from store.errors import StoreError
    from store.turns import turns_of

    try:
        with session.store() as store, store.read() as connection:
            turns = turns_of(connection, store.project, 1)
    except StoreError:
        return None
    if not turns:
        return None
    last = turns[0]
    seconds = None if last["ended_us"] is None else (last["ended_us"] - last["started_us"]) / 1_000_000
    state = "completed" if last["state"] == "done" else last["state"]
    return ScheduledRun(id=last["id"], state=state, started_us=last["started_us"], seconds=seconds)
