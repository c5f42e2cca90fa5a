"""Pull: what the settings' sources have that the store has not, before a turn looks at anything."""

from collections.abc import Callable
from pathlib import Path

from flows.workspace import Workspace
from store.database import Clock, Store, wall_clock
from store.errors import SettingsError
from store.ingest import Tally, ingest
from store.records import Record
from store.settings import Settings, SourceSection
from store.sources import read
from store.sources.contract import SourceOptions
from store.sources.registry import recognise


class Pulled(Record):
    """What the sources had."""

    stored: int = 0
    """New or changed records."""
    quarantined: int = 0
    lines: tuple[str, ...] = ()

    def markdown(self) -> str:
        return "\n".join(f"* {line}" for line in self.lines) or "No source of the settings names a `path`."


def pull(workspace: Workspace) -> Pulled:
    """Read every source of the settings that names a path; what was read before is not stored twice."""
    lines, total = [], Tally()
    for name, section in workspace.settings.sources.items():
        if section.path is None:
            continue
        path = workspace.settings.home / section.path
        _, tally = read_log(workspace.store, workspace.settings, path, source=name, clock=workspace.clock)
        total.add(tally)
        lines.append(f"{name}: {tally.stored} stored, {tally.duplicate} were there, {tally.quarantined} in quarantine")
    return Pulled(stored=total.stored, quarantined=total.quarantined, lines=tuple(lines))


def read_log(
    store: Store,
    settings: Settings,
    path: Path,
    *,
    format: str = "auto",
    source: str | None = None,
    clock: Clock = wall_clock,
    stored: Callable[[Tally], None] = lambda _tally: None,
) -> tuple[str, Tally]:
    """Ingest a file or folder; returns the format's name and what became of the records.

    `source`: the `[sources.NAME]` whose mapping applies; where the settings have but one, that one. Raises SettingsError
    for a name they lack.
    """
    options = SourceOptions.of(section := _section(settings, source), project=settings.project)
    name = format if format != "auto" else section.format
    name = recognise(path).name if name == "auto" else name
    return name, ingest(store, read(path, format=name, options=options), clock=clock, stored=stored)


def _section(settings: Settings, source: str | None) -> SourceSection:
    if source is None:
        return next(iter(settings.sources.values())) if len(settings.sources) == 1 else SourceSection()
    if source not in settings.sources:
        known = ", ".join(settings.sources) or "none"
        raise SettingsError(f"--source {source}: the settings name no [sources.{source}]; they name {known}")
    return settings.sources[source]
