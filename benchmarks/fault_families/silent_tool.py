"""From one day on a tool answers every call with nothing, without an error."""

from dataclasses import replace

from benchmarks.fault_scenario import Draw, Family, Scenario
from benchmarks.fault_shop import SHOP, TOOLS


def draw(with_: Draw) -> Scenario:
    name = with_.intent("tool")
    tool = SHOP[name].tool or ""
    begins = float(with_.rng.uniform(10, 50))
    broken = {**TOOLS, tool: replace(TOOLS[tool], silent_from=begins)}
    return Scenario(
        world=with_.world.changed(tools=broken),
        ideal=with_.ideal,
        hit=with_.requests(with_.size(), intents=[name], days=(begins, 60.0)),
        comments=("it says sorry, and nothing else", "worked last week", "so is it done or not?"),
        answers=0.4,
    )


FAMILY = Family("silent_tool", draw)
