"""The least that must be known before any training starts: from how many, from whom, over how long.

Counted over all weights-routed failures of one model since its last retrain. Whether training then pays is
`models.trigger`'s question.
"""

from collections import defaultdict
from collections.abc import Sequence

from store.records.policy import Evidence, Policy
from store.records.production import Record

_DAY_US = 86_400_000_000
MIN_REPAIR_RATE = 0.60
MAX_BREAK_RATE = 0.05


class EvidenceCase(Record):
    """One failure as evidence."""

    source: str
    """The principal; `unknown` is one source, however many people hide behind it."""
    authority: bool = False
    at_us: int | None = None
    """When it happened, microseconds since 1970 UTC; None: not said, and then it counts for no day."""
    weight: float = 1.0


class EvidenceVerdict(Record):
    """Whether the evidence suffices."""

    ok: bool
    numbers: dict[str, float | None]
    sentence: str
    to_yes: str
    """What is missing, in words; empty where it suffices."""


def check(
    cases: Sequence[EvidenceCase],
    *,
    policy: Policy,
    repair_rate: float | None = None,
    break_rate: float | None = None,
) -> EvidenceVerdict:
    """The verdict over `cases` with the profile's thresholds.

    `n_eff` sums min(n, cap) over the sources; an authority's cases count without cap. `repair_rate` and `break_rate`
    are the probe's on a source-disjoint half; profile `standard` refuses without them. A case without a time counts
    for no day; where no case has one, the days are not measured and profile `standard` refuses, while the one day
    that the other profiles ask for is taken as had, since the cases happened.
    """
    numbers = _numbers(cases, policy) | {"repair_rate": repair_rate, "break_rate": break_rate}
    missing = _missing(numbers, policy.evidence)
    if policy.profile == "standard":
        missing += _missing_probe(repair_rate, break_rate)
    sentence = (
        f"{len(cases)} failures count as {numbers['n_eff']:g}, from {numbers['sources']:g} sources "
        f"({numbers['authorities']:g} an authority), over {_days_told(numbers['days'])}"
    )
    if missing:
        return EvidenceVerdict(ok=False, numbers=numbers, sentence=f"too little: {sentence}", to_yes="; ".join(missing))
    return EvidenceVerdict(
        ok=True, numbers=numbers, sentence=f"enough for profile {policy.profile}: {sentence}", to_yes=""
    )


def _numbers(cases: Sequence[EvidenceCase], policy: Policy) -> dict[str, float | None]:
    weights: defaultdict[str, float] = defaultdict(float)
    for case in cases:
        weights[case.source] += case.weight
    trusted = {case.source for case in cases if case.authority}
    counted = [
        weight if source in trusted else min(weight, policy.cap_per_source) for source, weight in weights.items()
    ]
    others = [weight for source, weight in weights.items() if source not in trusted]
    days = {case.at_us // _DAY_US for case in cases if case.at_us is not None}
    total = sum(weights.values())
    return {
        "failures": float(len(cases)),
        "n_eff": sum(counted),
        "sources": float(len(weights)),
        "authorities": float(len(trusted)),
        "days": float(len(days)) if days else None,
        "max_source_share": max(others) / total if others and total else 0.0,
    }


def _missing(numbers: dict[str, float | None], least: Evidence) -> list[str]:
    n_eff, sources, authorities = (numbers[name] or 0.0 for name in ("n_eff", "sources", "authorities"))
    days, share = numbers["days"], numbers["max_source_share"] or 0.0
    missing = []
    if n_eff < least.n_eff:
        missing.append(f"{least.n_eff - n_eff:g} more failures that count")
    if sources < least.sources and authorities < least.authorities:
        missing.append(f"{least.sources - sources:g} more sources, or one authority's word")
    if days is None and least.days > 1:
        missing.append(f"event times: without them the {least.days} days cannot be counted")
    if days is not None and days < least.days:
        missing.append(f"failures from {least.days - days:g} more days")
    if share > least.max_source_share:
        missing.append(
            f"failures of others: one source has {share:.0%} of the weight, {least.max_source_share:.0%} allowed"
        )
    return missing


def _missing_probe(repair_rate: float | None, break_rate: float | None) -> list[str]:
    if repair_rate is None or break_rate is None:
        return ["a probe on a source-disjoint half: it was not measured"]
    missing = []
    if repair_rate < MIN_REPAIR_RATE:
        missing.append(
            f"labels that a refit can learn: the probe repairs {repair_rate:.0%}, {MIN_REPAIR_RATE:.0%} needed"
        )
    if break_rate > MAX_BREAK_RATE:
        missing.append(f"fewer breaks: the probe breaks {break_rate:.0%} in scope, {MAX_BREAK_RATE:.0%} allowed")
    return missing


def _days_told(days: float | None) -> str:
    if days is None:
        return "an unknown number of days"
    return f"{days:g} day" + ("s" if days != 1 else "")
