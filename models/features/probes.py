"""The probe contrast: which information is needed to tell the cluster from its satisfied neighbours?

Each probe sees one kind of information alone. Its gain is the cross-validated mean log-likelihood it adds to the base rate,
in nats a trace; 0: it tells nothing, `ln 2` at most where there are as many failures as neighbours, below 0: it misleads.
Neighbours went the same way: the same step, and of a prediction the same answer.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from models.error_class import error_class
from models.features.material import Feature, Material
from models.steps import error_text, input_text, label_in, step_name, time_of, tool_calls
from store.records import Episode, Span

FEWEST = 5
"""Cases, and neighbours, below which nothing is probed."""
MOST = 100
"""Cases, and neighbours, that a probe is fitted to: the earliest by trace id, so that it is repeatable."""
FOLDS = 5
SHRINK = 2.0
"""Traces' worth of the base rate in the estimate of a value's rate."""
PARTS = 6
"""Parts of equal size that time is cut into."""


def probe_x(material: Material) -> float | None:
    """Gain by only what the model sees, its input: words and pairs of words under a logistic regression; nats.

    None below 5 cases or 5 neighbours. Example: all failures say "take it back", no neighbour does: 0.6.
    """
    return _contrasted(material, _text_gain)


def probe_user(material: Material) -> float | None:
    """Gain by the user's id alone; nats. None below 5 cases or 5 neighbours. Example: ten failures of two users: 0.5."""
    return _contrasted(material, lambda them, y: _gain([each.trace.user or "" for each in them], y))


def probe_scope(material: Material) -> float | None:
    """Gain by channel, by tenant, or by time in six parts, each alone, the best of them; nats.

    None below 5 cases or 5 neighbours. Example: every failure after a change of policy: 0.4.
    """
    return _contrasted(material, _scope_gain)


def probe_flag(material: Material) -> float | None:
    """Gain by contract flags alone, the worst error class and an empty result among the tool calls; nats.

    None below 5 cases or 5 neighbours. Example: every failure has a refused call: 0.6.
    """
    return _contrasted(material, lambda them, y: _gain([_flags(each) for each in them], y))


def neighbours(material: Material) -> list[Episode]:
    """The satisfied traces that went the way of the first case: its step, and of a prediction its answer."""
    if not material.cases:
        return []
    step, episode = material.steps[0], material.cases[0].episode
    way = _way(step) if step is not None else _first_answer(episode)
    if way is None:
        return list(material.satisfied)
    return [each for each in material.satisfied if any(_way(span) == way for span in each.spans)]


def _contrasted(material: Material, gain: Callable[[Sequence[Episode], np.ndarray], float]) -> float | None:
    failed = sorted((case.episode for case in material.cases), key=lambda each: each.trace.id)[:MOST]
    if len(failed) < FEWEST:
        return None
    known = {each.trace.id for each in failed}
    fine = sorted((each for each in neighbours(material) if each.trace.id not in known), key=lambda each: each.trace.id)
    if len(fine) < FEWEST:
        return None
    fine = fine[:MOST]
    y = np.array([1.0] * len(failed) + [0.0] * len(fine))
    return gain([*failed, *fine], y)


def _way(span: Span) -> tuple[str, str] | None:
    if span.kind == "predict":
        return step_name(span), label_in(span.output)
    return (step_name(span), "") if span.kind == "tool" else None


def _first_answer(episode: Episode) -> tuple[str, str] | None:
    return next((way for span in episode.spans if span.kind == "predict" and (way := _way(span)) is not None), None)


def _text_gain(them: Sequence[Episode], y: np.ndarray) -> float:
    words = HashingVectorizer(ngram_range=(1, 2), n_features=2**14, alternate_sign=False)
    x = words.transform([input_text(each)[:2000] for each in them])

    def predicted(train: np.ndarray, test: np.ndarray) -> np.ndarray:
        model = LogisticRegression(C=3.0, solver="liblinear", dual=True, max_iter=1000, random_state=0).fit(
            x[train], y[train]
        )
        found: np.ndarray = model.predict_proba(x[test])[:, 1]
        return found

    return _cross_validated(y, predicted)


def _scope_gain(them: Sequence[Episode], y: np.ndarray) -> float:
    times = [time_of(each) or 0 for each in them]
    cuts = np.quantile(times, np.linspace(0, 1, PARTS + 1)[1:-1])
    parts = [str(int(place)) for place in np.searchsorted(cuts, times)]
    columns = [[each.trace.channel or "" for each in them], [each.trace.tenant or "" for each in them], parts]
    return max(_gain(values, y) for values in columns)


def _gain(values: Sequence[str], y: np.ndarray) -> float:
    """Gain of the rates by value, each drawn towards the base rate."""

    def predicted(train: np.ndarray, test: np.ndarray) -> np.ndarray:
        base = float(y[train].mean())
        seen = Counter(values[at] for at in train)
        failed = Counter(values[at] for at in train if y[at])
        return np.array([(failed[values[at]] + SHRINK * base) / (seen[values[at]] + SHRINK) for at in test])

    return _cross_validated(y, predicted) if len(set(values)) > 1 else 0.0


def _cross_validated(y: np.ndarray, predicted: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> float:
    total = 0.0
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(y, y):
        base = float(y[train].mean())
        total += _log_likelihood(y[test], predicted(train, test)) - _log_likelihood(y[test], np.full(len(test), base))
    return total / len(y)


def _log_likelihood(y: np.ndarray, p: np.ndarray) -> float:
    clipped = np.clip(p, 0.01, 0.99)
    return math.fsum(np.where(y > 0, np.log(clipped), np.log(1 - clipped)))


def _flags(episode: Episode) -> str:
    calls = tool_calls(episode.spans)
    errors = {error_class(error_text(call), call.error_type) for call in calls}
    empty = any(call.output in (None, "") and error_text(call) is None for call in calls)
    return ",".join([*sorted(errors), "empty" if empty else ""])


FEATURES: dict[str, Feature] = {
    "probe_x": probe_x,
    "probe_user": probe_user,
    "probe_scope": probe_scope,
    "probe_flag": probe_flag,
}
