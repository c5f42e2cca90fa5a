"""A one-vs-rest linear SVM of many rows: the optimum over all of them, each class from the few that can matter to it."""

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.svm import LinearSVC

from models.reject import Bools, Floats, linear_scores
from models.taught_rows import Labels

ROUNDS = 10
SAMPLE = 0.25
"""Share of the rows that a first guess at all columns comes from."""
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
    active = kept & (positive | (side * scores < 1))
    for _ in range(ROUNDS):
        if not (active & ~positive).any():
            active = kept
        chosen = np.flatnonzero(active)
        solver.fit(X[chosen], positive[chosen], sample_weight=weights[chosen])
        margin = side * linear_scores(solver, X)[:, 0]
        if not (kept & ~active & (margin < 1 - TOLERANCE)).any():
            break
        active |= kept & (margin < 1)
    return solver.coef_[0].astype(np.float64), float(solver.intercept_[0])


def fit_one_vs_rest(
    solver: LinearSVC, X: Any, y: Labels, weights: Floats, *, start: Floats | None = None, seed: int = 0
) -> LinearSVC:
    """`solver` fitted to at least three classes over sparse `X` (n, d), as its own `fit` does, in half the time or less.

    `start` are scores of another model on the same rows, shape (n, classes) in order of the classes: the nearer they are, the
    sooner it is done. Without them a model of a quarter of the rows gives them. They change the time, not the optimum.
    """
    classes = np.unique(y)
    scores = _guess(solver, X, y, weights, classes, seed) if start is None else start
    kept = np.ones(len(y), bool)
    columns = [
        refit_class(X, y == label, weights, scores[:, i], kept=kept, solver=clone(solver))
        for i, label in enumerate(classes)
    ]
    solver.classes_ = classes
    solver.coef_ = np.array([weights for weights, _ in columns])
    solver.intercept_ = np.array([constant for _, constant in columns])
    solver.n_features_in_, solver.n_iter_ = X.shape[1], ROUNDS
    return solver


def _guess(solver: LinearSVC, X: Any, y: Labels, weights: Floats, classes: Labels, seed: int) -> Floats:
    sample = np.random.default_rng(seed).permutation(len(y))[: int(SAMPLE * len(y))]
    scores = np.full((len(y), len(classes)), -1.0)
    if len(np.unique(y[sample])) > 2:
        first = clone(solver).set_params(tol=0.1).fit(X[sample], y[sample], sample_weight=weights[sample])
        scores[:, np.searchsorted(classes, first.classes_)] = linear_scores(first, X)
    return scores
