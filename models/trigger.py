"""When a retrain is worth it: the ski-rental rule, with two vetoes.

The loss that a retrain would have avoided accumulates; training starts when it reaches the whole cost of one. Whoever
trains then pays at most about twice what hindsight would have paid (Karlin et al., Algorithmica 11, 1994).
"""

import math
from collections.abc import Sequence
from itertools import count

from scipy import stats

from models.gate_stages import flips_to_choose
from models.judged_rows import Pairs
from models.sequential import clopper_pearson_lower, most_below, spent_alpha, wins_needed
from store.records.policy import Policy, Prices
from store.records.production import Record

REPAIR_CONFIDENCE = 0.80
VERDICT_MINUTES = 1.0
"""What a person needs to read the gate's verdict."""
LABEL_MINUTES = 40 / 60
"""What a person needs to look at a label that was held back."""
MIN_P_PASS = 0.5
"""A training that will more probably be refused than pass is waste."""
MIN_WINDOWS = 3
"""Windows from one training, or the first release, to the next: what is served is seen first. A third of a nightly schedule."""
PRIOR_CANDIDATES = 10.0
"""The power predicted from the rows in hand counts as much as so many earlier candidates, which others judged."""


class TriggerInputs(Record):
    """What is known when the trigger is evaluated."""

    exposures: int
    """Matured exposures in scope since the last training, whether it was promoted or refused."""
    windows: int
    """Windows (nights) since then, or since the first release; at least 1."""
    judged: int
    """Labelled exposures that the probe answered out of fold, since the last promotion."""
    repaired: int
    """Of them, wrong as served and right by the probe."""
    broken: int
    learnt_rows: int = 0
    """Production rows learnt before, which judge a candidate too."""
    learnt: tuple[int, int] = (0, 0)
    """(repaired, broken) among them."""
    anchored_right: int | None = None
    """Formerly right rows of a candidate that will be anchored at the champion; None: it will not be."""
    slices: tuple[tuple[int, int, int], ...] = ()
    """(repaired, broken, rows) of each slice the gate will look at."""
    passes: int = 0
    """Candidates that passed the gate before."""
    refusals: int = 0
    look: int = 1
    """How many candidates these rows will have judged, this one included."""
    arms: int
    fit_s: float
    """Seconds of one arm's fit."""
    gate_s: float
    held_labels: int = 0
    """Labels that a person will be asked to look at again."""
    data_digest: str
    arms_left: Sequence[str] = ()
    """Arms not yet refused on this very data and not barred."""
    rejected_digests: tuple[str, ...] = ()
    """Data digests of refused candidates."""


class TriggerVerdict(Record):
    """One evaluation of the trigger."""

    train: bool
    reason: str
    to_yes: str
    """The shortest way to a training; empty where it trains."""
    numbers: dict[str, float | None]


def evaluate(inputs: TriggerInputs, *, policy: Policy, prices: Prices) -> TriggerVerdict:
    """Whether to train now, with every number that decided it, in USD, exposures and probabilities.

    `avoidable = exposures * L * P(pass) * price of a failure`, with L the lower 80 % Clopper-Pearson bound of the
    repair rate per exposure; `cost = machine + review + P(pass) * harm`, where the harm is what one window of exposures
    suffers from answers newly wrong, `exposures / windows * break rate * kappa * price of a failure`: after one window
    the shadow champion and the next turn see it, and it can be undone.
    """
    numbers = _numbers(inputs, policy, prices)
    if not inputs.judged or not inputs.repaired:
        return _wait("the probe repairs nothing", "label failures that the model can learn from its inputs", numbers)
    avoidable, cost = numbers["avoidable_usd"] or 0.0, numbers["cost_usd"] or 0.0
    if avoidable < cost:
        reason = f"avoidable loss {avoidable:.2f} USD is below the cost of a retrain, {cost:.2f} USD"
        return _wait(reason, _exposures_missing(inputs, avoidable, cost, numbers["p_pass_next"] or 0.0), numbers)
    if numbers["waiting_gain_usd"] is not None and numbers["waiting_gain_usd"] > (numbers["waiting_cost_usd"] or 0.0):
        p_now, p_next = numbers["p_pass"] or 0.0, numbers["p_pass_next"] or 0.0
        reason = f"one more window raises the chance to pass the gate from {p_now:.0%} to {p_next:.0%}, worth its cost"
        return _wait(reason, "wait one more window", numbers)
    if (numbers["p_pass"] or 0.0) < MIN_P_PASS:
        reason = f"a candidate would pass the gate with {numbers['p_pass']:.0%}, and {MIN_P_PASS:.0%} is asked for"
        return _wait(
            reason, _way_to_pass(inputs, policy, "label more failures of the kinds that the probe repairs"), numbers
        )
    return TriggerVerdict(
        train=True,
        reason=f"avoidable loss {avoidable:.2f} USD has reached the cost of a retrain, {cost:.2f} USD",
        to_yes="",
        numbers=numbers,
    )


def settled_without_probe(inputs: TriggerInputs, *, policy: Policy, prices: Prices) -> TriggerVerdict | None:
    """The verdict where it is no whatever a probe would find; None: a probe decides.

    `inputs` are the best case: `repaired` counts every failure, `broken` is 0, and the machine costs nothing.
    """
    best = _numbers(inputs, policy, prices)
    averted = inputs.exposures * (best["repair_rate_lower"] or 0.0) * prices.failure_usd
    p_pass, fixed = best["p_pass"] or 0.0, best["review_usd"] or 0.0
    numbers = {name: best[name] for name in ("exposures", "windows", "judged")} | {
        "failures": float(inputs.repaired),
        "best_avoidable_usd": averted,
        "best_p_pass": p_pass,
        "fixed_cost_usd": fixed,
    }
    if inputs.data_digest in inputs.rejected_digests and not inputs.arms_left:
        return _wait("these very rows were refused with every arm", "label new rows", numbers)
    if inputs.windows < MIN_WINDOWS:
        missing = MIN_WINDOWS - inputs.windows
        since = "the last training" if inputs.passes + inputs.refusals else "the first release"
        windows = f"{inputs.windows} window" + "s" * (inputs.windows > 1)
        reason = f"{since} has been seen for {windows}, and {MIN_WINDOWS} show what it does"
        return _wait(reason, f"wait {missing} more window" + "s" * (missing > 1), numbers)
    told = f"were every one of {inputs.repaired} failures repaired"
    if averted < fixed:
        reason = (
            f"{told}, {averted:.2f} USD would be avoided, less than the {fixed:.2f} USD a retrain costs at the least"
        )
        return _wait(reason, "more exposures", numbers)
    if p_pass < MIN_P_PASS and not inputs.learnt_rows:
        reason = f"{told}, a candidate would pass the gate with {p_pass:.0%}, and {MIN_P_PASS:.0%} is asked for"
        return _wait(reason, _way_to_pass(inputs, policy, "label more failures"), numbers)
    return None


def pays_if_it_passes(inputs: TriggerInputs, *, policy: Policy, prices: Prices) -> bool:
    """Whether a candidate that passes for certain would pay: else how it would be judged need not be known."""
    sure = _numbers(inputs, policy, prices)
    averted = inputs.exposures * (sure["repair_rate_lower"] or 0.0) * prices.failure_usd
    return averted >= sum(sure[name] or 0.0 for name in ("machine_usd", "review_usd", "harm_if_passed_usd"))


def power(repaired: int, broken: int, *, share: float, alpha: float) -> float:
    """Chance that the gate's target stage passes when `share` of the rows judge, as the probe's counts predict.

    The discordant judging rows are `share` of the probe's; that each is newly right has a Beta(repaired + 1,
    broken + 1) posterior, so their number is beta-binomial.

    >>> power(9, 0, share=1.0, alpha=0.05) > power(9, 6, share=1.0, alpha=0.05)
    True
    """
    discordant = round((repaired + broken) * share)
    right = stats.betabinom(discordant, repaired + 1, broken + 1)
    passing = (c for c in range(discordant + 1) if c >= wins_needed(discordant - c, alpha))
    return float(sum(right.pmf(c) for c in passing))


def chance_of_no_loss(repaired: int, broken: int, rows: int, *, share: float) -> float:
    """Chance that a slice of the judging rows loses no more than a slice may, predicted as in `power`.

    >>> chance_of_no_loss(6, 0, 60, share=1.0) > 0.9 > chance_of_no_loss(2, 8, 60, share=1.0)
    True
    """
    discordant = round((repaired + broken) * share)
    judging = max(discordant, round(rows * share))
    right = stats.betabinom(discordant, repaired + 1, broken + 1)
    outcomes = (
        Pairs(n=judging, newly_right=c, newly_wrong=discordant - c, formerly_right=judging)
        for c in range(discordant + 1)
    )
    return float(sum(right.pmf(each.newly_right) for each in outcomes if not each.slice_loses))


def chance_of_few_flips(right: int | None, policy: Policy, *, share: float = 1.0) -> float:
    """Chance that an anchored candidate, which aims at two newly wrong answers fewer than may be, gets no more than those.

    `right` rows were formerly right; 1 where it is not anchored, or too few of them judge. One more than aimed at is lost on
    average, as a Poisson count.

    >>> [round(chance_of_few_flips(n, Policy()), 2) for n in (100, 400, 500, 700, 1100)]
    [1.0, 0.37, 0.74, 0.92, 0.79]
    """
    rows = round((right or 0) * share)
    aimed = flips_to_choose(rows, policy)
    if aimed is None:
        return 1.0
    return float(stats.poisson.cdf(most_below(policy.max_flip_rate, rows, 0.95), aimed + 1))


def _numbers(inputs: TriggerInputs, policy: Policy, prices: Prices) -> dict[str, float | None]:
    lower = clopper_pearson_lower(inputs.repaired, inputs.judged, REPAIR_CONFIDENCE)
    breaking = (inputs.broken + 1) / (inputs.judged + 2)
    p_now, p_next = (_p_pass(inputs, policy, factor) for factor in (1.0, 1.0 + 1.0 / max(1, inputs.windows)))
    averted = inputs.exposures * lower * prices.failure_usd
    windows = max(1, inputs.windows)
    harm = inputs.exposures / windows * breaking * prices.regression_factor * prices.failure_usd
    machine = (inputs.fit_s * inputs.arms + inputs.gate_s) / 3600 * prices.cpu_usd_per_hour
    review = (VERDICT_MINUTES + LABEL_MINUTES * inputs.held_labels) / 60 * prices.review_usd_per_hour
    gain = max(0.0, averted / windows - harm)
    return {
        "exposures": float(inputs.exposures),
        "windows": float(inputs.windows),
        "judged": float(inputs.judged),
        "repaired": float(inputs.repaired),
        "broken": float(inputs.broken),
        "repair_rate_lower": lower,
        "break_rate": breaking,
        "p_pass": p_now,
        "p_pass_next": p_next,
        "avoidable_usd": averted * p_now,
        "machine_usd": machine,
        "review_usd": review,
        "harm_if_passed_usd": harm,
        "harm_usd": harm * p_now,
        "cost_usd": machine + review + harm * p_now,
        "waiting_gain_usd": (p_next - p_now) * gain * windows,
        "waiting_cost_usd": p_now * gain,
    }


def _p_pass(inputs: TriggerInputs, policy: Policy, factor: float) -> float:
    """Posterior mean of passing: a Beta prior at the predicted power, updated by the earlier candidates."""
    alpha = spent_alpha(policy.min_gain, inputs.look)
    repaired, broken = inputs.repaired + inputs.learnt[0], inputs.broken + inputs.learnt[1]
    predicted = power(repaired, broken, share=factor, alpha=alpha)
    for repaired, broken, rows in inputs.slices:
        predicted *= chance_of_no_loss(repaired, broken, rows, share=factor)
    tried = inputs.passes + inputs.refusals
    posterior = (PRIOR_CANDIDATES * predicted + inputs.passes) / (PRIOR_CANDIDATES + tried)
    return posterior * chance_of_few_flips(inputs.anchored_right, policy, share=factor)


def _way_to_pass(inputs: TriggerInputs, policy: Policy, otherwise: str) -> str:
    """More right answers where too few of them allow for any that is newly wrong."""
    right = inputs.anchored_right or 0
    if chance_of_few_flips(right, policy) >= MIN_P_PASS:
        return otherwise
    enough = next(n for n in count(right) if chance_of_few_flips(n, policy) >= MIN_P_PASS)
    return f"confirm {enough - right} more right answers"


def _exposures_missing(inputs: TriggerInputs, avoidable: float, cost: float, p_next: float) -> str:
    """Avoidable loss grows with the exposures, the cost of a retrain does not."""
    if not avoidable and p_next:
        return "wait one more window: too few rows could judge a candidate yet"
    if not avoidable:
        return "labels of a kind that a refit repairs without breaking others"
    return f"about {math.ceil(inputs.exposures * (cost / avoidable - 1))} more exposures at the present rates"


def _wait(reason: str, to_yes: str, numbers: dict[str, float | None]) -> TriggerVerdict:
    return TriggerVerdict(train=False, reason=reason, to_yes=to_yes, numbers=numbers)
