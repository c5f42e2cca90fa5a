"""Pull: what the settings' sources have that the store has not, before a turn looks at anything; and what it need not keep."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from flows.workspace import Workspace
from store.database import Clock, Store, wall_clock
from store.errors import InputError, SettingsError, SourceUnreachable
from store.ingest import Tally, write_batches
from store.reading_apart import Reading, read_batches
from store.records import Record, Rejected
from store.redaction import redactor_for
from store.retention import DAY_US, drop_texts, old_traces
from store.settings import Settings, SourceSection
from store.sources import tabular
from store.sources.contract import SourceOptions
from store.sources.meter import Meter
from store.sources.registry import recognise


class Pulled(Record):
    """What the sources had."""

    stored: int = 0
    """New or changed records."""
    quarantined: int = 0
    lines: tuple[str, ...] = ()

    def markdown(self) -> str:
        return "\n".join(f"* {line}" for line in self.lines) or "No source of the settings names a `path` or a `pull`."


def pull(workspace: Workspace) -> Pulled:
    """Read every source of the settings that names a path or a system; what was read before is not stored twice.

    A system that does not answer is said, and does not stop the turn: it is read from the same place in the next.
    """
    lines, total = [], Tally()
    for name, section in workspace.settings.sources.items():
        if section.path is None and section.pull is None:
            continue
        try:
            _, tally = read_source(workspace.store, workspace.settings, name, clock=workspace.clock)
        except SourceUnreachable as error:
            lines.append(f"{name}: not read: {error}")
            continue
        total.add(tally)
        lines.append(f"{name}: {tally.stored} stored, {tally.duplicate} were there, {tally.quarantined} in quarantine")
    dropped = retain(workspace)
    if dropped:
        lines.append(f"the text of {dropped} traces older than [store] keep_days was dropped")
    return Pulled(stored=total.stored, quarantined=total.quarantined, lines=tuple(lines))


def retain(workspace: Workspace) -> int:
    """Drop the text of traces older than `[store] keep_days`; returns of how many. A part is a transaction."""
    days = workspace.settings.store.keep_days
    if days is None:
        return 0
    before_us, dropped = workspace.clock() - int(days * DAY_US), 0
    while True:
        with workspace.write() as connection:
            old = old_traces(connection, workspace.project, before_us)
            drop_texts(connection, old)
        dropped += len(old)
        if not old:
            return dropped


def read_source(
    store: Store,
    settings: Settings,
    name: str,
    *,
    clock: Clock = wall_clock,
    stored: Callable[[Tally], None] = lambda _tally: None,
    rejected: Callable[[Rejected], None] = lambda _reject: None,
) -> tuple[str, Tally]:
    """Read what `[sources.NAME]` names, its path or its system; returns the format's name and what became of the records.

    Raises SettingsError where it names neither, SourceUnreachable.
    """
    _, section = section_of(settings, name)
    if section.pull is not None:
        from store.pulls import pull_source

        redactor = redactor_for(store, settings.policy)
        return section.format, pull_source(
            store, name, section, clock=clock, stored=stored, rejected=rejected, redactor=redactor
        )
    if section.path is None:
        raise SettingsError(
            f"[sources.{name}] names no `path` and no `pull`: name the files to read, or set one of them"
        )
    path = settings.home / section.path
    return read_log(store, settings, path, source=name, clock=clock, stored=stored, rejected=rejected)


def read_log(
    store: Store,
    settings: Settings,
    path: Path,
    *,
    format: str = "auto",
    source: str | None = None,
    meter: Meter | None = None,
    place: str | None = None,
    clock: Clock = wall_clock,
    stored: Callable[[Tally], None] = lambda _tally: None,
    rejected: Callable[[Rejected], None] = lambda _reject: None,
) -> tuple[str, Tally]:
    """Ingest a file or folder; returns the format's name (of a folder that of its first log) and what became of the records.

    `source`: the `[sources.NAME]` whose mapping applies; where the settings have but one, that one. Raises SettingsError
    for a name they lack. `place`: what rejected pieces are said to be from, where `path` is a copy.
    """
    section_name, section = section_of(settings, source)
    options = SourceOptions.of(section, project=settings.project, name=section_name)
    if source is None and section.columns and _is_labels(path):
        options = options.model_copy(update={"columns": {}})
    name = format if format != "auto" else section.format
    if source is None and format == "auto" and name != "auto" and path.is_file():
        with suppress(InputError):  # the only source of the settings need not be what this file is from
            seen = recognise(path).name
            if seen != name:
                labels_of = (section.source or name) if _is_labels(path) else None
                own = SourceSection(format=seen, source=labels_of, timezone=section.timezone)
                name, options = seen, SourceOptions.of(own, project=settings.project)
    found = recognise(path).name if name == "auto" else name
    redactor = redactor_for(store, settings.policy)
    reading = Reading(path, name if path.is_dir() else found, options, settings.project, redactor, place)
    laid_out = read_batches(reading, meter or Meter(path))
    return found, write_batches(store, laid_out, clock=clock, stored=stored, rejected=rejected)


def _is_labels(path: Path) -> bool:
    """Whether a file is labels that come later, a table of ids and labels alone: a log's mapping is not about it."""
    if not path.is_file():
        return False
    found = tabular.guess_columns(path)
    return {"id", "label"} <= found.keys() and not {"input", "output"} & found.keys()


def section_of(settings: Settings, name: str | None) -> tuple[str | None, SourceSection]:
    """The `[sources.NAME]` that applies, with its name; where none is named, the only one there is.

    Raises SettingsError for a name that the settings lack.
    """
    if name is None:
        return next(iter(settings.sources.items())) if len(settings.sources) == 1 else (None, SourceSection())
    if name not in settings.sources:
        known = ", ".join(settings.sources) or "none"
        raise SettingsError(f"--source {name}: the settings name no [sources.{name}]; they name {known}")
    return name, settings.sources[name]
