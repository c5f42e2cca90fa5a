import math

import numpy as np
import pytest
from scipy import integrate, special, stats

from models.sequential import (
    binomial_e_value,
    clopper_pearson_lower,
    clopper_pearson_upper,
    e_value,
    exact_loss_bound,
    mcnemar_one_sided,
    noninferiority_bound,
    spent_alpha,
    wilson,
    wins_needed,
)


@pytest.mark.parametrize(("c", "b"), [(5, 0), (7, 1), (9, 2)])
def test_mcnemar_first_passes_at_the_documented_counts(c: int, b: int) -> None:
    assert (mcnemar_one_sided(c, b) <= 0.05, mcnemar_one_sided(c - 1, b) <= 0.05) == (True, False)
    assert wins_needed(b, 0.05) == c


@pytest.mark.parametrize(("c", "b"), [(7, 0), (10, 1), (12, 2)])
def test_e_value_first_reaches_twenty_at_the_documented_counts(c: int, b: int) -> None:
    assert (e_value(c, b) >= 20, e_value(c - 1, b) >= 20) == (True, False)


@pytest.mark.parametrize(("c", "b"), [(0, 0), (3, 4), (12, 2), (0, 9)])
def test_e_value_is_its_formula(c: int, b: int) -> None:
    formula = 2 * 2 ** (b + c) * special.beta(c + 1, b + 1) * (1 - special.betainc(c + 1, b + 1, 0.5))
    assert math.isclose(e_value(c, b), formula, rel_tol=1e-9)


def test_e_value_of_a_rate_is_the_averaged_likelihood_ratio() -> None:
    ratio = integrate.quad(lambda p: (p / 0.1) ** 4 * ((1 - p) / 0.9) ** 16, 0.1, 1)[0] / 0.9
    assert math.isclose(binomial_e_value(4, 20, 0.1), ratio, rel_tol=1e-9)


def test_e_value_neither_overflows_nor_turns_negative() -> None:
    assert [e_value(5000, 0), e_value(0, 5000)] == [math.inf, 0.0]


def test_mcnemar_agrees_with_scipy() -> None:
    expected = stats.binomtest(11, 17, 0.5, alternative="greater").pvalue
    assert [mcnemar_one_sided(11, 6), mcnemar_one_sided(0, 0)] == pytest.approx([expected, 1.0])


def test_a_flip_rate_of_one_percent_needs_the_documented_rows() -> None:
    bounds = [clopper_pearson_upper(k, n, 0.95) <= 0.01 for k, n in ((0, 299), (0, 298), (1, 473), (1, 472))]
    assert bounds == [True, False, True, False]


def test_clopper_pearson_agrees_with_scipy() -> None:
    interval = stats.binomtest(7, 40).proportion_ci(confidence_level=0.90, method="exact")
    bounds = clopper_pearson_lower(7, 40, 0.95), clopper_pearson_upper(7, 40, 0.95)
    assert bounds == pytest.approx((interval.low, interval.high))


def test_bounds_without_data_say_nothing() -> None:
    assert (clopper_pearson_lower(0, 0, 0.9), clopper_pearson_upper(0, 0, 0.9), wilson(0, 0)) == (0.0, 1.0, (0.0, 1.0))
    assert (noninferiority_bound(0, 0, 0), exact_loss_bound(0, 0, 0)) == (math.inf, math.inf)


def test_wilson_agrees_with_scipy() -> None:
    interval = stats.binomtest(7, 40).proportion_ci(confidence_level=0.95, method="wilson")
    assert wilson(7, 40, 1.959964) == pytest.approx((interval.low, interval.high), abs=1e-6)


def test_noninferiority_bound_is_its_formula() -> None:
    assert noninferiority_bound(4, 10, 300) == pytest.approx(-6 / 300 + 1.645 * math.sqrt(14 - 36 / 300) / 300)


def test_exact_loss_bound_shrinks_with_the_rows_and_rewards_wins() -> None:
    bounds = [exact_loss_bound(0, 0, 100), exact_loss_bound(0, 0, 400), exact_loss_bound(0, 6, 100)]
    assert bounds == pytest.approx([0.0362, 0.0092, -0.0018], abs=5e-4)


def test_alpha_spent_over_all_looks_stays_below_twice_alpha() -> None:
    assert sum(spent_alpha(0.05, look) for look in range(1, 10_000)) < 0.1


def test_peeking_at_the_e_value_keeps_its_error_and_peeking_at_p_does_not() -> None:
    wins = np.random.default_rng(0).integers(0, 2, (1000, 40)).cumsum(axis=1)
    pairs = {(int(c), n - int(c)) for n in range(1, 41) for c in range(n + 1)}
    e_crosses = {pair for pair in pairs if e_value(*pair) >= 20}
    p_crosses = {pair for pair in pairs if mcnemar_one_sided(*pair) <= 0.05}
    walks = [{(int(c), n + 1 - int(c)) for n, c in enumerate(walk)} for walk in wins]
    errors = [sum(bool(walk & crosses) for walk in walks) / 1000 for crosses in (e_crosses, p_crosses)]
    assert [errors[0] <= 0.05, errors[1] > 0.05] == [True, True]
