"""The intent model has never seen a class that customers now ask for."""

from benchmarks.fault_scenario import Draw, Family, Scenario
from benchmarks.fault_shop import SHOP, training_rows


def draw(with_: Draw) -> Scenario:
    name = str(with_.one(list(SHOP)))
    return Scenario(
        world=with_.world.changed(training=training_rows(with_.rng, without=SHOP[name].says)),
        ideal=with_.ideal,
        hit=with_.requests(with_.size(15, 40), intents=[name], days=(float(with_.rng.uniform(10, 40)), 60.0)),
        comments=("not what I asked", "I meant {label}", "you can do that now, can't you?"),
        answers=0.8,
        labels=0.9,
    )


FAMILY = Family("new_class", draw)
