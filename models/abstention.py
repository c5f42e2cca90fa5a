"""When may a decision go without a person? A threshold with a certificate, or the reason why there is none."""

import math
from collections.abc import Iterator, Sequence

from scipy.stats import beta

from store.records import Record


class Certificate(Record):
    """A threshold above which at most `risk` of the decisions are wrong, with probability `confidence`."""

    threshold: float
    """Decisions of at least this score may go without a person."""
    clusters: int
    """Calibration clusters at or above it."""
    wrong: int
    """Those of them whose fix did not hold."""
    bound: float
    """Clopper-Pearson upper bound of the share of wrong ones, at `confidence`."""
    coverage: float
    """Share of all calibration clusters at or above the threshold."""
    risk: float
    confidence: float

    @property
    def statement(self) -> str:
        """What is certified, and under which condition."""
        return (
            f"with probability at least {self.confidence:.0%} over the calibration draw, at most {self.risk:.0%} of"
            " auto-routed clusters are in a place where the fix would not hold, while clusters stay exchangeable"
            f" ({self.wrong} of {self.clusters} calibration clusters wrong, bound {self.bound:.1%})"
        )


class NotCertified(Record):
    """No threshold is certified: everything goes to a person."""

    clusters: int
    """Calibration clusters with a score."""
    wrong: int
    """Wrong ones among those at or above the strictest threshold tested; 0 where none was."""
    bound: float
    """The bound reached there; 1.0 where none was tested."""
    needed: int
    """More calibration clusters until the first test could pass, if no further one is wrong."""
    risk: float
    confidence: float

    @property
    def statement(self) -> str:
        """Why there is no certificate."""
        if self.bound == 1.0 and self.wrong == 0:
            return (
                f"not certified: {self.clusters} calibration clusters, {self.needed} more are needed for the first test"
            )
        return (
            f"not certified: {self.wrong} wrong among the surest calibration clusters, so that up to {self.bound:.1%}"
            f" may be wrong and {self.risk:.0%} is allowed; about {self.needed} more clusters without a wrong one are needed"
        )


def upper_bound(wrong: int, total: int, *, confidence: float) -> float:
    """Clopper-Pearson one-sided upper bound of a share, 0 to 1 (Clopper & Pearson 1934); 1.0 where nothing was seen.

    >>> round(upper_bound(0, 22, confidence=0.9), 4)
    0.0994
    """
    if wrong >= total:
        return 1.0
    return float(beta.ppf(confidence, wrong + 1, total - wrong))


def minimum_for(risk: float, confidence: float) -> int:
    """Calibration clusters, none of them wrong, that a certificate needs at least.

    >>> minimum_for(0.10, 0.90), minimum_for(0.05, 0.90)
    (22, 45)
    """
    return math.ceil(math.log(1 - confidence) / math.log(1 - risk))


def threshold(
    scores: Sequence[float], held: Sequence[bool], *, risk: float, confidence: float, minimum: int
) -> Certificate | NotCertified:
    """The loosest threshold certified by fixed-sequence testing from strict to loose.

    `scores` and `held` are aligned, one a calibration cluster: the score of the decision and whether its fix held.
    Testing starts at the strictest threshold that leaves `minimum` clusters and stops at the first whose bound exceeds
    `risk`: each is tested only after all stricter ones passed, so that the level needs no correction (Bauer 1991).
    Equal scores stand or fall together. A score that is not a number is never above a threshold.

    Raises ValueError where the lengths differ, or where risk or confidence is not between 0 and 1.
    """
    if not (0 < risk < 1 and 0 < confidence < 1):
        raise ValueError(f"risk {risk} and confidence {confidence}: both must be above 0 and below 1")
    if len(scores) != len(held):
        raise ValueError(f"{len(scores)} scores and {len(held)} outcomes: give one outcome a score")
    ranked = sorted(((s, h) for s, h in zip(scores, held, strict=True) if not math.isnan(s)), key=lambda pair: -pair[0])
    best: Certificate | None = None
    for score, count, wrong in _steps(ranked):
        if count < minimum:
            continue
        bound = upper_bound(wrong, count, confidence=confidence)
        if bound > risk:
            return best or _refused(len(ranked), wrong, bound, risk=risk, confidence=confidence, seen=count)
        best = Certificate(
            threshold=score,
            clusters=count,
            wrong=wrong,
            bound=bound,
            coverage=count / len(scores),
            risk=risk,
            confidence=confidence,
        )
    if best is not None:
        return best
    needed = max(minimum, minimum_for(risk, confidence)) - len(ranked)
    return NotCertified(clusters=len(ranked), wrong=0, bound=1.0, needed=needed, risk=risk, confidence=confidence)


def _steps(ranked: Sequence[tuple[float, bool]]) -> Iterator[tuple[float, int, int]]:
    """Each distinct score from high to low, with the clusters at or above it and the wrong ones among them."""
    wrong = 0
    for place, (score, held) in enumerate(ranked, start=1):
        wrong += not held
        if place == len(ranked) or ranked[place][0] != score:
            yield score, place, wrong


def _refused(clusters: int, wrong: int, bound: float, *, risk: float, confidence: float, seen: int) -> NotCertified:
    total = seen
    while upper_bound(wrong, total, confidence=confidence) > risk:
        total += 1
    needed = total - seen
    return NotCertified(clusters=clusters, wrong=wrong, bound=bound, needed=needed, risk=risk, confidence=confidence)
