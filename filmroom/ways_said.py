"""The ways to yes in a terminal: what to do, how long it takes, and with which traces or corrections."""

from collections.abc import Sequence

from filmroom.session import say
from store.records import Way


def way_lines(ways: Sequence[Way]) -> list[str]:
    """Each way in a line, and a command for each thing that it names."""
    lines = []
    for each in ways:
        cost = f" (about {each.minutes} minute{'' if each.minutes == 1 else 's'})" if each.minutes else ""
        cost += f" ({each.days} day{'' if each.days == 1 else 's'})" if each.days else ""
        lines.append(f"  {each.action}: {each.what}{cost}")
        lines += [f"    filmroom why {trace}" for trace in each.traces]
        lines += [f"    filmroom review show {correction}" for correction in each.corrections]
    return lines


def say_ways(ways: Sequence[Way]) -> None:
    """The lines on stdout."""
    for line in way_lines(ways):
        say(line)
