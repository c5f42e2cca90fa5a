"""The call writes a delivery speed in a word of its own, which the tool does not list."""

from dataclasses import replace

from benchmarks.fault_scenario import Draw, Family, Scenario
from benchmarks.fault_shop import SPEEDS, TOOLS


def draw(with_: Draw) -> Scenario:
    written = {"express": "Express", "standard": "STANDARD", "overnight": " overnight"}
    wrong = written if with_.rng.random() < 0.5 else {"express": "fast", "standard": "normal", "overnight": "night"}
    broken = {**TOOLS, "book_delivery": replace(TOOLS["book_delivery"], writes={"speed": wrong})}
    return Scenario(
        world=with_.world.changed(tools=broken),
        ideal=with_.ideal,
        hit=with_.requests(with_.size(), intents=["book_delivery"]),
        comments=("error", f"I said {with_.one(SPEEDS)}, that is a choice on your page", "not booked"),
        answers=0.3,
    )


FAMILY = Family("renamed_choice", draw)
