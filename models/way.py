"""The shortest way to yes: the few traces, verdicts, replays or days that would change a refusal, and what they cost a person.

A decision that waits for a person names its failures; a retrain that was not made names answers of its model.
"""

import math
from collections import Counter
from collections.abc import Sequence

from models.abstention import minimum_for
from models.features.contradictions import contradicting
from models.features.material import Material
from models.gate import to_yes
from models.router import FEW, LABEL_S, Decision
from store.records import Case, Policy, Record, Retrain, Way, short_hash

LABELS = 20
"""Answers of a model that are named at a time."""
_DRAWN = frozenset({"global", "slices", "flips", "calibration"})
"""Stages that estimate a rate over all answers: rows chosen for being doubtful would bend it, so they are drawn."""


class Answered(Record):
    """An answer of a model that nobody labelled."""

    trace_id: str
    source: str
    """The user, else `unknown`."""
    confidence: float | None
    """What the model said of it, 0 to 1; None: it does not say."""
    failed: bool
    """Whether its trace was picked up as a failure."""


def minutes(items: int) -> int:
    """What so many verdicts or answers take a person; 0 for none, else at least 1.

    >>> minutes(0), minutes(1), minutes(22)
    (0, 1, 15)
    """
    return max(1, round(items * LABEL_S / 60)) if items else 0


def ways_to_decide(material: Material, decision: Decision, *, replayable: bool = False) -> tuple[Way, ...]:
    """What would let this decision go, first what it needs most; empty where it is certified.

    `replayable`: the proposed change can be tried on the log and was not yet.
    """
    if decision.certified or not material.cases:
        return ()
    disputed = contradicting(material)
    if disputed:
        return (_asked("settle", "say which of the contradictory corrections is right", _traces(disputed)),)
    silent = [case for case, said in zip(material.cases, material.corrections, strict=True) if not said]
    if decision.target is None and len(silent) == len(material.cases):
        return (_asked("answer", "write what would have been right", _traces(most_telling(silent, FEW))),)
    found = [_verdict(material.cases, decision)]
    if silent:
        found.append(_asked("answer", "write what would have been right: it is evidence that is not measured yet",
                            _traces(most_telling(silent, FEW))))  # fmt: skip
    if replayable:
        known = {case.failure.trace_id for case in silent}
        said_first = sorted(material.cases, key=lambda case: case.failure.trace_id in known)
        found.append(Way(action="replay", what="try the proposed change on these", traces=_traces(said_first[:LABELS])))
    if len(material.cases) == 1:
        found.append(Way(action="wait", what="one more failure like it: a single one is never certified", count=1))
    found += _certificate(decision, material)
    return tuple(found)


def most_telling(cases: Sequence[Case], limit: int) -> list[Case]:
    """The cases whose answer would say most: each source once before any twice, and of a source the least sure failure first."""
    doubtful = sorted(cases, key=lambda case: (abs(case.failure.probability - 0.5), case.failure.trace_id))
    seen: Counter[str] = Counter()
    turns = []
    for case in doubtful:
        turns.append((seen[case.failure.source], case))
        seen[case.failure.source] += 1
    return [case for _, case in sorted(turns, key=lambda pair: pair[0])[:limit]]


def ways_to_train(
    row: Retrain, unlabelled: Sequence[Answered], *, sources: Sequence[str], policy: Policy
) -> tuple[Way, ...]:
    """What would let this retrain happen or pass; empty where it did, was rolled back, or was not weighed at all.

    `unlabelled`: answers of the model without a label, newest first. `sources`: those that its labels come from already.
    """
    if row.decision not in ("skipped", "refused"):
        return ()
    failing = [stage for stage in row.gate if stage.verdict != "passed"]
    if failing:
        return tuple(
            _label(f"{stage.stage}: {to_yes([stage])}", _for_stage(stage.stage, unlabelled), LABELS)
            for stage in failing
        )
    numbers, least = row.numbers, policy.evidence
    if numbers.get("n_eff") is None:
        return ()
    found = []
    n_eff = numbers.get("n_eff")
    if n_eff is not None and n_eff < least.n_eff:
        missing = math.ceil(least.n_eff - n_eff)
        found.append(_label(f"{missing} more labelled failures that count", _failures_first(unlabelled), missing))
    of, trusted = numbers.get("sources"), numbers.get("authorities")
    if of is not None and of < least.sources and (trusted or 0) < least.authorities:
        missing = math.ceil(least.sources - of)
        others = _one_a_source([each for each in unlabelled if each.source not in {*sources, "unknown"}])
        found.append(_label(f"labels from {missing} more sources", others, missing))
    days = numbers.get("days")
    if days is not None and days < least.days:
        found.append(Way(action="wait", what="failures from other days", days=math.ceil(least.days - days)))
    if not found:
        found.append(_label(row.to_yes or "more labels", _failures_first(unlabelled), FEW))
        found.append(Way(action="wait", what="one more window of exposures", days=1))
    return tuple(found)


def _verdict(cases: Sequence[Case], decision: Decision) -> Way:
    what = "approve or reroute it" if decision.target else "reroute it to a place, or reject it"
    traces = _traces(most_telling(cases, 3))
    return Way(action="judge", what=f"{what}, having seen these", traces=traces, count=1, minutes=minutes(1))


def _certificate(decision: Decision, material: Material) -> list[Way]:
    """Decided clusters of the same place that are missing for a first certificate."""
    if decision.target is None:
        return []
    policy = material.policy
    risk = policy.risk_weights if decision.target == "weights" else policy.risk
    missing = minimum_for(risk, policy.confidence) - material.deployment.calibration.get(decision.target, 0)
    if missing <= 0:
        return []
    what = f"decide {missing} more {decision.target} clusters: a first certificate"
    return [Way(action="judge", what=what, place=decision.target, count=missing, minutes=minutes(missing))]


def _for_stage(stage: str, unlabelled: Sequence[Answered]) -> list[Answered]:
    if stage in ("integrity", "poison", "golden", "sealed"):  # no label mends these
        return []
    if stage in _DRAWN:
        return sorted(unlabelled, key=lambda each: short_hash("way", stage, each.trace_id))
    return _failures_first(unlabelled)


def _failures_first(unlabelled: Sequence[Answered]) -> list[Answered]:
    """Failures before what nobody complained of, and the least sure first: there a refit may repair something."""
    return sorted(unlabelled, key=lambda each: (not each.failed, 0.5 if each.confidence is None else each.confidence,
                                                each.trace_id))  # fmt: skip


def _one_a_source(unlabelled: Sequence[Answered]) -> list[Answered]:
    return list({each.source: each for each in reversed(_failures_first(unlabelled))}.values())[::-1]


def _label(what: str, chosen: Sequence[Answered], wanted: int) -> Way:
    return _asked("label", what, tuple(each.trace_id for each in chosen[: min(wanted, LABELS)]), wanted=wanted)


def _asked(action: str, what: str, traces: tuple[str, ...], *, wanted: int = 0) -> Way:
    return Way.model_validate({"action": action, "what": what, "traces": traces, "count": wanted or len(traces),
                               "minutes": minutes(len(traces))})  # fmt: skip


def _traces(cases: Sequence[Case]) -> tuple[str, ...]:
    return tuple(case.failure.trace_id for case in cases[:LABELS])
