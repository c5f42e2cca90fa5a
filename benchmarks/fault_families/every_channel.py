"""One fault that shows on every channel: another answer is right, wherever it is asked for."""

from dataclasses import replace

from benchmarks.fault_scenario import Draw, Family, Scenario
from benchmarks.fault_shop import CHANNELS, SHOP


def draw(with_: Draw) -> Scenario:
    name = with_.intent("tool")
    hit = [
        replace(each, channel=str(with_.one(CHANNELS))) for each in with_.requests(with_.size(15, 40), intents=[name])
    ]
    return Scenario(
        world=with_.world,
        ideal=with_.ideal.changed(lines={name: ((0.0, f"{SHOP[name].line} A receipt is needed."),)}),
        hit=tuple(hit),
        comments=("you must ask for the receipt first", "your colleague asked for a receipt", "wrong"),
        answers=0.7,
    )


FAMILY = Family("every_channel", draw)
