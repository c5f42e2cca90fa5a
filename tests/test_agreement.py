"""Agreement of reviewers against published examples."""

import pytest

from models.agreement import Agreement, cohen, fleiss


def pairs(table: list[list[int]]) -> list[tuple[str, str]]:
    return [(f"c{i}", f"c{j}") for i, row in enumerate(table) for j, count in enumerate(row) for _ in range(count)]


def test_cohen_is_that_of_fleiss_levin_and_paik() -> None:
    """Statistical Methods for Rates and Proportions (2003), table 18.1: kappa .68, standard error .087."""
    found = cohen(pairs([[75, 1, 4], [5, 4, 1], [0, 0, 10]]))
    assert found.items == 100
    assert found.kappa == pytest.approx(0.6765, abs=1e-4)
    assert (found.high or 0) - (found.low or 0) == pytest.approx(2 * 1.96 * 0.087, abs=0.004)


def test_cohen_is_that_of_the_example_of_1969() -> None:
    """Fleiss, Cohen and Everitt (1969), table 1: kappa .429, variance .002885 at n 200."""
    found = cohen(pairs([[106, 10, 4], [22, 28, 10], [2, 12, 6]]))
    assert found.kappa == pytest.approx(0.429, abs=5e-4)
    assert (found.high or 0) - (found.low or 0) == pytest.approx(2 * 1.96 * 0.002885**0.5, abs=0.002)


def test_fleiss_is_that_of_fourteen_raters() -> None:
    """The worked example of ten subjects, five categories and fourteen raters: kappa .210."""
    counts = [[0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1], [7, 7, 0, 0, 0],
              [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7]]  # fmt: skip
    opinions = [[f"c{j}" for j, count in enumerate(row) for _ in range(count)] for row in counts]
    found = fleiss(opinions)
    assert (found.items, round(found.observed or 0, 3), round(found.kappa or 0, 3)) == (10, 0.378, 0.210)
    assert -1 <= (found.low or 0) < 0.210 < (found.high or 0) <= 1


def test_two_who_always_agree_are_at_one() -> None:
    found = cohen([("a", "a"), ("b", "b"), ("a", "a")])
    assert found == Agreement(items=3, observed=1.0, kappa=1.0, low=1.0, high=1.0)


def test_nothing_judged_twice_is_not_measured() -> None:
    nothing = Agreement(items=0, observed=None, kappa=None, low=None, high=None)
    assert (cohen([]), fleiss([["a"], []])) == (nothing, nothing)


def test_one_category_alone_has_no_kappa() -> None:
    assert (cohen([("a", "a")] * 5).kappa, fleiss([["a", "a"]] * 5).kappa) == (None, None)


def test_one_item_has_no_interval() -> None:
    found = cohen([("a", "b")])
    assert (found.kappa, found.low, found.high) == (0.0, None, None)


def test_the_interval_of_fleiss_narrows_with_items() -> None:
    few = [["a", "a", "b"], ["b", "b", "b"], ["a", "a", "a"], ["a", "b", "b"]]
    wide, narrow = fleiss(few), fleiss(few * 25)
    assert (narrow.high or 0) - (narrow.low or 0) < ((wide.high or 0) - (wide.low or 0)) / 4
