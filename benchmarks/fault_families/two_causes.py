"""Two causes share an intent: first a few users' facts are forgotten, later another answer is right for everybody."""

from benchmarks.fault_scenario import USERS, Draw, Family, Scenario
from benchmarks.fault_shop import FACTS, SHOP

POLICIES = (
    ("It costs 5 euros since this month", "always say that it costs 5 euros"),
    ("Please show your identity card there", "the policy is that everybody shows a card"),
)


def draw(with_: Draw) -> Scenario:
    name, (line, said) = with_.intent("fact"), with_.one(POLICIES)
    kind = SHOP[name].fact or ""
    mine = [str(user) for user in with_.rng.choice(USERS, size=6, replace=False)]
    wanted = {(user, kind): FACTS[kind][1][at % len(FACTS[kind][1])] for at, user in enumerate(mine)}
    without = {key: value for key, value in with_.facts.items() if key not in wanted}
    day = 30.0
    return Scenario(
        world=with_.world.changed(facts=without),
        ideal=with_.ideal.changed(facts={**without, **wanted}, lines={name: ((day, f"{SHOP[name].line} {line}."),)}),
        hit=(
            *with_.requests(with_.size(12, 25), intents=[name], users=mine, days=(0.0, day)),
            *with_.requests(
                with_.size(12, 25), intents=[name], users=[user for user in USERS if user not in mine], days=(day, 60.0)
            ),
        ),
        comments=("wrong", "{wanted}", said),
        answers=0.7,
    )


FAMILY = Family("two_causes", draw)
