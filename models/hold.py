"""Whether a change holds: does its failure stop recurring among the exposures after it?

Which traces are exposures, and which of them recurred, is found in `flows.verify`.
"""

from collections.abc import Sequence
from typing import Literal

from models.sequential import binomial_e_value, clopper_pearson_upper
from store.records.production import Record
from store.records.weights import Hold

HELD_SHARE = 1 / 3
"""A fix holds when recurrence is at most this share of the baseline."""
FAILED_SHARE = 1 / 2
"""A fix fails when recurrence exceeds this share of the baseline."""
FAILED_EVIDENCE = 20.0
EARLY_EXPOSURES = 10
EARLY_RECURRENCES = 3
_MOST_EXPOSURES = 10_000_000
_FEWEST = 20


class HoldVerdict(Record):
    """The state of a hold and the numbers behind it."""

    state: Literal["holding", "held", "failed"]
    exposures: int
    recurrences: int
    needed: int | None
    """Exposures at which it is held if none of those to come recurs; None: not known without a baseline above 0."""
    upper: float
    """90 % Clopper-Pearson upper bound of the recurrence rate; 1 without exposures."""
    e_value: float | None
    """Evidence for "more than half of the baseline"; None: no baseline."""
    sentence: str


def judge_hold(outcomes: Sequence[bool], *, baseline: float | None) -> HoldVerdict:
    """The verdict over `outcomes`, one per exposure in the order in which they matured, True where the failure recurred.

    `baseline` is the failure rate of the cluster's exposures before the change, in [0, 1]; None: not measured, and
    then nothing is ever held. Three recurrences in the first ten exposures fail it with or without a baseline.

    >>> judge_hold([False] * 33, baseline=0.2).sentence
    'holding, 33 of 34 exposures'
    >>> judge_hold([False] * 34, baseline=0.2).state
    'held'
    """
    n, k = len(outcomes), sum(outcomes)
    evidence = binomial_e_value(k, n, baseline * FAILED_SHARE) if baseline else None
    needed = exposures_needed(k, baseline)
    upper = clopper_pearson_upper(k, n, 0.90)
    state, sentence = _decided(outcomes, baseline, upper, evidence, needed)
    return HoldVerdict(
        state=state, exposures=n, recurrences=k, needed=needed, upper=upper, e_value=evidence, sentence=sentence
    )


def has_no_effect(hold: Hold) -> str | None:
    """Why a change that neither held nor failed is not worth its place; None: it may be, or nothing can be said yet.

    It had twice the exposures at which a change that works is held, at least 20, and its failure still comes back at more
    than half of the baseline.

    >>> had = Hold(change_id="c", cluster_id="k", baseline=0.3, exposures=80, recurrences=20, needed=40, since_us=0, updated_us=0)
    >>> has_no_effect(had)
    'it had no measured effect: 25% of 80 exposures fail, 30% did before'
    >>> has_no_effect(had.model_copy(update={"exposures": 19, "recurrences": 5})) is None
    True
    """
    first = exposures_needed(0, hold.baseline)
    if hold.state != "holding" or not hold.baseline or first is None or hold.exposures < max(2 * first, _FEWEST):
        return None
    rate = hold.recurrences / hold.exposures
    if rate <= hold.baseline * FAILED_SHARE:
        return None
    return f"it had no measured effect: {rate:.0%} of {hold.exposures} exposures fail, {hold.baseline:.0%} did before"


def exposures_needed(recurrences: int, baseline: float | None) -> int | None:
    """The fewest exposures, `recurrences` of them failing, whose 90 % upper bound is at most a third of `baseline`.

    >>> exposures_needed(0, 0.2)
    34
    """
    if not baseline:
        return None
    low, high = recurrences, recurrences + 1
    while clopper_pearson_upper(recurrences, high, 0.90) > baseline * HELD_SHARE:
        low, high = high, high * 2
        if high > _MOST_EXPOSURES:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        if clopper_pearson_upper(recurrences, middle, 0.90) > baseline * HELD_SHARE:
            low = middle
            continue
        high = middle
    return high


def _decided(
    outcomes: Sequence[bool], baseline: float | None, upper: float, evidence: float | None, needed: int | None
) -> tuple[Literal["holding", "held", "failed"], str]:
    early = sum(outcomes[:EARLY_EXPOSURES])
    if early >= EARLY_RECURRENCES:
        return (
            "failed",
            f"failed: it recurred {early} times in the first {min(len(outcomes), EARLY_EXPOSURES)} exposures",
        )
    if evidence is not None and evidence >= FAILED_EVIDENCE:
        return "failed", f"failed: it recurs at more than half of its baseline (E = {evidence:.0f})"
    if not baseline:
        return "holding", f"holding, {len(outcomes)} exposures: no baseline was measured, so it cannot be called held"
    if upper <= baseline * HELD_SHARE:
        return "held", f"held: recurrence is at most {upper:.1%}, a third of the baseline of {baseline:.1%} or less"
    return "holding", f"holding, {len(outcomes)} of {needed} exposures"
