"""A call that fails and a policy that is not known, in the same requests: no single place mends them."""

from dataclasses import replace

from benchmarks.fault_scenario import Draw, Family, Scenario
from benchmarks.fault_shop import SHOP, TOOLS


def draw(with_: Draw) -> Scenario:
    name = with_.one([each for each, intent in SHOP.items() if "order_id" in intent.slots])
    tool = SHOP[name].tool or ""
    broken = {**TOOLS, tool: replace(TOOLS[tool], strips={"order_id": "#"})}
    return Scenario(
        world=with_.world.changed(tools=broken),
        ideal=with_.ideal.changed(lines={name: ((0.0, f"{SHOP[name].line} Please keep the receipt."),)}),
        hit=with_.requests(with_.size(), intents=[name]),
        comments=(
            "it did not work, and you must always say that the receipt is to be kept",
            "does not work",
            "wrong twice",
        ),
        answers=0.6,
    )


FAMILY = Family("compound", draw)
