"""The ways to yes in a terminal: what to do, how long it takes, and with which traces or corrections."""

from collections.abc import Sequence

from filmroom.session import say
from store.records import Way


def say_ways(ways: Sequence[Way]) -> None:
    """Each way in a line, and a command for each thing that it names."""
    for each in ways:
        cost = f" (about {each.minutes} minute{'' if each.minutes == 1 else 's'})" if each.minutes else ""
        cost += f" ({each.days} day{'' if each.days == 1 else 's'})" if each.days else ""
        say(f"  {each.action}: {each.what}{cost}")
        for trace in each.traces:
            say(f"    filmroom why {trace}")
        for correction in each.corrections:
            say(f"    filmroom review show {correction}")
