"""A few users have said what holds for them, and it was not kept."""

from benchmarks.fault_scenario import USERS, Draw, Family, Scenario
from benchmarks.fault_shop import FACTS, SHOP, Request


def draw(with_: Draw) -> Scenario:
    name = with_.intent("fact")
    kind = SHOP[name].fact or ""
    users = [str(user) for user in with_.rng.choice(USERS, size=int(with_.rng.integers(1, 4)), replace=False)]
    wanted = {user: str(with_.one(FACTS[kind][1])) for user in users}
    without = {key: value for key, value in with_.facts.items() if key not in {(user, kind) for user in users}}
    said: tuple[Request, ...] = ()
    for user in users:
        if with_.rng.random() < 0.6:
            says = [f"for me it is {wanted[user]}"]
            said += with_.requests(1, users=[user], intents=[name], says=says, days=(0, 5), earlier=True)
    return Scenario(
        world=with_.world.changed(facts=without),
        ideal=with_.ideal.changed(facts={**without, **{(user, kind): value for user, value in wanted.items()}}),
        hit=(*said, *with_.requests(with_.size(5, 15), intents=[name], users=users, days=(6, 60))),
        comments=("I told you before", "not for me", "how often do I have to say it", "wrong"),
        answers=0.7,
    )


FAMILY = Family("forgotten_fact", draw)
