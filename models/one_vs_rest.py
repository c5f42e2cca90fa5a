"""Refitting one class of a one-vs-rest linear SVM: the same optimum as over all rows, from the few that can matter."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.svm import LinearSVC

from models.reject import Bools, Floats, linear_scores

ROUNDS = 10
SLACK = 0.05
"""Rows whose margin is so little over 1 are kept too, so that few rounds find no more."""
TOLERANCE = 0.01
"""A margin short of 1 by less counts as none: the solver's own precision."""

Column = tuple[npt.NDArray[np.float64], float]
"""Weights of shape (d,) and the intercept of one class."""


def refit_class(X: Any, positive: Bools, weights: Floats, scores: Floats, *, kept: Bools, solver: LinearSVC) -> Column:
    """The column of the class whose rows are `positive`, over the rows `kept` of sparse `X` (n, d).

    `scores` (n,) are what the column before gives the rows. A row whose margin is 1 or more has no part in the squared
    hinge loss: the solver is given the others, and again with those that its answer moved below 1, until there are none.
    Raises ValueError where the rows kept are all of one kind.
    """
    side = np.where(positive, 1.0, -1.0)
    active = kept & (positive | (side * scores < 1 + SLACK))
    for _ in range(ROUNDS):
        if not (active & ~positive).any():
            active = kept
        chosen = np.flatnonzero(active)
        solver.fit(X[chosen], positive[chosen], sample_weight=weights[chosen])
        margin = side * linear_scores(solver, X)[:, 0]
        if not (kept & ~active & (margin < 1 - TOLERANCE)).any():
            break
        active |= kept & (margin < 1 + SLACK)
    return solver.coef_[0].astype(np.float64), float(solver.intercept_[0])
