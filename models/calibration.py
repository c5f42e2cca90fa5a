"""Do confidences mean what they say? The expected calibration error, and by how much a challenger's is worse."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from store.records.production import Record

BINS = 10
RESAMPLES = 500
LOWEST = -1e9
"""Score of a class that the classifier never saw."""


class Calibrated(Record):
    """Expected calibration errors of champion and challenger over the same rows, neither trained on them."""

    rows: int
    champion: float
    challenger: float
    worse: float
    """The challenger's error less the champion's."""
    worse_lower: float
    """Its lower 95 % bound."""


def expected_calibration_error(confidence: Sequence[float], right: Sequence[bool], bins: int = BINS) -> float:
    """Mean distance of confidence and accuracy over bins of equally many answers; 0 to 1. NaN without answers.

    Naeini et al., Obtaining Well Calibrated Probabilities Using Bayesian Binning (AAAI 2015), with equal-mass bins.

    >>> expected_calibration_error([0.5, 0.5], [True, False])
    0.0
    >>> expected_calibration_error([0.9, 0.9], [False, False])
    0.9
    """
    if not len(confidence):
        return float("nan")
    return _error(np.asarray(confidence, dtype=np.float64), np.asarray(right, dtype=np.float64), bins)


def compare_calibration(
    champion: tuple[Sequence[float], Sequence[bool]],
    challenger: tuple[Sequence[float], Sequence[bool]],
    *,
    seed: int,
) -> Calibrated | None:
    """By how much the challenger's error exceeds the champion's on the same rows; None without rows.

    The bound comes from a bootstrap over the rows, seeded: with few rows an error of two points is noise. Each side has
    the confidences and whether they were right, shape (n,).
    """
    sides = [(np.asarray(c, dtype=np.float64), np.asarray(r, dtype=np.float64)) for c, r in (champion, challenger)]
    n = len(sides[0][0])
    if not n:
        return None
    rng = np.random.default_rng(seed)
    drawn = [_difference(sides, rng.integers(n, size=n)) for _ in range(RESAMPLES)]
    old, new = (_error(confidence, right, BINS) for confidence, right in sides)
    return Calibrated(
        rows=n, champion=old, challenger=new, worse=new - old, worse_lower=float(np.quantile(drawn, 0.05))
    )


def _difference(
    sides: list[tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]], rows: npt.NDArray[np.int64]
) -> float:
    old, new = (_error(confidence[rows], right[rows], BINS) for confidence, right in sides)
    return new - old


def _error(confidence: npt.NDArray[np.float64], right: npt.NDArray[np.float64], bins: int) -> float:
    ordered, n = np.sort(confidence), len(confidence)
    middle = (np.searchsorted(ordered, confidence, "left") + np.searchsorted(ordered, confidence, "right")) / 2
    bin_of = np.minimum((middle * bins / n).astype(np.int64), bins - 1)  # equal confidences share a bin
    return float(np.abs(np.bincount(bin_of, weights=confidence - right)).sum() / n)


def fit_temperature(decisions: npt.NDArray[np.float64], truth: npt.NDArray[np.int64]) -> float:
    """The factor on the scores with the least log-loss, in [exp(-3), exp(4)]; one row of unknown label is mixed in.

    Guo et al., On Calibration of Modern Neural Networks (ICML 2017), section 4.
    """
    seen = decisions[np.arange(len(truth)), truth] > LOWEST
    scores, rows = decisions[seen], np.arange(int(seen.sum()))
    if not len(rows):
        return 1.0
    learnt = scores > LOWEST

    def loss(log_factor: float) -> float:
        logs = log_softmax(scores * np.exp(log_factor), axis=1)
        return float(-logs[rows, truth[seen]].sum() - logs[learnt].mean())

    return float(np.exp(minimize_scalar(loss, bounds=(-3, 4), method="bounded").x))
