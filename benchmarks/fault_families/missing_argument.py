"""The call leaves out an argument that the tool requires."""

from dataclasses import replace

from benchmarks.fault_scenario import Draw, Family, Scenario
from benchmarks.fault_shop import SHOP, TOOLS


def draw(with_: Draw) -> Scenario:
    name = with_.intent("tool")
    tool, left_out = SHOP[name].tool or "", with_.one(SHOP[name].slots)
    broken = {**TOOLS, tool: replace(TOOLS[tool], drops=frozenset({left_out}))}
    return Scenario(
        world=with_.world.changed(tools=broken),
        ideal=with_.ideal,
        hit=with_.requests(with_.size(), intents=[name]),
        comments=("did not work", "why not? I said everything", "an error again", "please try again"),
        answers=0.2,
    )


FAMILY = Family("missing_argument", draw)
