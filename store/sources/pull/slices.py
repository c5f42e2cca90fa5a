"""A listing by slices of time. Where a page is broken its slice is halved, until what is lost is a second of the log."""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from pydantic import JsonValue

from store.errors import SourceUnreachable
from store.records import Rejected
from store.sources.pull.client import TRIES, BrokenPage
from store.sources.sanitise import clean_text

DAY_US = 86_400_000_000
_FINEST_US = 1_000_000
_MOST_BROKEN = 20
"""Broken pages of one listing; with more of them the system is broken, and not a page."""


class Slice(NamedTuple):
    """A stretch of time, microseconds since 1970 UTC: from `start_us` on, before `end_us`."""

    start_us: int
    end_us: int

    def halves(self) -> "tuple[Slice, Slice]":
        middle = (self.start_us + self.end_us) // 2
        return Slice(self.start_us, middle), Slice(middle, self.end_us)

    def days(self) -> "Iterator[Slice]":
        """The slice in pieces of a day at the most."""
        for start in range(self.start_us, self.end_us, DAY_US):
            yield Slice(start, min(start + DAY_US, self.end_us))


Pages = Callable[[Slice, int], Iterable[JsonValue]]
"""The pages of a slice; the number of tries a request has."""


def pages_of(span: Slice, pages: Pages) -> Iterator[JsonValue | Rejected]:
    """The pages of a stretch of time; one that cannot be read comes as `Rejected`, with its address, and the rest goes on.

    Pages of a slice that is halved come again, which stores nothing twice. Raises SourceUnreachable.
    """
    waiting = [(each, TRIES) for each in span.days()][::-1]
    broken = 0
    while waiting:
        part, tries = waiting.pop()
        try:
            yield from pages(part, tries)
        except BrokenPage as error:
            if part.end_us - part.start_us > _FINEST_US:
                first, second = part.halves()
                waiting += [(second, 1), (first, 1)]
                continue
            broken += 1
            if broken > _MOST_BROKEN:
                raise SourceUnreachable(
                    f"{error.place}: more than {_MOST_BROKEN} pages are broken ({error.reason})"
                ) from error
            yield rejected(error)


def rejected(error: BrokenPage) -> Rejected:
    """A broken page for the quarantine."""
    return Rejected(path=error.place, line=None, reason=error.reason, raw=clean_text(error.raw))


def iso(at_us: int) -> str:
    """A moment as APIs read it: `2026-01-01T00:00:00.000000Z`.

    >>> iso(1_767_225_600_000_000)
    '2026-01-01T00:00:00.000000Z'
    """
    return (
        datetime.fromtimestamp(at_us // 1_000_000, tz=UTC).strftime("%Y-%m-%dT%H:%M:%S") + f".{at_us % 1_000_000:06d}Z"
    )
