"""More of one intent than before, all answered right; a few users are displeased anyway."""

from typing import Any

from benchmarks.fault_scenario import Draw, Family, Scenario
from benchmarks.fault_shop import SHOP, Request


def draw(with_: Draw) -> Scenario:
    def complain(rng: Any, request: Request) -> str | None:
        return "" if rng.random() < 0.25 else None

    name = str(with_.one(list(SHOP)))
    return Scenario(
        world=with_.world,
        ideal=with_.ideal,
        hit=with_.requests(with_.size(30, 60), intents=[name], days=(30, 60)),
        comments=("meh", "too slow", "bad", "I do not like it"),
        complains_anyway=complain,
    )


FAMILY = Family("benign_drift", draw)
