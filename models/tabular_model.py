"""The classifier of records: numbers, categories and missing values, with a confidence that is scaled out of fold.

A record comes as its canonical JSON, as everywhere in the loop; what is no object counts as one without any value.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Self

import numpy as np
from pydantic import JsonValue
from scipy.special import softmax
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from threadpoolctl import ThreadpoolController

from models.calibration import fit_temperature
from models.columns import Columns, Row
from models.estimator import fit_estimator, log_probabilities, make_estimator, refuse_unstorable
from models.predictions import Prediction
from models.reject import FEWEST_ASKED, Bools, Floats
from models.taught_rows import Labels, TaughtRows
from models.text_folds import text_folds

FOLDS = 3
"""From which confidence is calibrated."""

LEARNERS: dict[str, Callable[[int], Any]] = {
    "boosting": lambda seed: HistGradientBoostingClassifier(max_iter=40, early_stopping=False, random_state=seed),
    "logistic": lambda seed: LogisticRegression(C=1.0, max_iter=1000, random_state=seed),
    "forest": lambda seed: RandomForestClassifier(60, min_samples_leaf=2, random_state=seed),
}
_BY_PLACE = ("boosting", "forest")
"""Learners that take missing values and split categories by their place."""


class TabularModel:
    """Label, confidence and rejection for records.

    Without rows labelled `out_of_scope` nothing is rejected; with them, what is less sure than all but `in_scope_rejection`
    of the in-scope rows.

    >>> rows = [json.dumps({"amount": n, "kind": "gift" if n % 2 else "order"}) for n in range(40)]
    >>> model = TabularModel(learner="logistic").fit(rows, ["large" if n >= 20 else "small" for n in range(40)])
    >>> model.predict(['{"amount": 39, "kind": "gift"}'])[0].label
    'large'
    """

    def __init__(
        self,
        *,
        learner: str = "boosting",
        out_of_scope: str | None = None,
        in_scope_rejection: float = 0.1,
        seed: int = 0,
        estimator: str | None = None,
        estimator_params: Mapping[str, JsonValue] | None = None,
    ) -> None:
        self.learner, self.out_of_scope, self.in_scope_rejection, self.seed = (
            learner, out_of_scope, in_scope_rejection, seed,
        )  # fmt: skip
        self.estimator, self.estimator_params = estimator, dict(estimator_params or {})
        self.estimator_fits = 0
        self.temperature = 1.0
        self.threshold = 0.0
        """Least confidence that is answered."""
        self.classes: Labels = np.array([], dtype=np.str_)
        self._columns = Columns()
        self._classifier: Any = None

    @property
    def params(self) -> dict[str, Any]:
        """The constructor's arguments, by name."""
        names = ("learner", "out_of_scope", "in_scope_rejection", "seed", "estimator", "estimator_params")
        return {name: getattr(self, name) for name in names}

    def fit(
        self,
        texts: Sequence[str],
        labels: Sequence[str],
        weights: Sequence[float] | None = None,
        asked: Sequence[bool] | None = None,
    ) -> Self:
        """Learns from one label a record, the same from any order of the rows; `asked` as in `TextModel.fit`.

        Raises ValueError for fewer than two classes, or an estimator that cannot be used or stored.
        """
        texts, y, w, live, in_scope, self.classes = TaughtRows.of(
            texts, labels, weights, asked, out_of_scope=self.out_of_scope
        )
        records = [as_record(text) for text in texts]
        self._columns = Columns().found(records)
        X = self._features(records)
        if not X.shape[1]:
            raise ValueError(f"{len(y)} rows without a single value: records are JSON objects")
        self._calibrate(texts, X, y, w, in_scope, live)
        self._classifier = self._fitted(X[in_scope], y[in_scope], w[in_scope])
        if self.learner == "estimator":
            refuse_unstorable(self._classifier, str(self.estimator))
        return self

    def predict(self, texts: Sequence[str]) -> tuple[Prediction, ...]:
        """One prediction a record, in order."""
        if not texts:
            return ()
        with _threads().limit(limits=1):
            features = self._features([as_record(text) for text in texts])
            decisions = log_probabilities(self._classifier, features, self.classes)
        shares = softmax(decisions * self.temperature, axis=1)
        best = shares.argmax(axis=1)
        return tuple(
            Prediction(
                label=str(self.classes[i]), confidence=float(row[i]), rejected=bool(float(row[i]) < self.threshold)
            )
            for i, row in zip(best, shares, strict=True)
        )

    def parts(self) -> dict[str, Any]:
        """Everything needed to rebuild it: plain values, arrays and one scikit-learn estimator."""
        return {
            "params": self.params,
            "temperature": self.temperature,
            "threshold": self.threshold,
            "classes": self.classes,
            "columns": self._columns.parts(),
            "classifier": self._classifier,
        }

    @classmethod
    def from_parts(cls, parts: dict[str, Any]) -> Self:
        """The model that gave `parts`."""
        model = cls(**parts["params"])
        model.temperature, model.threshold = float(parts["temperature"]), float(parts["threshold"])
        model.classes, model._classifier = parts["classes"], parts["classifier"]
        model._columns = Columns.from_parts(parts["columns"])
        return model

    def _features(self, records: Sequence[Row]) -> Floats:
        return self._columns.ordinal(records) if self.learner in _BY_PLACE else self._columns.dense(records)

    def _calibrate(self, texts: Sequence[str], X: Floats, y: Labels, w: Floats, in_scope: Bools, live: Bools) -> None:
        """Temperature and threshold, from decisions on rows that were not trained on."""
        decisions = np.full((len(y), len(self.classes)), np.nan)
        for train, test in text_folds(texts, FOLDS, seed=self.seed):
            known = train[in_scope[train]]
            if len(np.unique(y[known])) > 1:
                decisions[test] = log_probabilities(self._fitted(X[known], y[known], w[known]), X[test], self.classes)
        judged: Bools = np.isfinite(decisions).all(axis=1) & in_scope
        if not judged.any():
            raise ValueError(f"{len(y)} rows: too few to predict any of them out of fold")
        self.temperature = fit_temperature(decisions[judged], np.searchsorted(self.classes, y[judged]))
        if self.out_of_scope is None or in_scope.all():
            return
        if (judged & live).sum() >= FEWEST_ASKED:
            judged &= live
        sure = softmax(decisions[judged] * self.temperature, axis=1).max(axis=1)
        self.threshold = float(np.quantile(sure, self.in_scope_rejection, method="lower"))

    def _fitted(self, X: Floats, y: Labels, w: Floats) -> Any:
        self.estimator_fits += 1
        if self.learner != "estimator":
            with _threads().limit(limits=1):
                return LEARNERS[self.learner](self.seed).fit(X, y, sample_weight=w)
        classifier = make_estimator(str(self.estimator), self.estimator_params, seed=self.seed)
        return fit_estimator(classifier, X, y, w)


@cache
def _threads() -> ThreadpoolController:
    """Of a few thousand rows threads take more time than they save, and of one they wait for a core that is busy."""
    return ThreadpoolController()


def as_record(text: str) -> Row:
    """The record that a row's canonical JSON says; empty where it says none.

    >>> as_record('{"a": 1}'), as_record("hello"), as_record("[1]")
    ({'a': 1}, {}, {})
    """
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
