"""The intent model takes new words for an intent with a tool, whose call then fails: the error is not the tool's fault."""

from dataclasses import replace

from benchmarks.fault_scenario import Draw, Family, Scenario
from benchmarks.fault_shop import SHOP


def draw(with_: Draw) -> Scenario:
    name = with_.one([each for each, intent in SHOP.items() if intent.fact or intent.topic])
    taken_for = with_.one([each for each, intent in SHOP.items() if intent.tool])
    says = SHOP[name].slang
    taught = tuple((say, str(taken_for)) for say in says for _ in range(2))
    asked = with_.requests(with_.size(10, 30), intents=[str(name)], says=says)
    hit = tuple(replace(each, slots={}) for each in asked)
    return Scenario(
        world=with_.world.changed(training=(*with_.training, *taught)),
        ideal=with_.ideal,
        hit=hit,
        comments=("what error? I asked something else", "I meant {label}", "you misunderstood me", "no"),
        answers=0.7,
        labels=0.8,
    )


FAMILY = Family("wrong_turn", draw)
