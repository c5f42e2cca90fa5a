"""From one day on another answer is right for everybody, and the prompt does not know."""

from benchmarks.fault_scenario import Draw, Family, Scenario
from benchmarks.fault_shop import SHOP

POLICIES = (
    ("A receipt is needed now", "you must ask for the receipt first"),
    ("It costs 5 euros since this month", "always say that it costs 5 euros"),
    ("Please confirm by replying YES", "never do that without a confirmation"),
    ("This is only possible within 14 days", "the policy is 14 days now, for all customers"),
)


def draw(with_: Draw) -> Scenario:
    name, (line, said) = with_.intent("tool"), with_.one(POLICIES)
    day = float(with_.rng.uniform(10, 50))
    return Scenario(
        world=with_.world,
        ideal=with_.ideal.changed(lines={name: ((day, f"{SHOP[name].line} {line}."),)}),
        hit=with_.requests(with_.size(), intents=[name], days=(day, 60.0)),
        comments=(said, "that is not what your website says", "your colleague told me something else", said),
        answers=0.7,
    )


FAMILY = Family("policy_change", draw)
