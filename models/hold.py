"""Whether a change holds: does its failure stop recurring among the exposures after it?

Which traces are exposures, and which of them recurred, is found in `flows.verify`.
"""

from collections.abc import Sequence
from typing import Literal

from scipy.stats import binom

from models.maturity import MATURE
from models.sequential import below_e_value, binomial_e_value, clopper_pearson_upper
from store.records.production import Record
from store.records.weights import Hold

HELD_SHARE = 1 / 3
"""A fix holds when recurrence is at most this share of the baseline."""
FAILED_SHARE = 1 / 2
"""A fix fails when recurrence exceeds this share of the baseline."""
FAILED_EVIDENCE = 20.0
EARLY_EXPOSURES = 10
EARLY_RECURRENCES = 3
EARLY_LEVEL = 0.05
"""So probable at the most may the early recurrences be where the fix holds; else only the evidence counts."""
HELD_EVIDENCE = 10.0
"""Evidence at which it is held: by Ville's inequality wrongly in at most 1 of 10, however often it is looked at."""
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
    """90 % Clopper-Pearson upper bound of the recurrence rate, of one look; 1 without exposures."""
    e_value: float | None
    """Evidence for "more than half of the baseline"; None: no baseline."""
    sentence: str


def judge_hold(outcomes: Sequence[bool], *, baseline: float | None) -> HoldVerdict:
    """The verdict over `outcomes`, one per exposure in the order in which they matured, True where the failure recurred.

    `baseline` is the failure rate of the cluster's exposures before the change, in [0, 1]; None: not measured, and
    then nothing is ever held. Held: evidence of 10 for "at most a third of the baseline", valid at every look. Failed: evidence
    of 20 for "more than half of it", or three recurrences in the first ten exposures, unless those are to be expected of a
    fix that holds.

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


def until_mature(verdict: HoldVerdict, labels_in: float | None) -> HoldVerdict:
    """The verdict, or "holding" instead of "held" while too few labels of its exposures are in: bad news may come late.

    `labels_in`: expected share of their labels that have come, 0 to 1; None: not measured, and then the verdict stands.

    >>> until_mature(judge_hold([False] * 34, baseline=0.2), 0.5).sentence
    'holding, 34 exposures suffice, but only 50% of the labels since are in, 90% needed'
    >>> until_mature(judge_hold([False] * 34, baseline=0.2), 0.95).state
    'held'
    """
    if verdict.state != "held" or labels_in is None or labels_in >= MATURE:
        return verdict
    sentence = (
        f"holding, {verdict.exposures} exposures suffice, but only {labels_in:.0%} of the labels since are in,"
        f" {MATURE:.0%} needed"
    )
    return verdict.model_copy(update={"state": "holding", "sentence": sentence})


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
    """The fewest exposures, `recurrences` of them failing, with the evidence of 10 that the rate is below a third of `baseline`.

    >>> exposures_needed(0, 0.2)
    34
    """
    if not baseline:
        return None
    low, high = recurrences, recurrences + 1
    while below_e_value(recurrences, high, baseline * HELD_SHARE) < HELD_EVIDENCE:
        low, high = high, high * 2
        if high > _MOST_EXPOSURES:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        if below_e_value(recurrences, middle, baseline * HELD_SHARE) < HELD_EVIDENCE:
            low = middle
            continue
        high = middle
    return high


def _early(outcomes: Sequence[bool], baseline: float | None) -> int | None:
    """Exposures by which it recurred three times, within the first ten, where that is rare of a fix that holds; else None."""
    places = [place for place, recurred in enumerate(outcomes[:EARLY_EXPOSURES], start=1) if recurred]
    if len(places) < EARLY_RECURRENCES:
        return None
    seen = places[EARLY_RECURRENCES - 1]
    if baseline and float(binom.sf(EARLY_RECURRENCES - 1, seen, baseline * HELD_SHARE)) > EARLY_LEVEL:
        return None
    return seen


def _decided(
    outcomes: Sequence[bool], baseline: float | None, upper: float, evidence: float | None, needed: int | None
) -> tuple[Literal["holding", "held", "failed"], str]:
    early = _early(outcomes, baseline)
    if early is not None:
        return "failed", f"failed: it recurred {EARLY_RECURRENCES} times in the first {early} exposures"
    if evidence is not None and evidence >= FAILED_EVIDENCE:
        return "failed", f"failed: it recurs at more than half of its baseline (E = {evidence:.0f})"
    if not baseline:
        return "holding", f"holding, {len(outcomes)} exposures: no baseline was measured, so it cannot be called held"
    if below_e_value(sum(outcomes), len(outcomes), baseline * HELD_SHARE) >= HELD_EVIDENCE:
        return (
            "held",
            f"held: recurrence is below a third of the baseline of {baseline:.1%} (at most {upper:.1%} in one look)",
        )
    return "holding", f"holding, {len(outcomes)} of {needed} exposures"
