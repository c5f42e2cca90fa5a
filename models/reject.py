"""The reject model: is this input one of the classes at all?

It is a model of its own, trained on the out-of-scope rows seen against the in-scope rows, so that learning more of the
classes never makes the classifier greedier for what belongs to none. Without out-of-scope rows it is a threshold on the
classifier's margins. The threshold turns away at most a given share of in-scope rows, on out-of-fold scores.
"""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Folds = list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]

FEWEST_OUT_OF_SCOPE = 10
"""Below it the margins alone decide."""
FEWEST_ASKED = 30
"""From so many in-scope production inputs on the threshold comes from them alone: what developers wrote scores higher."""
_TEXT_SCALE = 3.0
"""Weight of the text features beside the two standardised margins."""


def margins(decisions: Floats) -> Floats:
    """The highest score and its lead over the second, shape (n, 2), from decisions of shape (n, classes >= 2)."""
    ordered = np.sort(decisions, axis=1)
    return np.column_stack([ordered[:, -1], ordered[:, -1] - ordered[:, -2]])


def linear_scores(model: Any, features: Any) -> Floats:
    """`decision_function` of a linear model, shape (n, rows of `coef_`), without the checks that it repeats at each call."""
    return np.asarray(features @ model.coef_.T + model.intercept_, dtype=np.float64)


class RejectModel:
    """In-scope scores from text features and the classifier's margins, and the threshold below which to reject."""

    def __init__(self, *, in_scope_rejection: float = 0.1, seed: int = 0) -> None:
        self.in_scope_rejection = in_scope_rejection
        self.seed = seed
        self.estimator_fits = 0
        self.threshold = -np.inf
        self._centre = np.zeros(2)
        self._spread = np.ones(2)
        self._model: LogisticRegression | None = None

    @property
    def learned(self) -> bool:
        """Whether out-of-scope rows were learnt, rather than a threshold on the margins alone."""
        return self._model is not None

    def fit(self, features: Any, margin: Floats, in_scope: Bools, folds: Folds, live: Bools) -> Self:
        """Learns from sparse `features` (n, d), out-of-fold `margin` (n, 2) and `in_scope` (n,).

        `folds` are (train, test) positions over the n rows; the threshold comes from their test scores.
        """
        self._centre = margin[in_scope].mean(axis=0)
        self._spread = np.maximum(margin[in_scope].std(axis=0), 1e-9)
        out_of_fold = margin.sum(axis=1)
        if (~in_scope).sum() >= FEWEST_OUT_OF_SCOPE:
            mixed = self._mixed(features, margin)
            out_of_fold = np.full(len(in_scope), np.nan)
            for train, test in folds:
                if in_scope[train].all() or not in_scope[train].any():
                    continue  # equal texts stay together: this fold has all of one kind
                out_of_fold[test] = self._fitted(mixed[train], in_scope[train]).decision_function(mixed[test])
            self._model = self._fitted(mixed, in_scope)
        if not (in_scope & np.isfinite(out_of_fold)).any():
            self._model, out_of_fold = None, margin.sum(axis=1)
        judged = in_scope & np.isfinite(out_of_fold)
        if (judged & live).sum() >= FEWEST_ASKED:
            judged &= live
        self.threshold = float(np.quantile(out_of_fold[judged], self.in_scope_rejection, method="lower"))
        return self

    def score(self, features: Any, margin: Floats) -> Floats:
        """In-scope scores, shape (n,): the higher, the surer that the input belongs to a class."""
        if self._model is None:
            return np.asarray(margin.sum(axis=1), dtype=np.float64)
        return linear_scores(self._model, self._mixed(features, margin))[:, 0]

    def rejects(self, features: Any, margin: Floats) -> Bools:
        """Whether each input is turned away, shape (n,)."""
        return np.asarray(self.score(features, margin) < self.threshold)

    def parts(self) -> dict[str, Any]:
        """Everything needed to rebuild it: plain values, arrays and one scikit-learn estimator."""
        return {
            "in_scope_rejection": self.in_scope_rejection,
            "seed": self.seed,
            "threshold": self.threshold,
            "centre": self._centre,
            "spread": self._spread,
            "model": self._model,
        }

    @classmethod
    def from_parts(cls, parts: dict[str, Any]) -> Self:
        """The model that gave `parts`."""
        model = cls(in_scope_rejection=parts["in_scope_rejection"], seed=parts["seed"])
        model.threshold = float(parts["threshold"])
        model._centre, model._spread, model._model = parts["centre"], parts["spread"], parts["model"]
        return model

    def _mixed(self, features: Any, margin: Floats) -> Any:
        standard = ((margin - self._centre) / self._spread).astype(np.float32)
        return sp.hstack([sp.csr_matrix(standard), features * np.float32(_TEXT_SCALE)], format="csr")

    def _fitted(self, mixed: Any, in_scope: Bools) -> LogisticRegression:
        self.estimator_fits += 1
        model = LogisticRegression(
            class_weight="balanced", solver="liblinear", dual=True, tol=1e-2, max_iter=1000, random_state=self.seed
        )
        return model.fit(mixed, in_scope)
