"""The thresholds in force. A copy is recorded with every decision."""

from typing import Literal

from pydantic import ConfigDict, Field

from store.records.production import Record

ProfileName = Literal["standard", "small", "benchmark"]


class Evidence(Record):
    """The minimum evidence before a model is trained, summed over its weights-routed clusters since the last retrain."""

    model_config = ConfigDict(allow_inf_nan=False)

    n_eff: float = 30.0
    """Sum over sources of min(n, cap_per_source)."""
    sources: int = 5
    """Distinct independent sources; or else `authorities` of them suffice."""
    authorities: int = 1
    """Staff whose word suffices in place of `sources` end users."""
    days: int = 2
    """Distinct days of the failures."""
    max_source_share: float = 0.20
    """No source but an authority may exceed this share of the weight."""


class Policy(Record):
    """What a turn may do, and the risks it may take."""

    profile: ProfileName = "standard"
    evidence: Evidence = Evidence()
    cap_per_source: int = 5
    """At most so many failures of one source count in one cluster."""
    risk: float = 0.10
    """Highest share of auto-routed clusters in a place where the fix would not hold."""
    risk_weights: float = 0.05
    confidence: float = 0.90
    """Of the Clopper-Pearson bound behind a certificate."""
    min_cluster: int = 1
    """Failures a cluster needs before it is routed and put to review."""
    queue_cap: int = 200
    """Corrections waiting for a person at the most; the overflow is held, never auto-routed."""
    settle_s: float = 0.0
    """Pickup waits so long after a trace's last arrival."""
    delta_global: float = 0.01
    """Non-inferiority margin of the gate's global stage, share of rows."""
    max_flip_rate: float = 0.01
    """Upper bound of newly wrong among formerly right."""
    delta_small: float = 0.03
    """The margin where fewer than 299 formerly right rows were judged."""
    min_gain: float = 0.05
    """Alpha of the gate's target stage."""
    context_rules: int = 50
    """Rules that one conversation may get; one more is refused."""
    context_tokens: int = 2000
    """Tokens, at four characters each, that the rules of one conversation may take."""
    trusted: tuple[str, ...] = ()
    """Principals whose word is an authority's."""
    reviewer: str | None = None
    """Profile `benchmark` only: the named reviewer that approves what the feedback says, and sees nothing else."""


class Prices(Record):
    """What things cost, for net value and for the retrain trigger."""

    model_config = ConfigDict(allow_inf_nan=False)

    cpu_usd_per_hour: float = Field(default=0.05, ge=0)
    review_usd_per_hour: float = Field(default=60.0, ge=0)
    failure_usd: float = Field(default=1.0, ge=0)
    """What one failure that reaches a user costs."""
    regression_factor: float = Field(default=2.0, ge=2)
    """Kappa: how much worse a newly caused failure is than one averted."""


class Meaning(Record):
    """What a feedback name means."""

    model_config = ConfigDict(allow_inf_nan=False)

    good: Literal["high", "low"] = "high"
    """Whether a high score is good."""
    threshold: float = 0.5
    """A score on the bad side of it (`good` high: below it) is a failure."""
    kind: Literal["person", "evaluation"] = "person"
    """An evaluation that passes outranks behavioural signals."""
    bad_labels: tuple[str, ...] = ("down", "bad", "wrong", "incorrect", "fail", "failed", "thumbs_down", "negative")
    good_labels: tuple[str, ...] = ("up", "good", "right", "correct", "pass", "passed", "thumbs_up", "positive")


def policy_for(profile: ProfileName, trusted: tuple[str, ...] = ()) -> Policy:
    """The defaults of a profile. `small` trades the standard's guarantees for a first yes, and says so wherever it decides.

    >>> policy_for("small").evidence.n_eff
    5.0
    """
    if profile == "standard":
        return Policy(trusted=trusted)
    small = Evidence(n_eff=5.0, sources=2, authorities=1, days=1, max_source_share=0.5)
    if profile == "small":
        return Policy(profile="small", evidence=small, trusted=trusted)
    return Policy(
        profile="benchmark",
        evidence=small.model_copy(update={"max_source_share": 1.0}),
        trusted=trusted,
        reviewer="benchmark-reviewer",
    )
