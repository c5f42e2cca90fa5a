"""Many users correct the same answer, each to something else: no rule for all of them would hold."""

from benchmarks.fault_scenario import USERS, Draw, Family, Scenario
from benchmarks.fault_shop import FACTS, SHOP


def draw(with_: Draw) -> Scenario:
    name = with_.intent("fact")
    kind = SHOP[name].fact or ""
    users = [str(user) for user in with_.rng.choice(USERS, size=8, replace=False)]
    wanted = {(user, kind): FACTS[kind][1][at % len(FACTS[kind][1])] for at, user in enumerate(users)}
    without = {key: value for key, value in with_.facts.items() if key not in wanted}
    return Scenario(
        world=with_.world.changed(facts=without),
        ideal=with_.ideal.changed(facts={**without, **wanted}),
        hit=with_.requests(with_.size(10, 25), intents=[name], users=users),
        comments=("not for me", "mine is another", "wrong", "{wanted}"),
        answers=0.8,
    )


FAMILY = Family("contradictory_users", draw)
