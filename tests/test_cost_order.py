"""The order of places: least expected cost over all permutations."""

from itertools import permutations

import pytest

from models.cost_order import cheapest_order, expected_cost
from store.records import TARGETS

SURE = {"context": 0.02, "memory": 0.02, "tooling": 0.02, "weights": 0.92, "none": 0.02}
EVEN = {"context": 0.24, "memory": 0.24, "tooling": 0.24, "weights": 0.24, "none": 0.04}


def test_no_permutation_costs_less() -> None:
    best = expected_cost(cheapest_order(EVEN), EVEN)
    assert best == pytest.approx(min(expected_cost(order, EVEN) for order in permutations(TARGETS)))


@pytest.mark.parametrize(("probabilities", "first"), [(SURE, "weights"), (EVEN, "memory")])
def test_what_is_surest_comes_first_and_among_equals_what_is_cheapest(
    probabilities: dict[str, float], first: str
) -> None:
    assert cheapest_order(probabilities)[0] == first


def test_a_place_that_the_deployment_lacks_is_not_tried() -> None:
    assert "weights" not in cheapest_order({**EVEN, "weights": 0.0})
