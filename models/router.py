"""Where does a correction belong? A prior of hand-set weights over the evidence, and the decision in words.

The prior stands until there are verdicts to fit a model to; its version says so on every route.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from models.abstention import minimum_for
from models.deployment import Deployment
from store.records import TARGETS, Policy, Record, Target

__all__ = ["HELD_IF_RIGHT", "HELD_IF_WRONG", "PRIOR", "Decision", "RulePrior", "decide"]

HELD_IF_RIGHT = 0.9
"""Chance that a fix in the right place holds."""
HELD_IF_WRONG = 0.3
"""Chance that a fix in the wrong place seems to hold."""
LABEL_S = 40
"""What one verdict or one answer takes a person: seconds."""

NONE = "none"
"""The outcome beside the targets: no single place mends it."""

BASE: Mapping[str, float] = {"context": -1.0, "memory": -1.5, "tooling": -1.0, "weights": -8.0, NONE: 0.0}
"""Log-weight of each outcome without evidence: weights start out of reach, and only a failing prediction brings them in."""

WEIGHTS: Mapping[str, Mapping[str, float]] = {
    "tooling": {
        "schema_violation": 2.5,
        "error_transient": 2.5,
        "error_validation": 0.5,
        "error_auth": 1.0,
        "error_other": 0.2,
        "error_not_found": 0.2,
        "normalisable": 2.5,
        "self_repair": 0.7,
        "contract_break": 2.5,
        "batch_outage": 3.0,
        "batch_silence": 5.0,
        "program_blamed": 3.0,
        "rejectable": 3.0,
    },
    "context": {
        "instruction_blamed": 3.0,
        "overlooked": 2.0,
        "normative": 2.5,
        "rule_gap": 0.5,
        "rule_ignored": 1.0,
        "retrieval_miss": 2.0,
        "version_assoc": 0.5,
        "user_concentration": -1.5,
        "model_step": -1.0,
    },
    "memory": {
        "user_concentration": 2.5,
        "cross_user_conflict": 1.5,
        "said_before": 2.5,
        "stale_read": 2.5,
        "first_person": 2.0,
        "unremembered": 3.0,
        "normative": -0.5,
    },
    "weights": {
        "model_step": 9.5,
        "model_blamed": 9.5,
        "no_class": -3.0,
        "user_concentration": -2.5,
        "cross_user_conflict": -2.0,
        "batch_outage": -2.0,
        "normative": -0.5,
        "first_person": -0.5,
    },
    NONE: {"contradiction": 4.0, "label_noise": 3.0, "request_blamed": 3.0},
}
"""Log-weight a feature adds per unit to each outcome; a feature that was not measured adds nothing.

An error by itself weighs little: a tool that rightly refuses a wrong call is no tool to mend (of 94 annotated failures
with an exception 15 were the tool's).
"""

PHRASES: Mapping[str, str] = {
    "schema_violation": "calls break the tool's declared schema",
    "error_transient": "the step is temporarily unavailable",
    "error_validation": "the tool does not accept the call",
    "error_auth": "the tool does not allow the call",
    "error_not_found": "the tool does not find what was asked for",
    "error_other": "the step ends in an error",
    "normalisable": "a listed normaliser mends the argument",
    "self_repair": "the same tool then succeeds with other arguments",
    "contract_break": "the tool's output breaks its contract",
    "batch_outage": "the step fails in one stretch for unrelated inputs",
    "normative": "the correction states a policy",
    "rule_gap": "no active rule says what the correction says",
    "rule_ignored": "an active rule was not followed",
    "retrieval_miss": "the right answer was not retrieved",
    "version_assoc": "failures follow the last context change",
    "user_concentration": "failures concentrate on one user",
    "cross_user_conflict": "other users are content with the same answer",
    "said_before": "the user had said it before",
    "stale_read": "a memory that was read is out of date",
    "first_person": "the correction is about the user's own",
    "model_step": "the failing step is the model's own prediction",
    "batch_silence": "a component brings nothing for anybody",
    "program_blamed": "people blame the program",
    "instruction_blamed": "people blame the prompt or the policy",
    "request_blamed": "people blame the request or the label",
    "model_blamed": "people blame the model's reasoning",
    "unremembered": "the memory did not bring the right answer",
    "overlooked": "the right answer stood in what the model was shown",
    "label_noise": "the label is as likely wrong as the model",
    "rejectable": "no class fits, and the model was unsure",
    "no_class": "no class of the model fits",
    "contradiction": "the corrections contradict each other",
}


class Decision(Record):
    """Where a cluster's correction belongs, how sure that is, and what a person can do about it."""

    probabilities: dict[str, float]
    """Per target and for `none`; sums to 1."""
    target: Target | None
    """The most probable; None: no target, `none` is the most probable."""
    runner_up: str | None
    """The second most probable with a probability above 0; None: there is none."""
    certified: bool
    """Whether it may be applied without a person; False as long as nothing was calibrated."""
    reason: str
    """One sentence with the two or three features that decided, and why a person is asked."""
    to_yes: str
    """The shortest way to a decision and to a certificate."""
    router: str
    """Version of the router."""


@dataclass(frozen=True)
class RulePrior:
    """Softmax of hand-set log-weights over the evidence: a prior, not a fitted model."""

    version: str = "rules-1"
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

        Each earlier attempt that failed to hold multiplies its target by (1 - 0.9) / (1 - 0.3).
        """
        logits = {
            outcome: self.base[outcome] + math.fsum(self.contributions(evidence, outcome).values())
            for outcome in (*TARGETS, NONE)
            if outcome == NONE or deployment.has(outcome)
        }
        penalty = math.log((1 - HELD_IF_RIGHT) / (1 - HELD_IF_WRONG))
        for target in TARGETS:
            if target in logits:
                logits[target] += penalty * max(0, deployment.attempts.get(target, 0))
        top = max(logits.values())
        parts = {outcome: math.exp(logit - top) for outcome, logit in logits.items()}
        total = math.fsum(parts.values())
        return {outcome: parts.get(outcome, 0.0) / total for outcome in (*TARGETS, NONE)}


PRIOR = RulePrior()


def decide(
    evidence: Mapping[str, float | None],
    *,
    deployment: Deployment,
    policy: Policy,
    failures: int,
    prior: RulePrior = PRIOR,
) -> Decision:
    """The decision on a cluster of `failures` failures; never certified without calibration, so a person has the word."""
    probabilities = prior.probabilities(evidence, deployment)
    ranked = sorted(probabilities, key=lambda outcome: (-probabilities[outcome], (*TARGETS, NONE).index(outcome)))
    first, second = ranked[0], ranked[1]
    target = next((name for name in TARGETS if name == first), None)
    return Decision(
        probabilities=probabilities,
        target=target,
        runner_up=second if probabilities[second] > 0 else None,
        certified=False,
        reason=_reason(first, evidence, probabilities, prior=prior, failures=failures),
        to_yes=_to_yes(first, evidence, deployment=deployment, policy=policy, failures=failures),
        router=prior.version,
    )


def _reason(
    first: str,
    evidence: Mapping[str, float | None],
    probabilities: Mapping[str, float],
    *,
    prior: RulePrior,
    failures: int,
) -> str:
    added = prior.contributions(evidence, first)
    deciding = sorted((name for name in added if added[name] > 0), key=lambda name: (-added[name], name))[:3]
    because = "; ".join(f"{PHRASES.get(name, name)} ({name} {evidence[name]:.2f})" for name in deciding)
    asked = "; ".join(_doubts(first, evidence, failures))
    where = "no single place" if first == NONE else first
    why = because or "nothing measured points to another place"
    return f"{where} at {probabilities[first]:.2f}: {why}. A person decides: {asked}."


def _doubts(first: str, evidence: Mapping[str, float | None], failures: int) -> list[str]:
    found = []
    if evidence.get("contradiction"):
        found.append("the corrections contradict each other")
    if failures <= 1:
        found.append("it is a single failure")
    if first == NONE and not evidence.get("answered"):
        found.append("nobody said what would have been right")
    if evidence.get("attempts"):
        found.append(f"{evidence['attempts']:.0f} earlier attempts did not hold")
    return found or ["nothing is calibrated yet"]


def _to_yes(
    first: str, evidence: Mapping[str, float | None], *, deployment: Deployment, policy: Policy, failures: int
) -> str:
    if evidence.get("contradiction"):
        return f"say which of the contradictory corrections is right ({_count(failures)}, {_minutes(failures)})"
    if first == NONE and not evidence.get("answered"):
        return f"write what would have been right for {_these(failures)} ({_minutes(failures)}), or reroute"
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
    return "this 1 failure" if failures == 1 else f"these {failures} failures"


def _minutes(items: int) -> str:
    minutes = max(1, round(items * LABEL_S / 60))
    return f"about {minutes} minute{'' if minutes == 1 else 's'}"
