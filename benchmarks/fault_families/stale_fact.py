"""What is remembered of a few users is no longer true."""

from benchmarks.fault_scenario import USERS, Draw, Family, Scenario
from benchmarks.fault_shop import FACTS, SHOP


def draw(with_: Draw) -> Scenario:
    name = with_.intent("fact")
    kind = SHOP[name].fact or ""
    users = [str(user) for user in with_.rng.choice(USERS, size=int(with_.rng.integers(1, 4)), replace=False)]
    old = {(user, kind): FACTS[kind][1][0] for user in users}
    new = {(user, kind): str(with_.one(FACTS[kind][1][1:])) for user in users}
    return Scenario(
        world=with_.world.changed(facts={**with_.facts, **old}),
        ideal=with_.ideal.changed(facts={**with_.facts, **new}),
        hit=with_.requests(with_.size(5, 15), intents=[name], users=users),
        comments=("that was long ago", "no longer", "I have changed that", "still the old one"),
        answers=0.7,
    )


FAMILY = Family("stale_fact", draw)
