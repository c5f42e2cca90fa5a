"""Where does a correction belong? A prior of hand-set weights over the evidence, and the decision in words.

The prior stands until there are verdicts to fit a model to; its version says so on every route.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from models.abstention import Certificate, NotCertified, kind_of, minimum_for
from models.cost_order import HOLDS_IF_RIGHT, SEEMS_IF_WRONG, cheapest_order
from models.deployment import Deployment
from models.rules import BASE, NONE, PHRASES, WEIGHTS
from store.records import TARGETS, Policy, Record, Target

__all__ = [
    "HELD_IF_RIGHT",
    "HELD_IF_WRONG",
    "NONE",
    "OUTCOMES",
    "PRIOR",
    "Decision",
    "Router",
    "RulePrior",
    "decide",
    "settled",
]

HELD_IF_RIGHT, HELD_IF_WRONG = HOLDS_IF_RIGHT, SEEMS_IF_WRONG
MOST_RATIO = 20.0
"""A replay counts at the most so much: its cases are few and alike."""
LABEL_S = 40
"""What one verdict or one answer takes a person: seconds."""
FEW = 5
"""Failures of a cluster that a person is asked about: as many as a contrast needs at least."""

MOSTLY = 0.5
"""Share of failures with a correction from which a person is shown what could be done, sure or not."""

OUTCOMES: tuple[str, ...] = (*TARGETS, NONE)


class Decision(Record):
    """Where a cluster's correction belongs, how sure that is, and what a person can do about it."""

    probabilities: dict[str, float]
    """Per target and for `none`; sums to 1."""
    target: Target | None
    """The most probable; None: no target, `none` is the most probable."""
    runner_up: str | None
    """The second most probable with a probability above 0; None: there is none."""
    certified: bool
    """Whether it may be applied without a person, at the certified risk."""
    reason: str
    """One sentence with the two or three features that decided, and why a person is asked."""
    to_yes: str
    """The shortest way to a decision and to a certificate."""
    router: str
    """Version of the router."""
    order: tuple[Target, ...] = ()
    """The places in the order in which trying them costs least, in expectation."""


class Router(Protocol):
    """What decides: probabilities, and what each feature adds to an outcome. A version names it on every route."""

    @property
    def version(self) -> str: ...

    def probabilities(self, evidence: Mapping[str, float | None], deployment: Deployment) -> dict[str, float]: ...

    def contributions(self, evidence: Mapping[str, float | None], outcome: str) -> dict[str, float]: ...


@dataclass(frozen=True)
class RulePrior:
    """Softmax of hand-set log-weights over the evidence: a prior, not a fitted model."""

    version: str = "rules-4"
    base: Mapping[str, float] = field(default_factory=lambda: BASE)
    weights: Mapping[str, Mapping[str, float]] = field(default_factory=lambda: WEIGHTS)

    def contributions(self, evidence: Mapping[str, float | None], outcome: str) -> dict[str, float]:
        """What each measured feature adds to the log-weight of an outcome, without those that add nothing."""
        found = {}
        for name, weight in self.weights[outcome].items():
            value = evidence.get(name)
            if value is not None and math.isfinite(value) and value != 0:
                found[name] = weight * min(max(value, -3.0), 3.0)
        return found

    def probabilities(self, evidence: Mapping[str, float | None], deployment: Deployment) -> dict[str, float]:
        """Probability of each target and of `none`; sums to 1. A target the deployment lacks gets 0.

        Each earlier attempt that failed to hold multiplies its target by (1 - 0.9) / (1 - 0.3). Where most failures have a
        correction that says what is right and nothing speaks for `none`, it is at most as likely as the likeliest place.
        """
        added = {outcome: self.contributions(evidence, outcome) for outcome in OUTCOMES}
        logits = {outcome: self.base[outcome] + math.fsum(each.values()) for outcome, each in added.items()}
        places = [logits[target] for target in TARGETS if deployment.has(target)]
        if (
            places
            and (evidence.get("answered") or 0.0) >= MOSTLY
            and not any(value > 0 for value in added[NONE].values())
        ):
            logits[NONE] = min(logits[NONE], max(places))
        return settled(logits, deployment)


def settled(logits: Mapping[str, float], deployment: Deployment) -> dict[str, float]:
    """The probabilities of these log-weights among the places this deployment has, after its attempts that were taken back."""
    penalty = math.log((1 - HELD_IF_RIGHT) / (1 - HELD_IF_WRONG))
    open_ = {
        outcome: logit + penalty * max(0, deployment.attempts.get(outcome, 0))
        for outcome, logit in logits.items()
        if outcome == NONE or deployment.has(outcome)
    }
    top = max(open_.values())
    parts = {outcome: math.exp(logit - top) for outcome, logit in open_.items()}
    total = math.fsum(parts.values())
    return {outcome: parts.get(outcome, 0.0) / total for outcome in OUTCOMES}


PRIOR = RulePrior()


def decide(
    evidence: Mapping[str, float | None],
    *,
    deployment: Deployment,
    policy: Policy,
    failures: int,
    router: Router = PRIOR,
    certificates: Mapping[Target, Certificate | NotCertified] | None = None,
    replayed: Mapping[str, float] | None = None,
) -> Decision:
    """The decision on a cluster of `failures` failures.

    Certified where its target has a certificate and its probability reaches the threshold, unless something speaks for a
    person: contradictory corrections, or a single failure. Everything else goes to a person. `replayed`: place to how much
    likelier what its fix did in a replay is for the right place than for no change; it multiplies in.
    """
    probabilities = weighted(router.probabilities(evidence, deployment), replayed or {})
    ranked = sorted(probabilities, key=lambda outcome: (-probabilities[outcome], OUTCOMES.index(outcome)))
    first, second = ranked[0], ranked[1]
    target = next((name for name in TARGETS if name == first), None)
    given = certificates.get(target) if certificates and target else None
    reached = _reaches(given, probabilities[first], kind_of(evidence))
    certificate = (
        given if isinstance(given, Certificate) and reached and not _doubts(first, evidence, failures) else None
    )
    to_yes = _to_yes(first, evidence, deployment=deployment, policy=policy, failures=failures)
    return Decision(
        probabilities=probabilities,
        target=target,
        runner_up=second if probabilities[second] > 0 else None,
        certified=certificate is not None,
        reason=f"{_because(first, evidence, probabilities, router)}. {_who(given, certificate, first, evidence, failures)}.",
        to_yes=f"nothing is needed: {certificate.statement}" if certificate else to_yes,
        router=router.version,
        order=cheapest_order(probabilities),
    )


def weighted(probabilities: Mapping[str, float], ratios: Mapping[str, float]) -> dict[str, float]:
    """The probabilities times these likelihood ratios, each counted up to 20 either way, summing to 1 again.

    >>> round(weighted({"context": 0.5, "none": 0.5}, {"context": 3.0})["context"], 2)
    0.75
    """
    parts = {
        name: value * min(max(ratios.get(name, 1.0), 1 / MOST_RATIO), MOST_RATIO)
        for name, value in probabilities.items()
    }
    total = math.fsum(parts.values())
    return {name: value / total for name, value in parts.items()}


def _because(
    first: str, evidence: Mapping[str, float | None], probabilities: Mapping[str, float], router: Router
) -> str:
    added = router.contributions(evidence, first)
    deciding = sorted((name for name in added if added[name] > 0), key=lambda name: (-added[name], name))[:3]
    because = "; ".join(f"{PHRASES.get(name, name)} ({name} {evidence[name]:.2f})" for name in deciding)
    where = "no single place" if first == NONE else first
    return f"{where} at {probabilities[first]:.2f}: {because or _too_little(first, probabilities)}"


def _too_little(first: str, probabilities: Mapping[str, float]) -> str:
    """Why it is first although nothing measured speaks for it."""
    best = max((name for name in OUTCOMES if name != first), key=lambda name: probabilities[name])
    return (
        f"nothing measured speaks for it, and too little for another place ({best} {probabilities[best]:.2f} is next)"
    )


def _who(
    given: Certificate | NotCertified | None,
    certificate: Certificate | None,
    first: str,
    evidence: Mapping[str, float | None],
    failures: int,
) -> str:
    """Who decides, and under which guarantee or for which reasons."""
    if certificate is not None:
        return f"It goes without a person, at or above {certificate.threshold:.2f}: {certificate.statement}"
    reasons = _doubts(first, evidence, failures)
    if not reasons and isinstance(given, Certificate) and (kind := kind_of(evidence)) in given.without:
        reasons = [f"{first} is certified, but not where the {kind} failed"]
    if not reasons and isinstance(given, Certificate):
        reasons = [f"it is below {given.threshold:.2f}, from where {first} is certified"]
    if not reasons and isinstance(given, NotCertified) and given.clusters:
        reasons = [given.statement]
    return f"A person decides: {'; '.join(reasons or ['nothing is calibrated yet'])}"


def _reaches(given: Certificate | NotCertified | None, probability: float, kind: str) -> bool:
    return isinstance(given, Certificate) and probability >= given.threshold and kind not in given.without


def _doubts(first: str, evidence: Mapping[str, float | None], failures: int) -> list[str]:
    found = []
    if evidence.get("contradiction"):
        found.append("the corrections contradict each other")
    if failures <= 1:
        found.append("it is a single failure")
    if first == NONE and not evidence.get("answered"):
        found.append("nobody said what would have been right")
    if evidence.get("attempts"):
        found.append(f"{evidence['attempts']:.0f} earlier attempts were taken back")
    return found


def _to_yes(
    first: str, evidence: Mapping[str, float | None], *, deployment: Deployment, policy: Policy, failures: int
) -> str:
    if evidence.get("contradiction"):
        return f"say which of the contradictory corrections is right ({_count(failures)}, {_minutes(failures)})"
    if first == NONE and not evidence.get("answered"):
        return f"write what would have been right for {_these(failures)} ({_minutes(min(failures, FEW))}), or reroute"
    if first == NONE:
        return f"reroute it to a target, or reject it ({_minutes(1)})"
    risk = policy.risk_weights if first == "weights" else policy.risk
    missing = minimum_for(risk, policy.confidence) - deployment.calibration.get(first, 0)
    way = f"approve or reroute it ({_minutes(1)})"
    if missing <= 0:
        return way
    return f"{way}; {missing} more decided {first} clusters ({_minutes(missing)}) allow a first certificate"


def _count(failures: int) -> str:
    return "1 failure" if failures == 1 else f"{failures} failures"


def _these(failures: int) -> str:
    if failures > FEW:
        return f"{FEW} of these {failures} failures"
    return "this 1 failure" if failures == 1 else f"these {failures} failures"


def _minutes(items: int) -> str:
    minutes = max(1, round(items * LABEL_S / 60))
    return f"about {minutes} minute{'' if minutes == 1 else 's'}"
