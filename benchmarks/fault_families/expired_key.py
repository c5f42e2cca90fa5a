"""The agent's key for a tool has expired: every call is turned away."""

from dataclasses import replace

from benchmarks.fault_scenario import Draw, Family, Scenario
from benchmarks.fault_shop import SHOP, TOOLS


def draw(with_: Draw) -> Scenario:
    name = with_.intent("tool")
    tool = SHOP[name].tool or ""
    broken = {**TOOLS, tool: replace(TOOLS[tool], error="HTTP 401 Unauthorized: expired token")}
    return Scenario(
        world=with_.world.changed(tools=broken),
        ideal=with_.ideal,
        hit=with_.requests(with_.size(), intents=[name], days=(float(with_.rng.uniform(10, 50)), 60.0)),
        comments=("it does not work", "again sorry", "what is wrong with you"),
        answers=0.2,
    )


FAMILY = Family("expired_key", draw)
