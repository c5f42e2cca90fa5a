"""How signals add up to a belief: by hand-set weights, and by logistic regression once traces were audited.

The regression shrinks towards the hand-set weights, so that a signal nobody audited keeps its own; and it stands only where it
predicts audits it did not learn from better than they do.
"""

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.optimize import minimize

from store.records import Record, Signal, content_hash

PRIOR_LOG_ODDS = -1.5
"""Belief without any signal: probability 0.18."""
LEARNS_FROM = 60
"""Audited traces before the weights are fitted."""
EACH = 10
"""Of them, bad ones and good ones at least."""
SHRINK = 2.0
"""Strength of the hand-set weights: a factor that is off by 1 costs as much as 1 nat of log likelihood."""
MOST = 3.0
"""A hand-set weight is multiplied by 0 to this."""
FOLDS = 5

Matrix = NDArray[np.float64]


class Combination(Record):
    """Log odds of a failure: the bias, and of each detector its strongest word on either side times a factor."""

    version: str = "hand-1"
    bias: float = PRIOR_LOG_ODDS
    factors: dict[str, float] = Field(default_factory=dict)
    """`detector+` (it failed) or `detector-` (it did not) to what its hand-set weight is multiplied by; 1 where left out."""
    audits: int = 0
    """Audited traces it was fitted to; 0: set by hand."""


HAND = Combination()


class Choice(Record):
    """The combination in force, and why."""

    combination: Combination
    reason: str


def strongest(signals: Sequence[Signal], *, behavioural: Collection[str]) -> dict[str, float]:
    """`detector+` or `detector-` to the strongest weight on that side: what repeats itself is not new evidence.

    Where an evaluation passed, behavioural signals do not count.
    """
    passed = any(signal.detector == "evaluation" and signal.weight < 0 for signal in signals)
    found: dict[str, float] = {}
    for signal in signals:
        if not (passed and signal.detector in behavioural):
            key = f"{signal.detector}{'+' if signal.weight > 0 else '-'}"
            found[key] = max(found.get(key, 0.0), signal.weight, key=abs)
    return found


def probability(weights: Mapping[str, float], combination: Combination = HAND) -> float:
    """Belief, 0 to 1, that a trace with these strongest weights failed.

    >>> round(probability({}), 2), round(probability({"feedback+": 5.0}), 2)
    (0.18, 0.97)
    """
    log_odds = combination.bias + math.fsum(
        weight * combination.factors.get(key, 1.0) for key, weight in weights.items()
    )
    return 1.0 / (1.0 + math.exp(-min(max(log_odds, -500.0), 500.0)))


def choose_combination(rows: Sequence[Mapping[str, float]], bad: Sequence[bool]) -> Choice:
    """The hand-set weights, or those fitted to the audits where these predict left-out audits better.

    `rows` and `bad` are aligned, one an audited trace: its strongest weights, without the audit's own word, and the verdict.
    """
    failed = sum(bad)
    if len(rows) < LEARNS_FROM or min(failed, len(rows) - failed) < EACH:
        return Choice(combination=HAND, reason=f"{HAND.version}: {len(rows)} audited traces, {failed} of them bad;"
                      f" fitted weights need {LEARNS_FROM}, and {EACH} of either")  # fmt: skip
    keys = sorted({key for row in rows for key in row})
    x = np.array([[row.get(key, 0.0) for key in keys] for row in rows], dtype=np.float64).reshape(len(rows), len(keys))
    y = np.array(bad, dtype=np.float64)
    by_hand = _loss(y, x.sum(axis=1) + PRIOR_LOG_ODDS)
    learnt = np.empty(len(rows))
    for fold in range(FOLDS):
        out = np.arange(len(rows)) % FOLDS == fold
        bias, factors = _fitted(x[~out], y[~out])
        learnt[out] = x[out] @ factors + bias
    found = _loss(y, learnt)
    numbers = f"log loss {found:.3f} on left-out audits against {by_hand:.3f} by hand ({len(rows)} audited traces)"
    if found >= by_hand:
        return Choice(combination=HAND, reason=f"{HAND.version}: fitted weights are no better, {numbers}")
    bias, factors = _fitted(x, y)
    named = {key: round(float(factor), 4) for key, factor in zip(keys, factors, strict=True)}
    made = Combination(bias=round(bias, 4), factors=named, audits=len(rows))
    version = f"fitted-{content_hash(made.model_dump(mode='json', exclude={'version'}))[-12:]}"
    return Choice(combination=made.model_copy(update={"version": version}), reason=f"{version}: {numbers}")


def _fitted(x: Matrix, y: Matrix) -> tuple[float, Matrix]:
    """Bias and factors of least log loss, shrunk towards the hand-set ones; convex, so that one start is enough."""
    start = np.array([PRIOR_LOG_ODDS, *np.ones(x.shape[1])])

    def loss(at: Matrix) -> tuple[float, Matrix]:
        logits = x @ at[1:] + at[0]
        wrong = 1 / (1 + np.exp(-np.clip(logits, -500, 500))) - y
        away = at - start
        gradient = np.concatenate([[wrong.sum()], x.T @ wrong]) + 2 * SHRINK * away
        return float(len(y) * _loss(y, logits) + SHRINK * (away @ away)), gradient

    bounds = [(-10.0, 10.0), *[(0.0, MOST)] * x.shape[1]]
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return float(found[0]), np.asarray(found[1:], dtype=np.float64)


def _loss(y: Matrix, logits: Matrix) -> float:
    return float(np.mean(np.logaddexp(0, logits) - y * logits))
