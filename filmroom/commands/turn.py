"""`ingest`, `run` and `status`: a log comes in, the loop turns, and where things stand."""

from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from filmroom.session import Json, Session, note, progress, say, say_json, time_text

if TYPE_CHECKING:
    from store.database import Store
    from store.ingest import Tally
    from store.settings import Settings
    from store.sources.meter import Meter


def register(app: typer.Typer) -> None:
    app.command()(ingest)
    app.command()(run)
    app.command()(status)


def ingest(
    context: typer.Context,
    paths: Annotated[list[Path] | None, typer.Argument(help="Files or folders to read.")] = None,
    format: Annotated[str, typer.Option(help="Format of the files; `auto` recognises it.")] = "auto",
    source: Annotated[
        str | None, typer.Option(help="The `[sources.NAME]` whose mapping applies; without paths, the one to read.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Read a log into the store. Reading it again stores nothing twice."""
    from store.ingest import Tally, quarantined

    if not paths and source is None:
        raise typer.BadParameter("name the files to read, or a source of the settings with --source")
    session: Session = context.obj
    settings = session.settings()
    total, formats = Tally(), set[str]()
    with session.store(create=True) as store:
        for name, tally in _read(store, settings, paths or [], format, source):
            formats.add(name)
            total.add(tally)
        rejected = quarantined(store, 3) if total.quarantined else []
    if as_json:
        say_json({**asdict(total), "format": ", ".join(sorted(formats))})
        return
    say(
        f"{total.read} records read as {', '.join(sorted(formats))}: {total.stored} stored "
        f"({total.traces} traces, {total.spans} spans, {total.feedback} feedback), {total.duplicate} were there already, "
        f"{total.quarantined} in quarantine"
    )
    for each in rejected:
        note(f"  {each['path']}:{each['line'] or '-'}: {each['reason']}")
    if total.stored:
        say("next: filmroom run")


def _read(
    store: "Store", settings: "Settings", paths: list[Path], format: str, source: str | None
) -> "Iterator[tuple[str, Tally]]":
    """Read each path, or the source where none is named; yields the format's name and what became of the records."""
    from flows.pull import read_log, read_source
    from store.sources.meter import Meter

    if source is not None and not paths:
        with progress(f"reading {source}", None) as advance:
            yield read_source(store, settings, source, stored=lambda tally: advance(tally.read))
    for path in paths:
        meter = Meter(path)
        with progress(f"reading {path.name}", meter.total) as advance:
            show = partial(_advance, advance, meter)
            yield read_log(store, settings, path, format=format, source=source, meter=meter, stored=show)


def _advance(advance: "Callable[[int], None]", meter: "Meter", _: object) -> None:
    advance(meter.advanced())


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
        f"{log['quarantined']} in quarantine, {log['unread']} arrivals not looked at yet")  # fmt: skip
    say(f"failures  {found['failures']} in {found['clusters']} clusters")
    waiting = ", ".join(f"{count} {state}" for state, count in found["corrections"].items()) or "none"
    say(f"corrections  {waiting}")
    say(f"holds     {', '.join(f'{count} {state}' for state, count in found['holds'].items()) or 'none'}")
    say(f"live      {found['release']} (number {found['release_number']}, since {time_text(found['release_us'])})")
    last = found["last_turn"]
    say(f"last turn {time_text(last['started_us']) + ', ' + last['state'] if last else 'none yet'}")
    say(f"next: {found['next']}")
