"""The knowledge base has no note on a topic."""

from benchmarks.fault_scenario import Draw, Family, Scenario
from benchmarks.fault_shop import NOTES, SHOP


def draw(with_: Draw) -> Scenario:
    name = with_.intent("topic")
    without = {topic: note for topic, note in NOTES.items() if topic != SHOP[name].topic}
    return Scenario(
        world=with_.world.changed(notes=without),
        ideal=with_.ideal,
        hit=with_.requests(with_.size(), intents=[name]),
        comments=("that is no answer", "your website says it clearly", "{wanted}", "useless"),
        answers=0.6,
    )


FAMILY = Family("knowledge_gap", draw)
