"""From one day on customers say it in new words, which the intent model does not know."""

from benchmarks.fault_scenario import Draw, Family, Scenario
from benchmarks.fault_shop import SHOP


def draw(with_: Draw) -> Scenario:
    name = str(with_.one(list(SHOP)))
    return Scenario(
        world=with_.world,
        ideal=with_.ideal,
        hit=with_.requests(
            with_.size(15, 40), intents=[name], says=SHOP[name].slang, days=(float(with_.rng.uniform(10, 40)), 60.0)
        ),
        comments=("what?", "you do not understand me", "I meant {label}", "wrong"),
        answers=0.8,
        labels=0.9,
    )


FAMILY = Family("class_drift", draw)
