"""Any scikit-learn classifier by its import path: made, fitted, asked, and refused where it could never be served."""

import importlib
import inspect
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
import skops.io
from pydantic import JsonValue
from sklearn.base import ClassifierMixin

from models.calibration import LOWEST
from models.reject import Floats

TRUSTED: frozenset[str] = frozenset(
    {"sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor", "sklearn.tree._tree.Tree"}
)
"""What a stored forest or boosting consists of, beyond what skops trusts by itself: arrays of scikit-learn's own trees."""
_LEAST = 1e-12
_TRIAL_ROWS = 60
"""Made-up rows of a trial; enough for the usual arguments."""


def make_estimator(path: str, params: Mapping[str, JsonValue], *, seed: int) -> Any:
    """The classifier at an import path such as `sklearn.ensemble.ExtraTreesClassifier`, seeded where it takes a seed.

    Raises ValueError where there is none, or it gives no probabilities.
    """
    module, _, name = path.rpartition(".")
    try:
        kind = getattr(importlib.import_module(module), name)
    except (ImportError, ValueError, AttributeError) as error:
        raise ValueError(f"estimator {path!r} cannot be imported: {error}") from error
    if not (isinstance(kind, type) and issubclass(kind, ClassifierMixin) and hasattr(kind, "predict_proba")):
        raise ValueError(f"estimator {path!r} is no scikit-learn classifier that gives probabilities")
    seeded = {"random_state": seed} if "random_state" in inspect.signature(kind).parameters else {}
    try:
        made = kind(**{**seeded, **params})
    except TypeError as error:
        raise ValueError(f"estimator {path!r}: estimator_params: {error}") from error
    if not hasattr(made, "predict_proba"):
        raise ValueError(f"estimator {path!r} gives no probabilities with these estimator_params")
    return made


def fit_estimator(classifier: Any, X: Any, y: Any, w: Floats) -> Any:
    """The classifier, fitted; with weights where it takes them."""
    weighed = "sample_weight" in inspect.signature(classifier.fit).parameters
    return classifier.fit(X, y, sample_weight=w) if weighed else classifier.fit(X, y)


def log_probabilities(classifier: Any, X: Any, classes: Any) -> Floats:
    """Log-probabilities over sorted `classes`, shape (n, classes); a class the classifier never saw scores lowest.

    Raises ValueError where they are not finite.
    """
    found = np.log(np.maximum(classifier.predict_proba(X), _LEAST))
    if not np.isfinite(found).all():
        raise ValueError("the learner's probabilities are not finite")
    scores = np.full((X.shape[0], len(classes)), LOWEST)
    scores[:, np.searchsorted(classes, classifier.classes_)] = found
    return scores


def refuse_unstorable(classifier: Any, path: str) -> None:
    """Raises ValueError where its file would ask for types that are not trusted: it could be trained, and never served."""
    asked = set(skops.io.get_untrusted_types(data=skops.io.dumps(classifier))) - TRUSTED
    if asked:
        raise ValueError(f"estimator {path!r} cannot be stored: {', '.join(sorted(map(str, asked)))} is not trusted")


def refuse_unusable(
    path: str, params: Mapping[str, JsonValue], kind: Literal["text", "tabular"], *, seed: int = 0
) -> None:
    """Raises ValueError, in a line, where a fit on a few made-up rows shows that it can never be served.

    Features are sparse for texts. What only these few rows may have caused is left to the arm's own trial.
    """
    classifier = make_estimator(path, params, seed=seed)
    rng = np.random.default_rng(seed)
    X = rng.random((_TRIAL_ROWS, 4))
    y = np.array(["a", "b", "c"] * (_TRIAL_ROWS // 3))
    try:
        fit_estimator(classifier, sp.csr_matrix(X) if kind == "text" else X, y, np.ones(len(y)))
    except TypeError as error:  # arguments of a wrong kind, or features that it does not take
        raise ValueError(f"estimator {path!r}: {str(error).splitlines()[0]}") from error
    except Exception:  # noqa: BLE001 - an estimator may raise anything; with the real rows it may not
        return
    refuse_unstorable(classifier, path)
