"""What a system that is pulled from fulfils, and what it is told."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from store.sources.contract import Item, SourceOptions
from store.sources.pull.client import Client
from store.sources.pull.slices import Slice


class Task(NamedTuple):
    """One pull from one system."""

    client: Client
    options: SourceOptions
    fresh: Slice
    """When the traces started that may be new or still change."""
    settled: Slice
    """When the older traces started on which feedback may still come, and of which one may have been late."""
    space: str | None
    """The project or experiment there; None: the system's default, or all of them."""
    page_size: int
    complete: Callable[[Sequence[str]], set[str]]
    """Those of the traces, by their id there, that are in the store and have ended."""
    spans: Callable[[Slice], list[tuple[str, str]]]
    """Trace id and span id there of the spans in the store that started in a slice."""


class System(Protocol):
    """A running system."""

    def traces(self, task: Task) -> Iterator[Item]:
        """The traces, spans and feedback that may be new; what cannot be read comes as `Rejected`."""

    def feedback(self, task: Task) -> Iterator[Item]:
        """The feedback that may have come or changed since, on traces that are in the store."""
