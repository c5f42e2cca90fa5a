"""The text classifier whose learner is any scikit-learn classifier, over the same features and the same reject model."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

from pydantic import JsonValue

from models.estimator import fit_estimator, log_probabilities, make_estimator, refuse_unstorable
from models.reject import Floats
from models.taught_rows import Labels
from models.text_model import TextModel


class EstimatorTextModel(TextModel):
    """A `TextModel` that asks the classifier at an import path for probabilities; it has no columns to patch.

    >>> texts = ["where is my order", "track my order", "order status", "i want a refund", "refund please", "money back"]
    >>> model = EstimatorTextModel(estimator="sklearn.naive_bayes.MultinomialNB").fit(texts, ["status"] * 3 + ["refund"] * 3)
    >>> model.predict(["refund my order, money back please"])[0].label
    'refund'
    """

    def __init__(
        self,
        *,
        estimator: str,
        estimator_params: Mapping[str, JsonValue] | None = None,
        representation: str = "word_char",
        out_of_scope: str | None = None,
        in_scope_rejection: float = 0.1,
        seed: int = 0,
    ) -> None:
        super().__init__(
            representation=representation,
            learner="estimator",
            out_of_scope=out_of_scope,
            in_scope_rejection=in_scope_rejection,
            seed=seed,
        )
        self.estimator, self.estimator_params = estimator, dict(estimator_params or {})

    @property
    def params(self) -> dict[str, Any]:
        """The constructor's arguments, by name."""
        names = ("estimator", "estimator_params", "representation", "out_of_scope", "in_scope_rejection", "seed")
        return {name: getattr(self, name) for name in names}

    def fit(
        self,
        texts: Sequence[str],
        labels: Sequence[str],
        weights: Sequence[float] | None = None,
        asked: Sequence[bool] | None = None,
    ) -> Self:
        """As `TextModel.fit`; raises ValueError as well for an estimator that cannot be used or stored."""
        super().fit(texts, labels, weights, asked)
        refuse_unstorable(self._classifier, self.estimator)
        return self

    def _fitted(self, X: Any, y: Labels, w: Floats) -> Any:
        self.estimator_fits += 1
        return fit_estimator(make_estimator(self.estimator, self.estimator_params, seed=self.seed), X, y, w)

    def _decisions(self, classifier: Any, X: Any) -> Floats:
        return log_probabilities(classifier, X, self.classes)
