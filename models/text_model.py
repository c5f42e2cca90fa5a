"""The lightweight text classifier: TF-IDF, a linear learner, temperature-scaled confidence and a reject model.

Which representation and learner to try stands in `models.arms`, where it is stored in `models.artifacts`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import ComplementNB
from sklearn.svm import LinearSVC

from models.calibration import LOWEST, fit_temperature
from models.one_vs_rest import fit_one_vs_rest
from models.predictions import Considered, Prediction
from models.reject import Bools, Floats, Folds, RejectModel, linear_scores, margins
from models.taught_rows import Labels, TaughtRows
from models.text_features import REPRESENTATIONS, TextFeatures, with_vocabularies, without_vocabularies
from models.text_folds import text_folds

FOLDS = 5
MANY_ROWS = 5_000
"""From here on one fold in five is predicted out of fold, not all five: one extra fit instead of five. Terms of one row
alone are left out."""


LEARNERS: dict[str, Callable[[int], Any]] = {
    "linear_svc": lambda seed: LinearSVC(C=1.0, tol=1e-2, random_state=seed),
    "logistic": lambda seed: LogisticRegression(C=10.0, tol=1e-3, max_iter=1000, random_state=seed),
    "complement_nb": lambda seed: ComplementNB(),
}


class HeldOut(NamedTuple):
    """Texts that a fit predicted by a model which had not learnt them, and their decisions, shape (n, classes)."""

    texts: tuple[str, ...]
    decisions: Floats


class TextModel:
    """Label, confidence and rejection for texts; rows labelled `out_of_scope` train the reject model only.

    >>> texts = ["where is my order", "track my order", "order status", "i want a refund", "refund please", "money back"]
    >>> model = TextModel().fit(texts, ["status"] * 3 + ["refund"] * 3)
    >>> model.predict(["refund my order, money back please"])[0].label
    'refund'
    """

    def __init__(
        self,
        *,
        representation: str = "word_char",
        learner: str = "linear_svc",
        out_of_scope: str | None = None,
        in_scope_rejection: float = 0.1,
        seed: int = 0,
    ) -> None:
        self.representation = representation
        self.learner = learner
        self.out_of_scope = out_of_scope
        self.in_scope_rejection = in_scope_rejection
        self.seed = seed
        self.estimator_fits = 0
        self.temperature = 1.0
        self.classes: Labels = np.array([], dtype=np.str_)
        self.held_out: HeldOut | None = None
        """The first fold of the calibration, in scope; None: never fitted here, or there was none."""
        self._vectoriser: Any = None
        self._features: TextFeatures | None = None
        self._classifier: Any = None
        self._nearby: Any = None
        self._reject = RejectModel(in_scope_rejection=in_scope_rejection, seed=seed)

    @property
    def params(self) -> dict[str, Any]:
        """The constructor's arguments, by name."""
        names = ("representation", "learner", "out_of_scope", "in_scope_rejection", "seed")
        return {name: getattr(self, name) for name in names}

    def fit(
        self,
        texts: Sequence[str],
        labels: Sequence[str],
        weights: Sequence[float] | None = None,
        asked: Sequence[bool] | None = None,
    ) -> Self:
        """Learns from one label a text, the same from any order of the rows.

        `asked` marks texts that were put to the model in production; the reject threshold comes from them where there
        are enough. Raises ValueError for fewer than two classes or scores that are not finite.
        """
        texts, y, w, live, in_scope, self.classes = TaughtRows.of(
            texts, labels, weights, asked, out_of_scope=self.out_of_scope
        )
        self._vectoriser = REPRESENTATIONS[self.representation](len(texts) >= MANY_ROWS)
        self._features = None
        self.estimator_fits += 1
        X = self._vectoriser.fit_transform(texts)
        self._calibrate(texts, X, y, w, in_scope, live)
        self._classifier = self._fitted(X[in_scope], y[in_scope], w[in_scope])
        self._nearby = None
        return self

    def predict(self, texts: Sequence[str]) -> tuple[Prediction, ...]:
        """One prediction a text, in order; raises ValueError when scores are not finite."""
        if not texts:
            return ()
        X = self.features(texts)
        return self.decided(X, self.decisions(X))

    def decisions(self, X: Any) -> Floats:
        """Scores over `classes` of sparse features, shape (n, classes); a class that was never seen scores lowest."""
        return self._decisions(self._classifier, X)

    def decided(self, X: Any, decisions: Floats) -> tuple[Prediction, ...]:
        """The predictions that follow from features (n, d) and decisions (n, classes)."""
        best = decisions.argmax(axis=1)
        confidence = softmax(decisions * self.temperature, axis=1)[np.arange(len(best)), best]
        rejected = self._reject.rejects(X, margins(decisions))
        return tuple(
            Prediction(label=str(self.classes[i]), confidence=float(p), rejected=bool(r))
            for i, p, r in zip(best, confidence, rejected, strict=True)
        )

    def answers(self, X: Any, decisions: Floats) -> list[str | None]:
        """The answers alone of `decided`."""
        rejected = self._reject.rejects(X, margins(decisions))
        labels = self.classes[decisions.argmax(axis=1)].tolist()
        return [None if turned_away else label for label, turned_away in zip(labels, rejected, strict=True)]

    def considered(self, texts: Sequence[str]) -> Considered:
        """What `predict` says, and how near every other answer was."""
        columns = {str(label): i for i, label in enumerate(self.classes)}
        if not texts:
            return Considered((), columns, np.empty((0, len(self.classes))), np.empty(0))
        X = self.features(texts)
        decisions = self.decisions(X)
        scale = 1.0 if self._reject.learned else self.temperature
        inside = (self._reject.score(X, margins(decisions)) - self._reject.threshold) * scale
        return Considered(self.decided(X, decisions), columns, decisions * self.temperature, inside)

    def probabilities(self, texts: Sequence[str]) -> Floats:
        """Probabilities over `classes`, shape (n, classes), the reject model left out."""
        decisions = self.decisions(self.features(texts))
        return np.asarray(softmax(decisions * self.temperature, axis=1))

    def features(self, texts: Sequence[str]) -> Any:
        """The sparse features of `texts`, shape (n, d), each representation of length 1."""
        if self._features is None:
            self._features = TextFeatures(self._vectoriser)
        return self._features.of(texts)

    @property
    def is_one_vs_rest(self) -> bool:
        """Whether each class has a column of its own, which can be learnt without the others."""
        return self.learner == "linear_svc" and len(self._classifier.coef_) == len(self.classes)

    def with_columns(self, columns: Mapping[str, tuple[npt.NDArray[np.float64], float]]) -> "TextModel":
        """A copy with the (weights, intercept) of some classes; the others, and who is turned away, stay as they are.

        Only where `is_one_vs_rest`.
        """
        model = copy(self)
        model._classifier, model.held_out, model.estimator_fits = copy(self._classifier), None, 0
        coef, intercept = self._classifier.coef_.copy(order="F"), self._classifier.intercept_.copy()
        for label, (weights, constant) in columns.items():
            at = int(np.searchsorted(self.classes, label))
            coef[at], intercept[at] = weights, constant
        model._classifier.coef_, model._classifier.intercept_ = coef, intercept
        return model

    def with_classes(self, labels: Collection[str]) -> "TextModel":
        """A copy that has these classes as well and never answers one: their columns are still to be learnt.

        Only where `is_one_vs_rest`.
        """
        model = copy(self)
        model._classifier, model.held_out, model.estimator_fits = copy(self._classifier), None, 0
        model.classes = np.union1d(self.classes, np.array(sorted(labels), dtype=np.str_))
        known = np.searchsorted(model.classes, self.classes)
        coef = np.zeros((len(model.classes), self._classifier.coef_.shape[1]), order="F")
        intercept = np.full(len(model.classes), LOWEST)
        coef[known], intercept[known] = self._classifier.coef_, self._classifier.intercept_
        model._classifier.classes_, model._classifier.coef_, model._classifier.intercept_ = (
            model.classes,
            coef,
            intercept,
        )
        return model

    def parts(self) -> dict[str, Any]:
        """Everything needed to rebuild it: plain values, arrays and scikit-learn estimators."""
        vectoriser, vocabularies = without_vocabularies(self._vectoriser)
        return {
            "params": self.params,
            "temperature": self.temperature,
            "classes": self.classes,
            "vectoriser": vectoriser,
            "vocabularies": vocabularies,
            "classifier": self._classifier,
            "reject": self._reject.parts(),
        }

    @classmethod
    def from_parts(cls, parts: dict[str, Any]) -> Self:
        """The model that gave `parts`."""
        model = cls(**parts["params"])
        model.temperature = float(parts["temperature"])
        model.classes = parts["classes"]
        model._vectoriser = with_vocabularies(parts["vectoriser"], parts["vocabularies"])
        model._classifier = parts["classifier"]
        model._reject = RejectModel.from_parts(parts["reject"])
        return model

    def _folds(self, texts: Sequence[str]) -> Folds:
        folds = text_folds(texts, FOLDS, seed=self.seed)
        return folds[:1] if len(texts) >= MANY_ROWS else folds

    def _calibrate(self, texts: Sequence[str], X: Any, y: Labels, w: Floats, in_scope: Bools, live: Bools) -> None:
        """Temperature, reject model and threshold, from decisions on rows that were not trained on."""
        folds = self._folds(texts)
        decisions = np.full((len(y), len(self.classes)), np.nan)
        for train, test in folds:
            known = train[in_scope[train]]
            if len(np.unique(y[known])) > 1:
                fold = self._fitted(X[known], y[known], w[known])
                decisions[test] = self._decisions(fold, X[test])
                self._nearby = fold
        judged: Bools = np.isfinite(decisions).all(axis=1)
        held = [i for i in (folds[0][1] if folds else ()) if judged[i] and in_scope[i]]
        self.held_out = HeldOut(tuple(texts[i] for i in held), decisions[held].astype(np.float32))
        if not (judged & in_scope).any():
            raise ValueError(f"{len(y)} rows: too few to predict any of them out of fold")
        self.temperature = fit_temperature(
            decisions[judged & in_scope], np.searchsorted(self.classes, y[judged & in_scope])
        )
        positions = np.full(len(y), -1)
        positions[judged] = np.arange(judged.sum())
        kept = [text for text, is_judged in zip(texts, judged, strict=True) if is_judged]
        inner = self._folds(kept) if len(folds) == 1 else [_within(fold, positions) for fold in folds]
        self._reject.fit(X[judged], margins(decisions[judged]), in_scope[judged], inner, live[judged])
        self.estimator_fits += self._reject.estimator_fits

    def _fitted(self, X: Any, y: Labels, w: Floats) -> Any:
        classifier = LEARNERS[self.learner](self.seed)
        self.estimator_fits += 1
        if self.learner == "linear_svc" and len(y) >= MANY_ROWS // 2 and len(np.unique(y)) > 2:
            fit_one_vs_rest(classifier, X, y, w, start=self._start(X, y), seed=self.seed)
        else:
            classifier.fit(X, y, sample_weight=w)
        if hasattr(classifier, "coef_"):
            # sparse @ a C-ordered coef_.T copies all of it at each call (scikit-learn issue 6186)
            classifier.coef_ = np.asfortranarray(classifier.coef_)
        return classifier

    def _start(self, X: Any, y: Labels) -> Floats | None:
        """What the model of the last fold says: near what a fit of all rows will."""
        if self._nearby is None or len(np.unique(y)) != len(self.classes):
            return None
        return self._decisions(self._nearby, X)

    def _decisions(self, classifier: Any, X: Any) -> Floats:
        """Scores over `classes`, shape (n, classes); a class the classifier never saw scores lowest."""
        raw = classifier.predict_log_proba(X) if self.learner == "complement_nb" else linear_scores(classifier, X)
        if raw.shape[1] == 1:
            raw = np.column_stack([-raw, raw])
        if not np.isfinite(raw).all():
            raise ValueError("the learner's scores are not finite")
        scores = np.full((raw.shape[0], len(self.classes)), LOWEST)
        scores[:, np.searchsorted(self.classes, classifier.classes_)] = raw
        return scores


def _within(fold: tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]], positions: npt.NDArray[np.int64]) -> Any:
    return tuple(kept[kept >= 0] for kept in (positions[fold[0]], positions[fold[1]]))
