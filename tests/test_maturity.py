"""How late labels come, with those that have not come yet."""

import numpy as np

from models.maturity import arrived_share, matures_after


def test_without_waiting_traces_it_is_the_plain_share() -> None:
    delays = [1.0, 2.0, 2.0, 5.0]
    assert [round(share, 9) for _, share in arrived_share(delays, [])] == [0.25, 0.75, 1.0]


def test_labels_that_may_still_come_make_a_window_mature_later() -> None:
    delays = [float(n) for n in range(1, 11)]
    assert matures_after(delays, []) == 9.0
    assert matures_after(delays, [0.5] * 5) == 9.0
    assert matures_after(delays, [6.0] * 10) == 10.0


def test_the_estimate_finds_the_quantile_behind_the_censoring() -> None:
    rng = np.random.default_rng(0)
    delay, age = rng.exponential(1.0, 3000), rng.uniform(0, 5, 3000)
    found = matures_after(list(delay[delay <= age]), list(age[delay > age]))
    assert found is not None
    assert abs(found - 2.303) < 0.3


def test_without_labels_nothing_is_said() -> None:
    assert matures_after([], [1.0, 2.0]) is None
