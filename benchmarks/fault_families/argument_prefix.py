"""The call takes the `#` off the order id, and the tool does not accept it."""

from dataclasses import replace

from benchmarks.fault_scenario import Draw, Family, Scenario
from benchmarks.fault_shop import SHOP, TOOLS


def draw(with_: Draw) -> Scenario:
    name = with_.one([each for each, intent in SHOP.items() if "order_id" in intent.slots])
    tool = SHOP[name].tool or ""
    broken = {**TOOLS, tool: replace(TOOLS[tool], strips={"order_id": "#"})}
    return Scenario(
        world=with_.world.changed(tools=broken),
        ideal=with_.ideal,
        hit=with_.requests(with_.size(), intents=[name]),
        comments=("it did not work", "I only get an error", "my order id is right, I copied it", "nothing happened"),
        answers=0.2,
    )


FAMILY = Family("argument_prefix", draw)
