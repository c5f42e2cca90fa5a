"""The right note is found, and the prompt does not have the agent use it."""

from benchmarks.fault_scenario import Draw, Family, Scenario
from benchmarks.fault_shop import SHOP


def draw(with_: Draw) -> Scenario:
    name = with_.intent("topic")
    return Scenario(
        world=with_.world.changed(overlooks=frozenset({SHOP[name].topic or ""})),
        ideal=with_.ideal,
        hit=with_.requests(with_.size(), intents=[name]),
        comments=("you do have that information", "read your own handbook", "no answer"),
        answers=0.6,
    )


FAMILY = Family("overlooked_note", draw)
