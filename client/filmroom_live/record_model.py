"""A model of records in this process, and how a record is put to it."""

import importlib
import json
import math
from collections.abc import Mapping
from typing import Any

from filmroom_live.prediction import LEAST, LOWEST, Prediction
from filmroom_live.record_values import category, number


class RecordModel:
    """A classifier of records, as `models/tabular_model.py` trains it."""

    def __init__(self, parts: dict[str, Any]) -> None:
        self._classes = [str(each) for each in parts["classes"]]
        self._classifier = parts["classifier"]
        self._temperature, self._threshold = float(parts["temperature"]), float(parts["threshold"])
        self._numeric = {str(name): (float(a), float(b)) for name, (a, b) in parts["columns"]["numeric"].items()}
        self._categories = {str(name): list(map(str, each)) for name, each in parts["columns"]["categories"].items()}
        self._by_place = parts["params"]["learner"] in ("boosting", "forest")
        self._numpy: Any = importlib.import_module("numpy")
        self._threads: Any = importlib.import_module("threadpoolctl").ThreadpoolController()

    def predict(self, text: str) -> Prediction:
        """The answer to a record as JSON; what is no object counts as one without any value."""
        try:
            found = json.loads(text)
        except ValueError:
            found = {}
        record = found if isinstance(found, dict) else {}
        X = self._numpy.array([self._ordinal(record) if self._by_place else self._dense(record)])
        with self._threads.limit(limits=1):  # one record gains nothing from threads, which would wait for a busy core
            shares = self._classifier.predict_proba(X)
        known = self._numpy.log(self._numpy.maximum(shares, LEAST))[0]
        scores = dict(zip(map(str, self._classifier.classes_), map(float, known), strict=True))
        best = max(self._classes, key=lambda label: scores.get(label, LOWEST))
        total = sum(math.exp((score - scores[best]) * self._temperature) for score in scores.values())
        return Prediction(best, 1 / total, 1 / total < self._threshold)

    def _ordinal(self, record: dict[str, Any]) -> list[float]:
        places = [
            float(values.index(key)) if (key := category(record.get(name))) in values else math.nan
            for name, values in self._categories.items()
        ]
        return [*(number(record.get(name)) for name in self._numeric), *places]

    def _dense(self, record: dict[str, Any]) -> list[float]:
        found: list[float] = []
        for name, (median, spread) in self._numeric.items():
            value = number(record.get(name))
            found += [0.0, 1.0] if math.isnan(value) else [(value - median) / spread, 0.0]
        for name, values in self._categories.items():
            found += [float(category(record.get(name)) == value) for value in values]
        return found


def as_text(given: str | Mapping[str, Any]) -> str:
    """What a model is asked: a text as it is, a record as JSON; a number that is none counts as missing.

    >>> as_text({"amount": float("nan"), "country": "DE"})
    '{"amount": null, "country": "DE"}'
    """
    if isinstance(given, str):
        return given
    known = {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in given.items()
    }
    return json.dumps(known, sort_keys=True)
