"""When have the labels of a window come in? Labels arrive late, and some have not arrived yet."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence

MATURE = 0.9
"""Share of the labels that are in when a window is mature."""
FEWEST = 10
"""Labels with a time from which their delays are estimated."""


def arrived_share(delays: Sequence[float], waiting: Sequence[float]) -> list[tuple[float, float]]:
    """Kaplan and Meier's estimate: each delay at which a label came, with the share of labels that have come by then.

    `delays`: of labels that came, from trace to label. `waiting`: ages of traces whose label has not come; they say only
    that it takes longer. Both from 0, in one unit. Kaplan & Meier, J. Am. Stat. Assoc. 53 (1958).

    >>> [(time, round(share, 2)) for time, share in arrived_share([1, 2], [3])]
    [(1, 0.33), (2, 0.67)]
    """
    came, open_, at = sorted(delays), sorted(waiting), Counter(delays)
    surviving = 1.0
    found = []
    for time in sorted(at):
        at_risk = len(came) - bisect_left(came, time) + len(open_) - bisect_left(open_, time)
        surviving *= 1 - at[time] / at_risk
        found.append((time, 1 - surviving))
    return found


def matures_after(delays: Sequence[float], waiting: Sequence[float], *, share: float = MATURE) -> float | None:
    """The delay by which `share` of the labels that ever come are in; None: not so many have come yet to tell.

    Traces that are older than every delay seen are taken to get no label at all: silence is not lateness.

    >>> matures_after([1, 1, 2, 3, 3, 3, 4, 5, 6, 9], []), matures_after([], [3.0])
    (6, None)
    """
    longest = max(delays, default=0.0)
    late = [age for age in waiting if age <= longest]
    return next((time for time, arrived in arrived_share(delays, late) if arrived >= share - 1e-9), None)


def share_in(ages: Sequence[float], delays: Sequence[float], waiting: Sequence[float]) -> float | None:
    """Expected share of the labels that these traces ever get which are in by now; 0 to 1.

    `ages`: of the traces, in the unit of `delays` and `waiting`, which are as in `arrived_share` and may be of other traces.
    None without traces, or with fewer than ten labels to learn the delays from.

    >>> share_in([1.0, 5.0], [1, 1, 1, 1, 1, 5, 5, 5, 5, 5], []), share_in([9.0], [1.0], [])
    (0.75, None)
    """
    if not ages or len(delays) < FEWEST:
        return None
    longest = max(delays)
    curve = arrived_share(delays, [age for age in waiting if age <= longest])
    times, shares = [time for time, _ in curve], [0.0, *(share for _, share in curve)]
    return sum(shares[bisect_right(times, age)] for age in ages) / (len(ages) * shares[-1])
