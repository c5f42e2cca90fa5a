"""`init`, `scan` and `demo`: the first day."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from filmroom.session import Json, Session, note, progress, say, say_json, table

if TYPE_CHECKING:
    from store.sources.findings import Findings


_URL = ("http://", "https://")


def register(app: typer.Typer) -> None:
    app.command()(init)
    app.command()(scan)
    app.command()(demo)


def init(
    context: typer.Context,
    from_: Annotated[
        str | None,
        typer.Option("--from", help="A log, or the URL of a Langfuse, MLflow or Phoenix, to learn the settings from."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write the settings anew where there are some.")] = False,
    as_json: Json = False,
) -> None:
    """Write filmroom.toml and make (or migrate) the store. What is there stays."""
    from filmroom.settings_file import settings_text
    from store.settings import FILE_NAME

    session: Session = context.obj
    file = session.settings_file or Path(FILE_NAME)
    found, columns = (None, []) if from_ is None else _look_for_settings(from_)
    written = force or not file.exists()
    if written:
        file.write_text(settings_text(found, columns), encoding="utf-8")
    session.settings_file = file
    with session.workspace(create=True) as workspace:
        store = workspace.store.engine.url.render_as_string(hide_password=True)
    if as_json:
        unknowns = [] if found is None else [each.model_dump() for each in found.unknowns]
        say_json({"settings": str(file), "written": written, "store": store, "unknowns": unknowns,
                  "found": None if found is None else found.model_dump(mode="json"),
                  **({"unmapped_columns": columns} if columns else {})})  # fmt: skip
        return
    say(f"{'wrote' if written else 'kept'} {file}; store: {store}")
    if found is not None:
        _say_findings(found)
    if from_ is not None and not written:
        note(f"{file} was there already: `filmroom init --from {from_} --force` writes it anew")
    if found is not None and found.pull is not None:
        say(f"next: filmroom ingest --source {found.format}")
        return
    if columns:
        say(f"{from_} is a table whose columns have names of its own: {', '.join(columns)}")
        say(f"next: name those that are meant in `columns` under [sources.log] in {file}, then filmroom ingest {from_}")
        return
    say(f"next: filmroom ingest {from_}" if from_ else "next: filmroom ingest LOG")


def _look_for_settings(log: str) -> "tuple[Findings | None, list[str]]":
    """A first look; of a table whose columns are not known by their names, the columns alone."""
    from store.errors import MappingError, UnknownFormat
    from store.sources.files import is_binary
    from store.sources.json_records import take_sample
    from store.sources.rows import header_of

    try:
        return _look_at(log), []
    except (UnknownFormat, MappingError):
        path = Path(log)
        if not path.is_file():
            raise
        sample = take_sample(path)
        columns = [column.strip() for column in header_of(sample)]
        if len(columns) < 2 or is_binary(sample.head):
            raise
        return None, columns


def _look_at(log: str) -> "Findings":
    """A first look at a file, a folder or a running system."""
    from store.database import wall_clock
    from store.pulls import recognise_system, sample
    from store.settings import SourceSection
    from store.sources.sniff import sniff, sniff_items

    if not log.startswith(_URL):
        return sniff(Path(log))
    format = recognise_system(log)
    with sample(SourceSection(format=format, pull=log), wall_clock()) as parts:
        return sniff_items(log, format, *parts)


def _say_findings(found: "Findings") -> None:
    sample = "the whole log" if found.complete else "its beginning"
    say(f"found in {found.path} ({found.format}, {sample}): {found.traces} traces, {found.spans} spans, "
        f"{found.feedback} feedback, {found.users} users")  # fmt: skip
    for unknown in found.unknowns:
        say(f"  unknown: {unknown.what}")
        say(f"    switches off: {unknown.switches_off}")
        say(f"    to do: {unknown.to_do}")


def scan(
    context: typer.Context,
    log: Annotated[str, typer.Argument(help="A log file or folder, or the URL of a Langfuse, MLflow or Phoenix.")],
    as_json: Json = False,
) -> None:
    """What a log holds: the largest clusters of failures, what they cost, the likely place, one next step. Changes nothing."""
    from flows.scan import scan as look
    from store.settings import SourceSection
    from store.sources.contract import SourceOptions

    session: Session = context.obj
    settings = session.settings()
    found = _look_at(log)
    if not settings.feedback and not settings.sources:
        settings = _guessed(found, settings)
    options = SourceOptions(
        project=settings.project, columns=found.columns, timezone="UTC" if found.without_offset else None
    )
    there = Path(log) if found.pull is None else SourceSection(format=found.format, pull=found.pull)
    with progress(f"reading {log}", None) as advance:
        result = look(there, settings, options, format=found.format, stored=lambda tally: advance(tally.read))
    if as_json:
        say_json(result)
        return
    read = result["log"]
    say(f"{read['traces']} traces, {read['feedback']} feedback, {read['quarantined']} unreadable ({found.format}); "
        f"{result['failures']} failures, {result['cost_usd']:.0f} USD at {settings.prices.failure_usd:g} USD each")  # fmt: skip
    table(
        ["failures", "USD", "cluster", "likely place", "next step"],
        [
            [
                str(each["failures"]),
                f"{each['cost_usd']:.0f}",
                each["name"],
                f"{each['target'] or 'no single place'} {each['probability']:.2f}",
                each["next"],
            ]
            for each in result["clusters"]
        ],
    )
    say(f"next: filmroom init --from {log}")


def _guessed(found: "Findings", settings: Any) -> Any:
    """The settings that `init --from` would write, for a look at a log without any."""
    import tomllib

    from filmroom.settings_file import settings_text

    return type(settings)(**tomllib.loads(settings_text(found)), home=settings.home)


def demo(
    context: typer.Context,
    folder: Annotated[Path | None, typer.Option(help="Where to keep its store; default: filmroom-demo here.")] = None,
    as_json: Json = False,
) -> None:
    """Play a season of a small support agent: what failed, where each correction went, and what it changed."""
    from filmroom.demo.page import page
    from filmroom.demo.play import play_season

    result = play_season(folder or Path("filmroom-demo"), progress=progress)
    if as_json:
        say_json(result)
        return
    say(page(result))
