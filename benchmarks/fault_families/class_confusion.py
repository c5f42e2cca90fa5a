"""The intent model was not shown some phrasings of an intent, and takes them for another."""

from benchmarks.fault_scenario import Draw, Family, Scenario
from benchmarks.fault_shop import SHOP, training_rows


def draw(with_: Draw) -> Scenario:
    name = str(with_.one(list(SHOP)))
    without = [SHOP[name].says[at] for at in with_.rng.choice(len(SHOP[name].says), size=3, replace=False)]
    return Scenario(
        world=with_.world.changed(training=training_rows(with_.rng, without=without)),
        ideal=with_.ideal,
        hit=with_.requests(with_.size(15, 40), intents=[name], says=without),
        comments=("that is not what I asked", "I meant {label}", "wrong topic", "read my message"),
        answers=0.8,
        labels=0.9,
    )


FAMILY = Family("class_confusion", draw)
