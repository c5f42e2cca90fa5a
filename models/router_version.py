"""A learned router as a stored version, and back: what was fitted and what is read again say the same."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from models.deployment import Deployment
from models.learned_router import Fit, LearnedRouter
from models.router import OUTCOMES, Router, RulePrior, settled
from store.records import RouterGate, RouterVersion, derived_id

LEAST = 1e-12
"""The least probability that a logarithm is taken of."""


def version_of(
    fit: Fit, gate: RouterGate, *, corrections: Sequence[str], clusters: Sequence[str], reviews: Sequence[str]
) -> RouterVersion:
    """The version to keep; correction, cluster and review of each row that it was fitted to, in their order.

    Its id follows from the rows and from the router it was judged against.
    """
    router = fit.router
    return RouterVersion(
        id=derived_id("rtr", router.version, gate.champion),
        parent=gate.champion,
        features=router.features,
        outcomes=router.outcomes,
        mean=tuple(router.mean.tolist()),
        scale=tuple(router.scale.tolist()),
        coefficients=tuple(map(tuple, router.coefficients.tolist())),
        intercept=tuple(router.intercept.tolist()),
        temperature=router.temperature,
        rows=router.rows,
        rules=router.prior.version,
        base=dict(router.prior.base),
        weights={outcome: dict(found) for outcome, found in router.prior.weights.items()},
        out_of_fold=dict(zip(corrections, fit.out_of_fold, strict=True)),
        clusters=tuple(dict.fromkeys(clusters)),
        reviews=tuple(reviews),
        gate=gate,
    )


def router_of(version: RouterVersion) -> LearnedRouter:
    """The router of a version, which names the version's id; the rules it rests on are those it was fitted with."""
    return LearnedRouter(
        version=version.id,
        features=version.features,
        outcomes=version.outcomes,
        mean=np.array(version.mean),
        scale=np.array(version.scale),
        coefficients=np.array(version.coefficients),
        intercept=np.array(version.intercept),
        temperature=version.temperature,
        rows=version.rows,
        prior=RulePrior(version=version.rules, base=version.base, weights=version.weights),
    )


def within(probabilities: Mapping[str, float], deployment: Deployment) -> dict[str, float]:
    """The same among the places that the deployment has."""
    return settled({name: math.log(max(probabilities.get(name, 0.0), LEAST)) for name in OUTCOMES}, deployment)


def fair_probabilities(
    router: Router,
    version: RouterVersion | None,
    evidence: Mapping[str, float | None],
    *,
    correction: str,
    cluster: str,
    deployment: Deployment,
) -> dict[str, float] | None:
    """What the router says without having learnt from this cluster; None: it has, and nothing was kept from before.

    `version` is the router's own; None: these are the rules, which learn from nothing.
    """
    kept = None if version is None else version.out_of_fold.get(correction)
    if kept is not None:
        return within(kept, deployment)
    if version is not None and cluster in version.clusters:
        return None
    return router.probabilities(evidence, deployment)
