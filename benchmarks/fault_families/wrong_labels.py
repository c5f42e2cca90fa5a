"""The intent model is right, and some annotators call it wrong."""

from typing import Any

from benchmarks.fault_scenario import Draw, Family, Scenario
from benchmarks.fault_shop import SHOP, Request


def draw(with_: Draw) -> Scenario:
    name = str(with_.one(list(SHOP)))
    mistaken = str(with_.one([each for each in SHOP if each != name]))

    def complain(rng: Any, request: Request) -> str | None:
        return mistaken if rng.random() < 0.8 else None

    return Scenario(
        world=with_.world,
        ideal=with_.ideal,
        hit=with_.requests(with_.size(3, 8), intents=[name], users=["user00"]),
        comments=("wrong", "not this"),
        complains_anyway=complain,
    )


FAMILY = Family("wrong_labels", draw)
