"""A model in this process: filmroom's classifiers of texts and of records, rebuilt from their files without unpickling.

Needs scikit-learn and skops, which are looked for only when a model is loaded. A loaded model is never changed.
"""

import hashlib
import importlib
import importlib.util
import math
from typing import Any, Protocol

from filmroom_live.documents import BadDocument
from filmroom_live.prediction import LEAST, LOWEST, Prediction
from filmroom_live.record_model import RecordModel

FORMAT = 1
"""Version of the layout of a model file; another one is refused."""
TEXT_SCALE = 3.0
"""Weight of the text features beside the two standardised margins of the reject model."""
TRUSTED = ["sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor", "sklearn.tree._tree.Tree"]
"""Arrays of scikit-learn's own trees, which skops does not trust by itself; as in `models/estimator.py`."""


class OnlyServed(BadDocument):
    """A kind of model that this client does not know: the server answers it."""


class LoadedModel(Protocol):
    """What answers a text, or a record as JSON."""

    def predict(self, text: str) -> Prediction:
        """The model's answer."""


def can_load() -> bool:
    """Whether this environment has what a model in process needs."""
    return all(importlib.util.find_spec(name) is not None for name in ("sklearn", "skops"))


def load(data: bytes, digest: str) -> LoadedModel:
    """The model in a file's bytes. Raises BadDocument for another content than `digest`'s, or types that are not trusted."""
    if hashlib.sha256(data).hexdigest() != digest:
        raise BadDocument(f"the model file is not {digest[:12]}")
    kinds: dict[str, Any] = {
        "text": TextModel,
        "text_estimator": EstimatorTextModel,
        "exceptions": ExceptionModel,
        "anchored": AnchoredModel,
        "tabular": RecordModel,
    }
    skops: Any = importlib.import_module("skops.io")
    try:
        untrusted = set(skops.get_untrusted_types(data=data)) - set(TRUSTED)
        if untrusted:
            raise BadDocument(f"the model file asks for {', '.join(sorted(map(str, untrusted)))[:200]}")
        content = skops.loads(data, trusted=TRUSTED)
        if content["format"] != FORMAT:
            raise BadDocument(f"the model file has format {content['format']!r}, not {FORMAT}")
        if content["kind"] not in kinds:
            raise OnlyServed(f"a {content['kind']} model answers over HTTP alone: POST /v1/predict")
        return kinds[content["kind"]](content["parts"])  # type: ignore[no-any-return]
    except BadDocument:
        raise
    except Exception as error:
        raise BadDocument(f"the model file cannot be read here: {type(error).__name__}: {error}"[:300]) from error


class TextModel:
    """A linear classifier over TF-IDF with a reject model, as `models/text_model.py` trains it."""

    def __init__(self, parts: dict[str, Any]) -> None:
        self._classes = [str(each) for each in parts["classes"]]
        self._columns = [self._classes.index(str(each)) for each in parts["classifier"].classes_]
        self._temperature = float(parts["temperature"])
        self._vectoriser, self._classifier = _with_terms(parts), parts["classifier"]
        self._has_probabilities = parts["params"].get("learner") == "complement_nb"
        self._reject = parts["reject"]
        self._numpy: Any = importlib.import_module("numpy")
        self._sparse: Any = importlib.import_module("scipy.sparse")

    def features(self, text: str) -> Any:
        """The sparse features, shape (1, d)."""
        return self._sparse.csr_matrix(self._vectoriser.transform([text]))

    def predict(self, text: str) -> Prediction:
        X = self.features(text)
        scores = self._scores(X)
        best = max(range(len(scores)), key=scores.__getitem__)
        total = sum(math.exp((score - scores[best]) * self._temperature) for score in scores)
        return Prediction(self._classes[best], 1 / total, self._is_rejected(X, scores))

    def _scores(self, X: Any) -> list[float]:
        """Scores over the classes."""
        raw = self._raw(X)
        found = [float(each) for each in raw.ravel()]
        if raw.ndim == 1:
            found = [-found[0], found[0]]
        scores = [LOWEST] * len(self._classes)
        for column, score in zip(self._columns, found, strict=True):
            scores[column] = score
        return scores

    def _raw(self, X: Any) -> Any:
        """Scores over the classes that the classifier saw."""
        return (
            self._classifier.predict_log_proba(X) if self._has_probabilities else self._classifier.decision_function(X)
        )

    def _is_rejected(self, X: Any, scores: list[float]) -> bool:
        return self._inside(X, scores) < 0

    def _inside(self, X: Any, scores: list[float]) -> float:
        """How much speaks for its belonging to one of the classes; below 0 it is turned away."""
        second, first = sorted(scores)[-2:]
        margin = [first, first - second]
        if self._reject["model"] is None:
            return float(sum(margin) - self._reject["threshold"])
        standard = (self._numpy.array([margin]) - self._reject["centre"]) / self._reject["spread"]
        mixed = self._sparse.hstack(
            [
                self._sparse.csr_matrix(standard.astype(self._numpy.float32)),
                X * self._numpy.float32(TEXT_SCALE),
            ],
            format="csr",
        )
        return float(self._reject["model"].decision_function(mixed)[0] - self._reject["threshold"])

    def over(self, text: str, before: Prediction, among_known: float, to_new: float, known: set[str]) -> Prediction:
        """This model's answer where it is `before`'s or leads it by more than asked for, else `before`'s.

        Asked for, in log-odds: `to_new` where the answer is a class that is not `known`, else `among_known`.
        """
        X = self.features(text)
        scores = self._scores(X)
        own = self.predict(text)
        if own.answer == before.answer:
            return own
        odds = {label: score * self._temperature for label, score in zip(self._classes, scores, strict=True)}
        scale = self._temperature if self._reject["model"] is None else 1.0
        leads = abs(self._inside(X, scores)) * scale
        if own.answer is not None and before.answer is not None:
            leads = odds[own.answer] - odds.get(before.answer, -math.inf)
        if leads > (to_new if own.answer is not None and own.answer not in known else among_known):
            return own
        if before.rejected or before.label not in odds:
            return before
        total = sum(math.exp(min(each - odds[before.label], 700.0)) for each in odds.values())
        return Prediction(before.label, 1 / total, rejected=False)


class EstimatorTextModel(TextModel):
    """Any scikit-learn classifier over the same features, as `models/estimator_text_model.py` trains it."""

    def _raw(self, X: Any) -> Any:
        return self._numpy.log(self._numpy.maximum(self._classifier.predict_proba(X), LEAST))


def _with_terms(parts: dict[str, Any]) -> Any:
    """The vectoriser with its terms, which a model file holds apart: those of each part in order of their columns, one a
    line. Older files hold them in their places."""
    vectoriser, terms = parts["vectoriser"], parts.get("vocabularies")
    if terms is not None:
        found = getattr(vectoriser, "transformer_list", [("", vectoriser)])
        for (_, part), lines in zip(found, terms, strict=True):
            part.vocabulary_ = {term: column for column, term in enumerate(lines.split("\n"))}
    return vectoriser


class ExceptionModel:
    """Nearest-neighbour exceptions over a text model, as `models/exceptions.py` makes them."""

    def __init__(self, parts: dict[str, Any]) -> None:
        self._beneath = TextModel(parts["beneath"])
        self._out_of_scope = parts["beneath"]["params"]["out_of_scope"]
        self._reach = float(parts["reach"])
        self._labels = [str(each) for each in parts["labels"]]
        arrays = parts["vectors"]
        sparse: Any = importlib.import_module("scipy.sparse")
        shape = (len(self._labels), int(parts["dimensions"]))
        self._vectors = sparse.csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)

    def predict(self, text: str) -> Prediction:
        similarity = (self._beneath.features(text) @ self._vectors.T).toarray().ravel()
        nearest = int(similarity.argmax())
        if similarity[nearest] < self._reach:
            return self._beneath.predict(text)
        label, closest = self._labels[nearest], min(1.0, float(similarity[nearest]))
        if label == self._out_of_scope:
            return Prediction(self._beneath.predict(text).label, closest, rejected=True)
        return Prediction(label, closest, rejected=False)


class AnchoredModel:
    """A champion whose answers stay unless a challenger leads clearly, as `models/anchored.py` makes it."""

    def __init__(self, parts: dict[str, Any]) -> None:
        kinds: dict[str, Any] = {
            "text": TextModel,
            "text_estimator": EstimatorTextModel,
            "exceptions": ExceptionModel,
            "anchored": AnchoredModel,
        }
        self._champion: LoadedModel = kinds[parts["champion"]["kind"]](parts["champion"]["parts"])
        self._challenger: TextModel = kinds[parts["challenger"]["kind"]](parts["challenger"]["parts"])
        self._among_known, self._to_new = map(float, parts["leads"])
        self._known = {str(each) for each in parts["known"]}

    def predict(self, text: str) -> Prediction:
        """The challenger's answer where both agree or it leads, else the champion's."""
        return self._challenger.over(text, self._champion.predict(text), self._among_known, self._to_new, self._known)
