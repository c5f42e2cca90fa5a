"""In which order are the places tried? The one of least expected cost, of the 24 there are."""

from collections.abc import Mapping
from itertools import permutations

from store.records import TARGETS, Record, Target

HOLDS_IF_RIGHT = 0.9
"""Chance that a fix in the right place holds."""
SEEMS_IF_WRONG = 0.3
"""Chance that a fix in the wrong place seems to."""


class PlaceCost(Record):
    """What trying one place costs, in minutes of a person's time."""

    attempt: float
    """Proposing, replaying, approving and applying."""
    harm: float
    """A fix that does not belong there, seems to hold and stays: the failures go on, and it has to be found and taken back."""


COSTS: Mapping[Target, PlaceCost] = {
    "memory": PlaceCost(attempt=1, harm=35),
    "context": PlaceCost(attempt=2, harm=45),
    "tooling": PlaceCost(attempt=5, harm=45),
    "weights": PlaceCost(attempt=5, harm=90),
}
"""Hand-set: a fact reaches one user, a rule and a call's policy everybody, a retrain can change any answer."""
EXHAUSTED = 30.0
"""Every place was tried in vain, and a person looks at it from the start: minutes."""


def cheapest_order(
    probabilities: Mapping[str, float], *, costs: Mapping[Target, PlaceCost] = COSTS, exhausted: float = EXHAUSTED
) -> tuple[Target, ...]:
    """The places with a probability above 0 in the order of least expected cost; among equals the first of `TARGETS`.

    >>> cheapest_order({"context": 0.1, "memory": 0.1, "tooling": 0.7, "weights": 0.1})[0]
    'tooling'
    """
    open_ = [target for target in TARGETS if probabilities.get(target, 0.0) > 0]
    orders = permutations(open_)
    return min(
        orders, key=lambda order: round(expected_cost(order, probabilities, costs=costs, exhausted=exhausted), 9)
    )


def expected_cost(
    order: tuple[Target, ...],
    probabilities: Mapping[str, float],
    *,
    costs: Mapping[Target, PlaceCost] = COSTS,
    exhausted: float = EXHAUSTED,
) -> float:
    """Minutes until it ends, over what may be the right place (or none): each attempt is paid, a right fix ends it with
    probability 0.9, a wrong one with 0.3 and does its harm.
    """
    total = 0.0
    for right, probability in probabilities.items():
        still = 1.0
        for target in order:
            ends = HOLDS_IF_RIGHT if target == right else SEEMS_IF_WRONG
            harm = 0.0 if target == right else ends * costs[target].harm
            total += probability * still * (costs[target].attempt + harm)
            still *= 1 - ends
        total += probability * still * exhausted
    return total
