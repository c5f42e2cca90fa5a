"""A tool is unavailable for two days, for everybody."""

from dataclasses import replace

from benchmarks.fault_scenario import Draw, Family, Scenario
from benchmarks.fault_shop import SHOP, TOOLS


def draw(with_: Draw) -> Scenario:
    name = with_.intent("tool")
    tool = SHOP[name].tool or ""
    begins = float(with_.rng.uniform(10, 50))
    broken = {**TOOLS, tool: replace(TOOLS[tool], down=(begins, begins + 2))}
    return Scenario(
        world=with_.world.changed(tools=broken),
        ideal=with_.ideal,
        hit=with_.requests(with_.size(), intents=[name], days=(begins, begins + 2)),
        comments=(
            "your system is down?",
            "sorry is not an answer",
            "not working since yesterday",
            "try later? really?",
        ),
        answers=0.2,
    )


FAMILY = Family("transient_outage", draw)
