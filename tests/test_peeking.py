"""Sequential tests keep their level although they are looked at after every observation."""

import pytest

from benchmarks.peeking import TESTS, Sequential, early_failures, error_rate


@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.name)
def test_a_sequential_test_keeps_its_level_under_peeking(test: Sequential) -> None:
    allowance = 3 * (test.nominal * (1 - test.nominal) / 400) ** 0.5
    assert error_rate(test._replace(looks=120), 400, seed=1) <= test.nominal + allowance


@pytest.mark.parametrize("baseline", [0.2, 0.6])
def test_a_fix_that_holds_is_rarely_called_failed_early(baseline: float) -> None:
    assert early_failures(baseline, 100, seed=1) <= 0.1
