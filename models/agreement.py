"""How far reviewers agree beyond chance: Cohen's kappa of two, Fleiss' kappa of several, each with an interval.

An opinion is a category, for example `approve:context` or `reject`. Not measured is None, never 0.
"""

import math
from collections import Counter
from collections.abc import Sequence

from store.records import Record

Z = 1.959963984540054
"""Of a two-sided 95 % interval."""


class Agreement(Record):
    """A kappa over items that more than one reviewer judged."""

    items: int
    """Items with at least two opinions."""
    observed: float | None
    """Share of agreeing pairs, 0 to 1; None: no item has two opinions."""
    kappa: float | None
    """1 complete, 0 what chance gives; None: everybody always said the same one thing, or nothing is measured."""
    low: float | None
    """Lower end of the 95 % interval; None: too few items for one."""
    high: float | None


def cohen(pairs: Sequence[tuple[str, str]]) -> Agreement:
    """Cohen's kappa of two reviewers, one pair an item; the interval by the large-sample variance of Fleiss, Cohen and
    Everitt, "Large sample standard errors of kappa and weighted kappa", Psychological Bulletin 72 (1969), equation 13.

    >>> cohen([("a", "a")] * 20 + [("a", "b")] * 5 + [("b", "a")] * 10 + [("b", "b")] * 15).kappa
    0.4
    """
    n = len(pairs)
    if not n:
        return Agreement(items=0, observed=None, kappa=None, low=None, high=None)
    cell = {pair: count / n for pair, count in Counter(pairs).items()}
    first = {name: count / n for name, count in Counter(a for a, _ in pairs).items()}
    second = {name: count / n for name, count in Counter(b for _, b in pairs).items()}
    observed = math.fsum(share for (a, b), share in cell.items() if a == b)
    expected = math.fsum(first[name] * second.get(name, 0.0) for name in first)
    if expected >= 1:
        return Agreement(items=n, observed=observed, kappa=None, low=None, high=None)
    kappa = (observed - expected) / (1 - expected)
    spread = math.sqrt(max(0.0, _variance(cell, first, second, observed, expected)) / n)
    low, high = _interval(kappa, spread, n)
    return Agreement(items=n, observed=observed, kappa=round(kappa, 12), low=low, high=high)


def fleiss(opinions: Sequence[Sequence[str]]) -> Agreement:
    """Fleiss' kappa: one sequence of categories an item, each reviewer's; items with fewer than two opinions are left out.

    Fleiss, "Measuring nominal scale agreement among many raters", Psychological Bulletin 76 (1971); for a number of
    reviewers that differs from item to item as in Gwet, Handbook of Inter-Rater Reliability (2014), chapter 2. The
    interval is the jackknife's over items.

    >>> fleiss([["a", "a", "a"], ["b", "b", "b"], ["a"]]).kappa
    1.0
    """
    items = [Counter(each) for each in opinions if len(each) >= 2]
    if not items:
        return Agreement(items=0, observed=None, kappa=None, low=None, high=None)
    observed, kappa = _fleiss(items)
    if kappa is None:
        return Agreement(items=len(items), observed=observed, kappa=None, low=None, high=None)
    low, high = _interval(kappa, _jackknife(items, kappa), len(items))
    return Agreement(items=len(items), observed=observed, kappa=round(kappa, 12), low=low, high=high)


def _variance(
    cell: dict[tuple[str, str], float], first: dict[str, float], second: dict[str, float], po: float, pe: float
) -> float:
    """n times the variance of kappa."""
    same = math.fsum(
        share * ((1 - pe) - (first[a] + second[a]) * (1 - po)) ** 2 for (a, b), share in cell.items() if a == b
    )
    apart = math.fsum(share * (second.get(a, 0.0) + first.get(b, 0.0)) ** 2 for (a, b), share in cell.items() if a != b)
    return (same + (1 - po) ** 2 * apart - (po * pe - 2 * pe + po) ** 2) / (1 - pe) ** 4


def _fleiss(items: Sequence[Counter[str]]) -> tuple[float, float | None]:
    shares: dict[str, float] = {}
    agreeing = 0.0
    for each in items:
        total = each.total()
        agreeing += sum(count * (count - 1) for count in each.values()) / (total * (total - 1))
        for name, count in each.items():
            shares[name] = shares.get(name, 0.0) + count / total
    observed = agreeing / len(items)
    expected = math.fsum((share / len(items)) ** 2 for share in shares.values())
    if expected >= 1 - 1e-12:
        return observed, None
    return observed, (observed - expected) / (1 - expected)


def _jackknife(items: Sequence[Counter[str]], kappa: float) -> float:
    """Standard error from leaving each kind of item out once; items with the same opinions are left out together in the
    sum, which is the same and quick."""
    n = len(items)
    kinds = Counter(tuple(sorted(each.items())) for each in items)
    if n < 2:
        return 0.0
    squares = 0.0
    for kind, count in kinds.items():
        rest = list(items)
        rest.remove(Counter(dict(kind)))
        _, without = _fleiss(rest)
        squares += count * ((kappa if without is None else without) - kappa) ** 2
    return math.sqrt((n - 1) / n * squares)


def _interval(kappa: float, spread: float, n: int) -> tuple[float | None, float | None]:
    if n < 2:
        return None, None
    return max(-1.0, kappa - Z * spread), min(1.0, kappa + Z * spread)
