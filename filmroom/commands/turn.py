"""`run` and `status`: the loop turns, and where things stand."""

from pathlib import Path

import typer

from filmroom.session import Json, Session, note, progress, say, say_json, time_text


def register(app: typer.Typer) -> None:
    app.command()(run)
    app.command()(status)


def run(context: typer.Context, as_json: Json = False) -> None:
    """One turn: pick failures up, route them, retrain where it is worth it, watch what was changed."""
    from flows.run import run_turn
    from flows.turn import STAGES
    from store.settings import FILE_NAME

    session: Session = context.obj
    with session.workspace() as workspace, progress("turning", len(STAGES)) as advance:
        summary, tracked = run_turn(workspace, session.settings_file or Path(FILE_NAME), done=lambda: advance(1))
    shown = summary.model_dump(mode="json")
    if as_json:
        say_json(shown)
        return
    note(tracked)
    say(
        f"{summary.traces_seen} new or changed traces, {summary.failures} failures in {summary.clusters} clusters; "
        f"routes: {', '.join(f'{count} {name}' for name, count in summary.routes.items() if count) or 'none new'}"
    )
    say(f"retrain: {summary.retrain['decision']}: {summary.retrain['reason']}")
    say(f"holds: {', '.join(f'{count} {name}' for name, count in summary.holds.items())}; {summary.seconds} s")
    say(f"{summary.profile}")
    if summary.router:
        say(f"router: {summary.router}")
    say(f"next: filmroom review list ({summary.waiting} waiting)" if summary.waiting else "next: nothing waits for you")


def status(context: typer.Context, as_json: Json = False) -> None:
    """Where things stand: the log, the failures, what waits for whom, what is live."""
    from store.status import status as read_status

    session: Session = context.obj
    with session.store() as store:
        found = read_status(store)
    if as_json:
        say_json(found)
        return
    log = found["log"]
    say(f"log       {log['traces']} traces, {log['spans']} spans, {log['feedback']} feedback; "
        f"{log['quarantined']} in quarantine, {log['unread']} new or changed since the last turn")  # fmt: skip
    say(f"failures  {found['failures']} in {found['clusters']} clusters")
    waiting = ", ".join(f"{count} {state}" for state, count in found["corrections"].items()) or "none"
    say(f"corrections  {waiting}")
    say(f"holds     {', '.join(f'{count} {state}' for state, count in found['holds'].items()) or 'none'}")
    say(f"live      {found['release']} (number {found['release_number']}, since {time_text(found['release_us'])})")
    last = found["last_turn"]
    say(f"last turn {time_text(last['started_us']) + ', ' + last['state'] if last else 'none yet'}")
    say(f"next: {found['next']}")
