"""A router that learns from verdicts and from fixes that held: multinomial logistic regression over the evidence.

It starts from the rules, whose log-weights are features of it. Whether it may decide in their place is `models.router_gate`'s.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold

from models.deployment import Deployment
from models.router import OUTCOMES, PRIOR, RulePrior, settled
from store.records import Record, content_hash
from store.records.identity import canonical_json

INJECTED, REVIEWED, HELD = 0.3, 1.0, 2.0
"""Weight of an injected fault with a known valid set, of a reviewer's verdict, of a fix that held."""
FOLDS = 5
ICC = 0.5
"""How alike the outcomes of near-copies are: intra-class correlation, hand-set."""
_COUNTS = frozenset({"n_eff", "sources", "authorities", "days", "novelty", "user_concentration", "same_user"})
CLIP = 3.0
"""A feature's value counts up to here, in either direction."""

Matrix = NDArray[np.float64]


class TrainingRow(Record):
    """One cluster whose right place is known."""

    evidence: dict[str, float | None]
    valid: frozenset[str]
    """Every right outcome: targets, or `none`; the row's weight is shared among them."""
    weight: float = REVIEWED
    """`INJECTED`, `REVIEWED` or `HELD`, divided by the probability with which it was seen."""
    group: str
    """Rows of one group are never on both sides of a split."""


@dataclass(frozen=True)
class LearnedRouter:
    """Log-weights linear in what was measured, in what was not, and in the rules' log-weights; scaled by a temperature."""

    version: str
    features: tuple[str, ...]
    outcomes: tuple[str, ...]
    """Outcomes seen in training; every other keeps the rules' log-weight, below the least of them."""
    mean: Matrix
    scale: Matrix
    coefficients: Matrix
    """Shape `(len(outcomes), columns)`."""
    intercept: Matrix
    temperature: float
    rows: int
    prior: RulePrior = PRIOR

    def probabilities(self, evidence: Mapping[str, float | None], deployment: Deployment) -> dict[str, float]:
        """Probability of each target and of `none`; sums to 1. A target the deployment lacks gets 0."""
        x = (_columns([evidence], self.features, self.prior) - self.mean) / self.scale
        found = (x @ self.coefficients.T + self.intercept)[0] / self.temperature
        logits = dict(zip(self.outcomes, map(float, found), strict=True))
        unseen = min(logits.values()) + min(0.0, math.log(1 / (self.rows + 1)))
        return settled({outcome: logits.get(outcome, unseen) for outcome in OUTCOMES}, deployment)

    def contributions(self, evidence: Mapping[str, float | None], outcome: str) -> dict[str, float]:
        """What each measured feature adds to the log-weight of an outcome, without those that add nothing."""
        if outcome not in self.outcomes:
            return {}
        x = (_columns([evidence], self.features, self.prior) - self.mean) / self.scale
        added = (x * self.coefficients[self.outcomes.index(outcome)])[0] / self.temperature
        known = dict(zip(self.features, map(float, added), strict=False))
        return {name: value for name, value in known.items() if _value(evidence.get(name)) and value != 0}


@dataclass(frozen=True)
class Fit:
    """A fitted router with what it says of its own training rows when they are left out."""

    router: LearnedRouter
    out_of_fold: tuple[dict[str, float], ...]
    """One a training row, from a router that was fitted without its group: what a certificate may be computed from."""


def tempered(
    probabilities: Mapping[str, float], base: Mapping[str, float], *, copies: float, rho: float
) -> dict[str, float]:
    """The posterior of `copies` cases that each say `probabilities`, when near-copies are not independent evidence.

    `log p(j|C) = log pi_j + rho * sum_i [log p(j|x_i) - log pi_j]`, renormalised; `rho = 1 / (1 + (n_eff - 1) * icc)`.

    >>> tempered({"a": 0.8, "b": 0.2}, {"a": 0.5, "b": 0.5}, copies=4, rho=0.25)["a"]
    0.8
    """
    logits = {
        name: math.log(base[name]) + rho * copies * (math.log(max(value, 1e-12)) - math.log(base[name]))
        for name, value in probabilities.items()
    }
    top = max(logits.values())
    total = math.fsum(math.exp(logit - top) for logit in logits.values())
    return {name: round(math.exp(logit - top) / total, 12) for name, logit in logits.items()}


def copy_weights(rows: Sequence[TrainingRow], *, icc: float = ICC) -> list[float]:
    """What each row counts when near-copies are not independent evidence: `rho = 1 / (1 + (n - 1) * icc)` among n copies.

    Copies have the same right places and the same evidence to one decimal, but for counts of failures.
    """
    keys = [_copy_key(row) for row in rows]
    counts = Counter(keys)
    return [1 / (1 + (counts[key] - 1) * icc) for key in keys]


def _copy_key(row: TrainingRow) -> str:
    found = {name: round(value, 1) for name, value in row.evidence.items() if value is not None and name not in _COUNTS}
    return canonical_json([sorted(row.valid), found])


def teaches_nothing(rows: Sequence[TrainingRow]) -> str:
    """Why no router can be fitted to these rows; empty: it can."""
    if len({name for row in rows for name in row.valid}) < 2 or len({row.group for row in rows}) < 2:
        return f"{len(rows)} decided clusters: a router needs two outcomes and two groups of them"
    return ""


def fit_router(rows: Sequence[TrainingRow], *, prior: RulePrior = PRIOR) -> Fit:
    """The router fitted to these rows, its temperature the one of least log loss out of fold, by groups.

    Raises ValueError below two outcomes or two groups.
    """
    groups = np.array([row.group for row in rows])
    if teaches_nothing(rows):
        raise ValueError(teaches_nothing(rows))
    features = tuple(sorted({name for row in rows for name in row.evidence}))
    x = _columns([row.evidence for row in rows], features, prior)
    raw = np.full((len(rows), len(OUTCOMES)), -CLIP * 10)
    for train, test in GroupKFold(min(FOLDS, len(set(groups)))).split(x, groups=groups):
        part = [rows[at] for at in train]
        if len({name for row in part for name in row.valid}) >= 2:
            model = _fitted(x[train], part)
            raw[np.ix_(test, [OUTCOMES.index(name) for name in model.outcomes])] = model.logits(x[test])
    temperature = _temperature(raw, rows)
    final = _fitted(x, rows)
    router = LearnedRouter(
        version=_version(rows),
        features=features,
        outcomes=final.outcomes,
        mean=final.mean,
        scale=final.scale,
        coefficients=final.coefficients,
        intercept=final.intercept,
        temperature=temperature,
        rows=len(rows),
        prior=prior,
    )
    return Fit(router=router, out_of_fold=tuple(_named(row) for row in _softmax(raw / temperature)))


@dataclass(frozen=True)
class _Linear:
    outcomes: tuple[str, ...]
    mean: Matrix
    scale: Matrix
    coefficients: Matrix
    intercept: Matrix

    def logits(self, x: Matrix) -> Matrix:
        found: Matrix = ((x - self.mean) / self.scale) @ self.coefficients.T + self.intercept
        return found


def _fitted(x: Matrix, rows: Sequence[TrainingRow]) -> _Linear:
    mean, varies = x.mean(axis=0), x.std(axis=0) > 0
    varies[0] |= not varies.any()
    scale = np.where(x.std(axis=0) > 0, x.std(axis=0), 1.0)
    at = [place for place, row in enumerate(rows) for _ in row.valid]
    labels = [name for row in rows for name in sorted(row.valid)]
    own = copy_weights(rows)
    weights = [row.weight * share / len(row.valid) for row, share in zip(rows, own, strict=True) for _ in row.valid]
    columns = ((x - mean) / scale)[:, varies]
    model = LogisticRegression(C=1.0, max_iter=1000).fit(columns[at], labels, sample_weight=weights)
    learnt, intercept = model.coef_, model.intercept_
    if len(model.classes_) == 2:
        learnt, intercept = np.vstack([-learnt, learnt]) / 2, np.hstack([-intercept, intercept]) / 2
    coefficients = np.zeros((len(model.classes_), x.shape[1]))
    coefficients[:, varies] = learnt
    return _Linear(tuple(map(str, model.classes_)), mean, scale, coefficients, intercept)


def _columns(rows: Sequence[Mapping[str, float | None]], features: Sequence[str], prior: RulePrior) -> Matrix:
    """Values with 0 for what was not measured, then an indicator of that, then the rules' log-weights."""
    values = [[_value(row.get(name)) for name in features] for row in rows]
    missing = [[float(not _is_measured(row.get(name))) for name in features] for row in rows]
    logits = [
        [prior.base[outcome] + math.fsum(prior.contributions(row, outcome).values()) for outcome in OUTCOMES]
        for row in rows
    ]
    return np.hstack([np.array(part, dtype=np.float64) for part in (values, missing, logits)])


def _value(value: float | None) -> float:
    return min(max(value, -CLIP), CLIP) if value is not None and math.isfinite(value) else 0.0


def _is_measured(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _temperature(raw: Matrix, rows: Sequence[TrainingRow]) -> float:
    """The temperature of least weighted log loss, 0.1 to 10; the probability of a row is that of all its right outcomes."""
    right = np.array([[name in row.valid for name in OUTCOMES] for row in rows])
    weights = np.array([row.weight for row in rows])

    def loss(log_temperature: float) -> float:
        shares = _softmax(raw / math.exp(log_temperature))
        return float(-(weights * np.log(np.clip((shares * right).sum(axis=1), 1e-12, 1))).sum())

    return float(math.exp(minimize_scalar(loss, bounds=(math.log(0.1), math.log(10)), method="bounded").x))


def _softmax(logits: Matrix) -> Matrix:
    parts = np.exp(logits - logits.max(axis=1, keepdims=True))
    found: Matrix = parts / parts.sum(axis=1, keepdims=True)
    return found


def _named(row: NDArray[np.float64]) -> dict[str, float]:
    return dict(zip(OUTCOMES, map(float, row), strict=True))


def _version(rows: Sequence[TrainingRow]) -> str:
    content = [[sorted(row.valid), row.weight, row.group, sorted(row.evidence.items())] for row in rows]
    return f"learned-{content_hash(str(content))[-12:]}"
