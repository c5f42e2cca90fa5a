"""Exact tests for paired counts and rates, and their versions that stay valid when looked at repeatedly.

Everywhere `c` counts pairs that are newly right and `b` pairs that are newly wrong. No data and no thresholds here:
what a stage of the gate or a hold demands stands in `models.gate_stages` and `models.hold`.
"""

import math

from scipy import special, stats


def binomial_e_value(k: int, n: int, p0: float) -> float:
    """Evidence in `k` of `n` against "the rate is at most `p0`": at most 1 in expectation while that is true.

    `E = 1/(1-p0) * integral from p0 to 1 of (p/p0)^k ((1-p)/(1-p0))^(n-k) dp`, the likelihood ratio averaged over
    a uniform prior on the rates above `p0`. By Ville's inequality it ever reaches 20 with probability at most .05,
    however often it is looked at. `p0` in (0, 1); infinite where it exceeds the largest float.
    """
    log_tail = float(stats.beta.logsf(p0, k + 1, n - k + 1))
    log_e = (
        log_tail
        + float(special.betaln(k + 1, n - k + 1))
        - math.log1p(-p0)
        - k * math.log(p0)
        - (n - k) * math.log1p(-p0)
    )
    return math.exp(log_e) if log_e < 709 else math.inf


NEVER = 0.96
"""Share of the bet in `below_e_value` that nothing recurs at all."""


def below_e_value(k: int, n: int, p0: float) -> float:
    """Evidence in `k` of `n` for "the rate is below `p0`": at most 1 in expectation while it is not.

    A mixture of likelihood ratios: 0.96 on the rate 0, the rest uniform on the rates below `p0`,
    `1/p0 * integral from 0 to p0 of (p/p0)^k ((1-p)/(1-p0))^(n-k) dp`. By Ville's inequality it ever reaches 10 with
    probability at most .10 where the rate is `p0` or more, however often it is looked at. `p0` in (0, 1).

    >>> round(below_e_value(0, 34, 0.2 / 3), 1), round(below_e_value(1, 34, 0.2 / 3), 2)
    (10.2, 0.05)
    """
    scale = k * math.log(p0) + (n - k) * math.log1p(-p0)
    inner = (
        float(stats.beta.logcdf(p0, k + 1, n - k + 1)) + float(special.betaln(k + 1, n - k + 1)) - math.log(p0) - scale
    )
    spread = math.exp(inner) if inner < 709 else math.inf
    never = math.exp(min(-n * math.log1p(-p0), 709.0)) if k == 0 else 0.0
    return NEVER * never + (1 - NEVER) * spread


def e_value(c: int, b: int) -> float:
    """`2 * 2^(b+c) * B(c+1, b+1) * (1 - I_half(c+1, b+1))`: evidence that more pairs get better than worse.

    >>> [e_value(7, 0) >= 20, e_value(6, 0) >= 20, e_value(0, 0)]
    [True, False, 1.0]
    """
    return round(binomial_e_value(c, c + b, 0.5), 12)


def mcnemar_one_sided(c: int, b: int) -> float:
    """The exact probability of `c` or more newly right among `c + b` discordant pairs by chance; 1 without pairs.

    McNemar's exact test: `P(X >= c)` with `X ~ Binomial(c + b, 1/2)`.

    >>> round(mcnemar_one_sided(5, 0), 5)
    0.03125
    """
    return float(stats.binom.sf(c - 1, c + b, 0.5))


def clopper_pearson_upper(k: int, n: int, confidence: float) -> float:
    """One-sided exact upper bound of a rate seen as `k` of `n`: the `confidence` quantile of Beta(k+1, n-k).

    1 without data, since nothing was measured.

    >>> round(clopper_pearson_upper(0, 299, 0.95), 5)
    0.00997
    """
    if k >= n:
        return 1.0
    return float(stats.beta.ppf(confidence, k + 1, n - k))


def most_below(rate: float, n: int, confidence: float) -> int:
    """The most of `n` that can be seen while the upper bound of the rate stays at or below `rate`; -1: not even none.

    >>> [most_below(0.01, n, 0.95) for n in (298, 299, 473, 1000)]
    [-1, 0, 1, 4]
    """
    k = 0
    while clopper_pearson_upper(k, n, confidence) <= rate:
        k += 1
    return k - 1


def clopper_pearson_lower(k: int, n: int, confidence: float) -> float:
    """One-sided exact lower bound of a rate seen as `k` of `n`: the `1-confidence` quantile of Beta(k, n-k+1).

    0 without data.
    """
    if k <= 0 or n <= 0:
        return 0.0
    return float(stats.beta.ppf(1 - confidence, k, n - k + 1))


def wilson(k: int, n: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's score interval of a rate: `(p + z^2/2n -+ z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n)`.

    (0, 1) without data. Wilson, J. Am. Stat. Assoc. 22 (1927).
    """
    if n <= 0:
        return 0.0, 1.0
    p = k / n
    centre = p + z * z / (2 * n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)


def noninferiority_bound(b: int, c: int, n: int) -> float:
    """Upper 95 % bound of the accuracy lost over `n` pairs: `(b-c)/n + 1.645*sqrt(b+c-(b-c)^2/n)/n`.

    A normal approximation; below ten discordant pairs use `exact_loss_bound`. Infinite without pairs.
    """
    if n <= 0:
        return math.inf
    return (b - c) / n + 1.645 * math.sqrt(b + c - (b - c) ** 2 / n) / n


def exact_loss_bound(b: int, c: int, n: int) -> float:
    """Upper 95 % bound of the accuracy lost over `n` pairs where few are discordant.

    The loss is `d * (2*t - 1)`, with `d` the share of discordant pairs and `t` the share of them that got worse;
    each gets a Clopper-Pearson bound at 97.5 % (Bonferroni). Where even the bound of `t` is below one half, the loss
    is bounded by the lower bound of `d` instead. Infinite without pairs.
    """
    if n <= 0:
        return math.inf
    worse = 2 * clopper_pearson_upper(b, b + c, 0.975) - 1
    bound = clopper_pearson_upper if worse > 0 else clopper_pearson_lower
    return bound(b + c, n, 0.975) * worse


def spent_alpha(alpha: float, look: int) -> float:
    """The error that the `look`-th candidate judged on the same rows may spend: `alpha * 6 / (pi^2 k^2)`.

    The first look at fresh rows has all of `alpha`.

    >>> round(spent_alpha(0.05, 1), 4), round(spent_alpha(0.05, 2), 4)
    (0.05, 0.0076)
    """
    if look <= 1:
        return alpha
    return alpha * 6 / (math.pi**2 * look**2)


def wins_needed(b: int, alpha: float) -> int:
    """The fewest newly right pairs that reach `mcnemar_one_sided <= alpha` against `b` newly wrong ones.

    >>> [wins_needed(b, 0.05) for b in (0, 1, 2)]
    [5, 7, 9]
    """
    c = b + 1
    while mcnemar_one_sided(c, b) > alpha:
        c += 1
    return c
