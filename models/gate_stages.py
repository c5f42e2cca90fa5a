"""The gate's stages, one function each: what is compared, and the number that decides.

Each takes paired rows and gives a verdict with its numbers and a sentence; "not measured" refuses like "failed".
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from models.calibration import Calibrated
from models.judged_rows import JudgedRow, Pairs, pairs_of
from models.poison import Influence
from models.sequential import (
    e_value,
    mcnemar_one_sided,
    most_below,
    spent_alpha,
)
from store.records.policy import Policy
from store.records.weights import GateStage

StageName = Literal["integrity", "target", "global", "slices", "flips", "calibration", "poison"]
Outcome = Literal["passed", "failed", "not measured"]
STRICT_FLIP_ROWS = 299
"""The fewest formerly right rows at which no newly wrong one bounds the flip rate by 1 %."""
FEWEST_SERVED = 30
"""From here on flips are counted over answers that were served, and the base rows are left out of it."""
MOST_WIDE_FLIPS = 0.25
"""Share of the formerly right rows that may be newly wrong even where too few of them were judged to bound it."""
MOST_WORSE_CALIBRATED = 0.02
"""By how much the challenger's expected calibration error may exceed the champion's."""
MOST_STEERED = 0.01
"""Share of the canaries that leaving one source out may change."""


def flip_rows(rows: Sequence[JudgedRow]) -> Sequence[JudgedRow]:
    """The rows over which flips are counted: answers that were served, or all rows where fewer than 30 of them are right.

    The base rows were never served: two refits that disagree on one of them take nothing from a user.
    """
    served = [row for row in rows if row.in_cluster]
    return served if pairs_of(served).formerly_right >= FEWEST_SERVED else rows


def is_wide(rows: Sequence[JudgedRow], policy: Policy) -> bool:
    """Whether the wider margins of profiles `small` and `benchmark` apply: too few formerly right rows to bound 1 %."""
    few = pairs_of(flip_rows(rows)).formerly_right < STRICT_FLIP_ROWS
    return policy.profile in ("small", "benchmark") and few


def flips_to_choose(right: int, policy: Policy) -> int | None:
    """How many of `right` formerly right rows an anchored challenger may aim to lose; None: too few rows to bound flips.

    Two fewer than the flips stage lets pass: a row is judged with the lead that others ask for, and one more than aimed at is lost
    on average.
    """
    if right < STRICT_FLIP_ROWS:
        return None
    return max(0, most_below(policy.max_flip_rate, right, 0.95) - 2)


def integrity(checks: Mapping[str, bool | None]) -> GateStage:
    """Every named check must hold; one that was not made (None), or none at all, is not measured."""
    numbers = {name: None if ok is None else float(ok) for name, ok in checks.items()}
    failed = [name for name, ok in checks.items() if ok is False]
    missing = [name for name, ok in checks.items() if ok is None]
    if failed:
        return _stage("integrity", "failed", numbers, f"failed: {', '.join(failed)}")
    if missing or not checks:
        return _stage("integrity", "not measured", numbers, f"not checked: {', '.join(missing) or 'the model file'}")
    return _stage("integrity", "passed", numbers, f"{len(checks)} checks hold: {', '.join(checks)}")


def target(rows: Sequence[JudgedRow], policy: Policy, look: int) -> GateStage:
    """Exact one-sided McNemar over the production rows, at alpha .05 on fresh rows, spent from the second look on.

    The rows that came since the champion count with what was served; those it has learnt count with what refits
    answer to them, the champion's arm without the new rows and the challenger with them: does learning more help on
    this traffic? The rows that came since may not lose on balance, whatever the others say.
    """
    fresh = pairs_of([row for row in rows if row.in_cluster])
    pairs = pairs_of([row for row in rows if row.in_cluster or row.in_production])
    alpha = spent_alpha(policy.min_gain, look)
    p = mcnemar_one_sided(pairs.newly_right, pairs.newly_wrong)
    numbers = {
        **_counts(pairs),
        "fresh_rows": float(fresh.n),
        "fresh_newly_right": float(fresh.newly_right),
        "fresh_newly_wrong": float(fresh.newly_wrong),
        "p": p,
        "alpha": alpha,
        "look": float(look),
        "e_value": e_value(pairs.newly_right, pairs.newly_wrong),
    }
    if not fresh.n:
        return _stage("target", "not measured", numbers, "no labelled row in scope was set aside to judge with")
    learnt = f", {pairs.n - fresh.n} of them learnt before" if pairs.n > fresh.n else ""
    sentence = (
        f"{pairs.newly_right} newly right, {pairs.newly_wrong} newly wrong of {pairs.n} rows in scope{learnt} "
        f"(p = {p:.3f}, at most {alpha:.3f} at look {look})"
    )
    if p <= alpha and fresh.newly_wrong > fresh.newly_right:
        sentence += f"; but the new rows alone lose, {fresh.newly_right} to {fresh.newly_wrong}"
        return _stage("target", "failed", numbers, sentence)
    return _stage("target", "passed" if p <= alpha else "failed", numbers, sentence)


def global_(rows: Sequence[JudgedRow], policy: Policy) -> GateStage:
    """Paired non-inferiority over all rows; the margin is 1 point, 3 points where the wider rule applies."""
    pairs = pairs_of(rows)
    delta = policy.delta_small if is_wide(rows, policy) else policy.delta_global
    numbers = {**_counts(pairs), "loss_bound": pairs.loss_bound if pairs.n else None, "delta": delta}
    if not pairs.n:
        return _stage("global", "not measured", numbers, "no row was judged")
    sentence = (
        f"{pairs.newly_right} newly right, {pairs.newly_wrong} newly wrong of {pairs.n} rows: at 95 % confidence at most "
        f"{max(0.0, pairs.loss_bound):.1%} of answers lost, {delta:.0%} allowed"
    )
    return _stage("global", "passed" if pairs.loss_bound <= delta else "failed", numbers, sentence)


def slices(rows: Sequence[JudgedRow]) -> GateStage | None:
    """In scope and out of scope apart, among the rows served: neither may pay for the other; None: no row out of scope.

    A slice of 125 rows may lose 5 points, of 800 rows 2 points, at 95 % confidence; a smaller one 5 points as counted.
    """
    served = [row for row in rows if row.in_cluster]
    parts = {
        "in_scope": pairs_of([row for row in served if row.truth is not None]),
        "out_of_scope": pairs_of([row for row in served if row.truth is None]),
    }
    if not parts["out_of_scope"].n:
        return None
    numbers: dict[str, float | None] = {}
    losing = []
    for name, pairs in parts.items():
        numbers |= {f"{name}_{key}": value for key, value in _counts(pairs).items()}
        numbers[f"{name}_loss_bound"] = pairs.loss_bound if pairs.n else None
        losing += [name.replace("_", " ")] * pairs.slice_loses
    told = ", ".join(
        f"{name.replace('_', ' ')} +{p.newly_right} -{p.newly_wrong} of {p.n}" for name, p in parts.items()
    )
    if not parts["in_scope"].n:
        return _stage("slices", "not measured", numbers, f"{told}: no row in scope was judged")
    if losing:
        return _stage("slices", "failed", numbers, f"{told}: {' and '.join(losing)} may lose too much")
    return _stage("slices", "passed", numbers, f"{told}: neither pays for the other")


def flips(rows: Sequence[JudgedRow], policy: Policy) -> GateStage:
    """Newly wrong among formerly right: bounded by 1 %, or by the wider rule, which prints the bound it reached."""
    pairs = pairs_of(flip_rows(rows))
    numbers = {
        **_counts(pairs),
        "formerly_right": float(pairs.formerly_right),
        "flip_bound": pairs.flip_bound if pairs.formerly_right else None,
        "loss_bound": pairs.loss_bound if pairs.n else None,
    }
    if not pairs.formerly_right:
        return _stage("flips", "not measured", numbers, "no formerly right row was judged")
    counted = (
        f"{pairs.newly_wrong} newly wrong of {pairs.formerly_right} formerly right: at most {pairs.flip_bound:.1%}"
    )
    if not is_wide(rows, policy):
        passed = pairs.flip_bound <= policy.max_flip_rate
        sentence = f"{counted} at 95 % confidence, {policy.max_flip_rate:.0%} allowed"
        return _stage("flips", "passed" if passed else "failed", numbers, sentence)
    share = pairs.newly_wrong / pairs.formerly_right
    if share > MOST_WIDE_FLIPS:
        return _stage(
            "flips", "failed", numbers, f"{counted}; whatever is gained, {MOST_WIDE_FLIPS:.0%} at the most may be lost"
        )
    passed = pairs.loss_bound <= policy.delta_small and pairs.newly_right > pairs.newly_wrong
    sentence = (
        f"{counted} at 95 % confidence (1 % cannot be shown with fewer than {STRICT_FLIP_ROWS}); profile {policy.profile}: "
        f"net gain {pairs.newly_right - pairs.newly_wrong}, at most "
        f"{max(0.0, pairs.loss_bound):.1%} lost, {policy.delta_small:.0%} allowed"
    )
    return _stage("flips", "passed" if passed else "failed", numbers, sentence)


def calibration(found: Calibrated | None) -> GateStage:
    """Expected calibration error worse by at most .02; what chance alone explains at 95 % does not refuse."""
    if found is None or not found.rows:
        return _stage("calibration", "not measured", {"rows": 0.0}, "no row in scope to compare confidences on")
    numbers: dict[str, float | None] = found.model_dump()
    sentence = (
        f"expected calibration error {found.champion:.3f} and now {found.challenger:.3f} over {found.rows} rows: worse by at "
        f"least {max(0.0, found.worse_lower):.3f} at 95 % confidence, {MOST_WORSE_CALIBRATED:.2f} allowed"
    )
    passed = found.worse_lower <= MOST_WORSE_CALIBRATED
    return _stage("calibration", "passed" if passed else "failed", numbers, sentence)


def poison(found: Sequence[Influence]) -> GateStage:
    """Leaving out any source changes at most 1 % of the canaries' answers."""
    numbers: dict[str, float | None] = {"sources": float(len(found))}
    if not found:
        return _stage("poison", "passed", numbers, "no source but authorities gave enough rows to steer the model")
    if not found[0].canaries:
        return _stage("poison", "not measured", numbers, "the base set has no row to ask as a canary")
    worst = max(found, key=lambda each: each.share)
    numbers |= {
        "worst_changed": float(worst.changed),
        "canaries": float(worst.canaries),
        "worst_rows": float(worst.rows),
    }
    sentence = (
        f"of {len(found)} sources left out in turn, {worst.source} changes most: {worst.changed} of {worst.canaries} canaries "
        f"by {worst.rows} rows, {MOST_STEERED:.0%} allowed"
    )
    return _stage("poison", "passed" if worst.share <= MOST_STEERED else "failed", numbers, sentence)


def _counts(pairs: Pairs) -> dict[str, float | None]:
    return {
        "rows": float(pairs.n),
        "newly_right": float(pairs.newly_right),
        "newly_wrong": float(pairs.newly_wrong),
    }


def _stage(
    name: StageName,
    verdict: Outcome,
    numbers: Mapping[str, float | None],
    sentence: str,
) -> GateStage:
    return GateStage(stage=name, verdict=verdict, numbers=dict(numbers), sentence=sentence)
