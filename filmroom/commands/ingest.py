"""`ingest`: a log comes in, or what could not be read is read again."""

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from filmroom.session import Json, Session, note, progress, say, say_json

if TYPE_CHECKING:
    from store.database import Store
    from store.ingest import Tally
    from store.records import Rejected
    from store.settings import Settings
    from store.sources.meter import Meter

_SHOWN = 3
"""Rejected pieces that are shown; all of them are in `filmroom quarantine list`."""
_STDIN = ("-", "/dev/stdin")
_BARE = (
    "no filmroom.toml here: read with the defaults into a store of its own; "
    "`filmroom init --from LOG` writes what your log's names mean"
)


def register(app: typer.Typer) -> None:
    app.command()(ingest)


def ingest(
    context: typer.Context,
    paths: Annotated[list[Path] | None, typer.Argument(help="Files or folders to read; - is standard input.")] = None,
    format: Annotated[str, typer.Option(help="Format of the files; `auto` recognises it.")] = "auto",
    source: Annotated[
        str | None, typer.Option(help="The `[sources.NAME]` whose mapping applies; without paths, the one to read.")
    ] = None,
    retry: Annotated[
        bool, typer.Option("--retry", help="Read again what is in quarantine, once the cause is mended.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Read a log into the store. Reading it again stores nothing twice."""
    session: Session = context.obj
    settings = session.settings()
    _check_usage(settings, paths, format, source, retry=retry)
    if retry:
        _retry(session, settings, format, source, as_json=as_json)
        return
    seen = _Seen()
    if session.is_bare:
        _check_first(paths or [], format)
        note(_BARE)
    with session.store(create=True) as store:
        _read(store, settings, paths or [], format, source, seen)
    if as_json:
        more = {"skipped": [str(path) for path in seen.skipped]} if seen.skipped else {}
        say_json({**_counts(seen.total), "format": ", ".join(sorted(seen.formats)), **more})
        return
    _say(seen)


def _check_usage(
    settings: "Settings", paths: list[Path] | None, format: str, source: str | None, *, retry: bool
) -> None:
    from store.sources.registry import FORMATS

    if format not in ("auto", *FORMATS):
        raise typer.BadParameter(f"--format {format}: the formats are auto, {', '.join(FORMATS)}")
    if source is not None and source not in settings.sources:
        known = ", ".join(settings.sources) or "none"
        raise typer.BadParameter(f"--source {source}: the settings name no [sources.{source}]; they name {known}")
    if retry and paths:
        raise typer.BadParameter("--retry reads what is in quarantine again: name no files with it")
    if not retry and not paths and source is None:
        raise typer.BadParameter("name the files to read, or a source of the settings with --source")


def _check_first(paths: list[Path], format: str) -> None:
    """Where there is no store yet, none is made for a file that cannot be read. Raises InputError."""
    from store.sources.registry import recognise

    for path in paths:
        if format == "auto" and str(path) not in _STDIN and not path.is_fifo():
            recognise(path)


@dataclass
class _Seen:
    """What one run of the command met."""

    total: "Tally" = field(default_factory=lambda: _tally())
    formats: set[str] = field(default_factory=set)
    skipped: list[Path] = field(default_factory=list)
    rejected: "list[Rejected]" = field(default_factory=list)
    """The first few."""

    def add(self, done: "tuple[str, Tally]") -> None:
        self.formats.add(done[0])
        self.total.add(done[1])

    def reject(self, item: "Rejected") -> None:
        if len(self.rejected) < _SHOWN:
            self.rejected.append(item)


def _tally() -> "Tally":
    from store.ingest import Tally

    return Tally()


def _read(
    store: "Store", settings: "Settings", paths: list[Path], format: str, source: str | None, seen: _Seen
) -> None:
    """Read each path, or the source where none is named."""
    from flows.pull import read_log, read_source
    from store.sources.files import skipped_in
    from store.sources.meter import Meter

    if source is not None and not paths:
        with progress(f"reading {source}", None) as advance:
            told = _Told(advance)
            seen.add(read_source(store, settings, source, stored=told, rejected=seen.reject))
    for path in paths:
        with _on_disk(path) as file:
            meter = Meter(file)
            with progress(f"reading {path.name}", meter.total) as advance:
                show = partial(_advance, advance, meter)
                seen.add(
                    read_log(store, settings, file, format=format, source=source, meter=meter, stored=show,
                             rejected=seen.reject, place=str(path) if file != path else None)
                )  # fmt: skip
                show(None)
        seen.skipped += skipped_in(path)


def _say(seen: _Seen) -> None:
    total = seen.total
    say(
        f"{total.read} records read as {', '.join(sorted(seen.formats))}: {total.stored} stored "
        f"({total.traces} traces, {total.spans} spans, {total.feedback} feedback), {total.duplicate} were there already, "
        f"{total.quarantined} in quarantine"
    )
    for each in seen.rejected:
        note(f"  {each.path}:{each.line or '-'}: {each.reason}")
    if total.quarantined > len(seen.rejected):
        note(f"  and {total.quarantined - len(seen.rejected)} more: filmroom quarantine list")
    if total.redacted:
        note(f"  {total.redacted} keys, tokens or personal texts were redacted ([policy] redact)")
    if seen.skipped:
        named = ", ".join(path.name for path in seen.skipped[:5])
        more = f" and {len(seen.skipped) - 5} more" if len(seen.skipped) > 5 else ""
        note(f"  {len(seen.skipped)} files that by their name are no logs were left out: {named}{more}")
    if total.stored:
        say("next: filmroom run")
    elif total.quarantined:
        alone = "" if total.duplicate else f"all {total.quarantined} records are in quarantine; "
        say(
            f"nothing was stored: {alone}next: mend what is wrong (the file, or the settings), then filmroom ingest --retry"
        )


def _counts(total: "Tally") -> dict[str, int]:
    """The tally; what was redacted is named where something was."""
    return {name: count for name, count in asdict(total).items() if name != "redacted" or count}


def _retry(session: Session, settings: "Settings", format: str, source: str | None, *, as_json: bool) -> None:
    from flows.retry import retry

    with session.store() as store, progress("reading again", None) as advance:
        total, done = retry(store, settings, format=format, source=source, stored=_Told(advance))
    if as_json:
        say_json({**_counts(total), "tried": done.tried, "left": done.left, "stays": list(done.stays)})
        return
    say(f"{done.tried} in quarantine were read again: {done.left} left it ({total.stored} records stored), "
        f"{len(done.stays)} stay")  # fmt: skip
    if done.stays:
        say("next: filmroom quarantine list, or filmroom quarantine discard ID for what is not wanted")
    elif total.stored:
        say("next: filmroom run")


@contextmanager
def _on_disk(path: Path) -> Iterator[Path]:
    """The file itself; of standard input or a pipe, which cannot be looked at twice, a copy for the time of reading."""
    if str(path) not in _STDIN and not path.is_fifo():
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="filmroom-stdin-") as folder:
        copy = Path(folder) / "stdin"
        with copy.open("wb") as file:
            if str(path) in _STDIN:
                shutil.copyfileobj(sys.stdin.buffer, file)
            else:
                with path.open("rb") as stream:
                    shutil.copyfileobj(stream, file)
        yield copy


class _Told:
    """Tells a progress bar how many records more a tally has."""

    def __init__(self, advance: Callable[[int], Any]) -> None:
        self._advance = advance
        self._before = 0

    def __call__(self, tally: "Tally") -> None:
        self._advance(tally.read - self._before)
        self._before = tally.read


def _advance(advance: Callable[[int], Any], meter: "Meter", _: object) -> None:
    advance(meter.advanced())
