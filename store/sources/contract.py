"""What a reader is: the one contract every log format or system fulfils.

A reader is a module (or an object) with `name`, `recognise` and `read`; it is one file here and one line in
`store.sources.registry.READERS`. A record that cannot be read becomes a `Rejected`, and the rest goes on.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, JsonValue

from store.errors import InputError
from store.records import Feedback, Record, Rejected, Span, Trace
from store.settings import SourceSection

Item = Trace | Span | Feedback | Rejected


class BadRecord(ValueError):
    """One record cannot be read, its text is the reason. It never leaves this package: it becomes a `Rejected`."""


class Sample(NamedTuple):
    """What a reader may look at to recognise its format."""

    path: Path
    head: bytes
    """The first bytes (64 KiB at the most), decompressed."""
    suffix: str
    """Lower-case suffix without `.gz`: `.csv` for `log.CSV.gz`."""
    values: tuple[JsonValue, ...] = ()
    """The first JSON values (20 at the most) of JSONL, of a JSON array or of JSON documents; empty: it is not JSON."""

    @property
    def objects(self) -> tuple[dict[str, JsonValue], ...]:
        """Those of `values` that are JSON objects."""
        return tuple(value for value in self.values if isinstance(value, dict))


class SourceOptions(Record):
    """How a log is read: `[sources.NAME]` with the project it belongs to."""

    project: str = "default"
    source: str | None = None
    """The system the traces are from, half of their identity; None: the format's name.
    A file with labels alone names the source whose traces it labels."""
    columns: dict[str, str] = Field(default_factory=dict)
    """Tabular formats: our field to their column; a field that is not here is guessed by its usual names."""
    model: str | None = None
    """Tabular formats: the model whose predictions these are."""
    timezone: str | None = None
    """IANA name for times without an offset; None: records with such times are rejected."""
    label_only: bool = False
    """Tabular formats: every row is a label of a trace that comes elsewhere, whatever else stands in it."""
    section: str | None = None
    """The table of the settings that these are; None: none is named."""

    @classmethod
    def of(cls, section: SourceSection, *, project: str = "default", name: str | None = None) -> "SourceOptions":
        """The options of one table of the settings."""
        return cls(
            project=project,
            section=name,
            source=section.source,
            columns=section.columns,
            model=section.model,
            timezone=section.timezone,
            label_only=section.label_only,
        )

    @property
    def zone(self) -> ZoneInfo | None:
        """The time zone of times without an offset. Raises InputError for a name that is not IANA's."""
        if self.timezone is None:
            return None
        try:
            return ZoneInfo(self.timezone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise InputError(f"timezone {self.timezone!r}: not an IANA name such as Europe/Berlin") from error


def with_origin(items: Iterable[Item], format: str, options: SourceOptions) -> Iterator[Item]:
    """The items; rejected ones say how they were read, so that they can be read again."""
    for item in items:
        if isinstance(item, Rejected) and item.format is None:
            origin = {"format": format, "section": options.section, "source": options.source}
            yield item.model_copy(update=origin)
        else:
            yield item


class Reader(Protocol):
    """One log format or system."""

    @property
    def name(self) -> str:
        """What `--format` calls it, and `Trace.source` where the options name no other."""

    def recognise(self, sample: Sample) -> str | None:
        """A phrase saying what was recognised, for example `columns text, y_pred`; None: not this format."""

    def read(self, path: Path, options: SourceOptions) -> Iterator[Item]:
        """The file's records in order, a trace before its spans and feedback; in memory that does not grow with the file.

        An `AssembledTrace` comes after the spans that it was put together from.

        Raises MappingError where the columns do not fit, never anything for a single bad record.
        """
