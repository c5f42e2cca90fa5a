"""The clock of benchmarks that are played night by night."""

import itertools

HOUR_US = 3_600_000_000


class Nights:
    """A clock that stands in one night, a microsecond later whenever it is read: no two events are at one time."""

    def __init__(self) -> None:
        self.number = 0
        self._ticks = itertools.count()

    @property
    def began_us(self) -> int:
        return self.number * 24 * HOUR_US

    def __call__(self) -> int:
        return self.began_us + next(self._ticks)
