"""Nearest-neighbour exceptions over a text model: the smallest possible change of what is served.

An input close to a corrected one gets that one's label; every other input gets the answer of the model beneath.
Closeness is seen through the features of the model beneath: words and character runs it never saw do not count.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from models.predictions import Prediction
from models.taught_rows import Labels
from models.text_model import TextModel

REACHES = (0.5, 0.6, 0.7, 0.8, 0.9)
"""Cosine similarities tried; the reach is the one with the best net repair, the strictest of equals."""
BREAK_COST = 2
"""An answer newly wrong counts as much as two repaired (kappa of the net value)."""


class ExceptionModel:
    """A text model and exceptions to it; predicts, and is stored, like a `TextModel`."""

    def __init__(self, beneath: TextModel) -> None:
        self.beneath = beneath
        self.out_of_scope = beneath.out_of_scope
        self.estimator_fits = beneath.estimator_fits
        self.reach = 2.0
        self._vectors: Any = None
        self._labels: Labels = np.array([], dtype=np.str_)

    @property
    def labels(self) -> frozenset[str]:
        """The labels of the exceptions."""
        return frozenset(map(str, self._labels))

    def fit(self, texts: Sequence[str], labels: Sequence[str]) -> Self:
        """Learns the exceptions from rows the model beneath did not train on; raises ValueError without rows."""
        if not texts:
            raise ValueError("no rows to make exceptions of")
        self._vectors = self.beneath.features(texts)
        self._labels = np.asarray(labels, dtype=np.str_)
        similarity = (self._vectors @ self._vectors.T).toarray()
        np.fill_diagonal(similarity, -1.0)
        nearest = similarity.argmax(axis=1)
        closest = similarity.max(axis=1)
        right_before = np.array([self._served(p) for p in self.beneath.predict(texts)]) == self._labels
        right_after = self._labels[nearest] == self._labels

        def net(reach: float) -> int:
            changed = closest >= reach
            repaired = int((changed & right_after & ~right_before).sum())
            return repaired - BREAK_COST * int((changed & right_before & ~right_after).sum())

        self.reach = max(REACHES, key=lambda reach: (net(reach), reach))
        return self

    def predict(self, texts: Sequence[str]) -> tuple[Prediction, ...]:
        """One prediction a text, in order; an exception's confidence is its similarity."""
        beneath = self.beneath.predict(texts)
        if not texts or self._vectors is None:
            return beneath
        similarity = self.beneath.features(texts) @ self._vectors.T
        nearest = np.asarray(similarity.argmax(axis=1)).ravel()
        closest = similarity.max(axis=1).toarray().ravel()
        return tuple(
            self._exception(prediction, str(self._labels[i]), float(s)) if s >= self.reach else prediction
            for prediction, i, s in zip(beneath, nearest, closest, strict=True)
        )

    def parts(self) -> dict[str, Any]:
        """Everything needed to rebuild it; skops trusts no sparse matrix, so its three arrays stand for it."""
        return {
            "beneath": self.beneath.parts(),
            "reach": self.reach,
            "labels": self._labels,
            "vectors": {name: getattr(self._vectors, name) for name in ("data", "indices", "indptr")},
            "dimensions": self._vectors.shape[1],
        }

    @classmethod
    def from_parts(cls, parts: dict[str, Any]) -> Self:
        """The model that gave `parts`."""
        model = cls(TextModel.from_parts(parts["beneath"]))
        model.reach, model._labels = float(parts["reach"]), parts["labels"]
        arrays = parts["vectors"]
        shape = (len(model._labels), int(parts["dimensions"]))
        model._vectors = sp.csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)
        return model

    def _served(self, prediction: Prediction) -> str:
        return (self.out_of_scope or "") if prediction.rejected else prediction.label

    def _exception(self, prediction: Prediction, label: str, similarity: float) -> Prediction:
        confidence = min(1.0, similarity)
        if label == self.out_of_scope:
            return Prediction(label=prediction.label, confidence=confidence, rejected=True)
        return Prediction(label=label, confidence=confidence, rejected=False)
