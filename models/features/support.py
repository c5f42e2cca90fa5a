"""How much evidence there is, from how many, and whether it agrees with itself."""

from collections import Counter

from models.features.contradictions import contradiction
from models.features.material import Feature, Material, share
from models.steps import time_of

UNKNOWN = "unknown"
DAY_US = 86_400_000_000


def n_eff(material: Material) -> float | None:
    """Effective number of failures: the sum over sources of min(failures, `cap_per_source`); from 0.

    All failures of an unknown source count as one source's. Example: 9 failures of one user and 2 of another: 5 + 2 = 7.
    """
    counts = Counter(case.failure.source for case in material.cases)
    return float(sum(min(count, material.policy.cap_per_source) for count in counts.values()))


def sources(material: Material) -> float | None:
    """Distinct known sources; 1 where all are unknown, since somebody said it; from 0.

    Example: alice, bob and two unknown: 2.
    """
    known = {case.failure.source for case in material.cases} - {UNKNOWN}
    return float(len(known) or min(1, len(material.cases)))


def authorities(material: Material) -> float | None:
    """Distinct sources that are an authority; from 0. Example: a logged-in reviewer and ten users: 1."""
    return float(len({case.failure.source for case in material.cases if case.failure.authority}))


def days(material: Material) -> float | None:
    """Distinct days, in UTC, on which the failing traces happened; from 1. None where no trace has a time.

    Example: Monday 23:00 and Tuesday 01:00: 2.
    """
    times = [time for case in material.cases if (time := time_of(case.episode)) is not None]
    return float(len({time // DAY_US for time in times})) if times else None


def answered(material: Material) -> float | None:
    """Share of the cases with a correction that says what would have been right; 0 to 1.

    None for a cluster without cases. Example: 3 of 4 users wrote the right answer, one only a thumb: 0.75.
    """
    return share(bool(items) for items in material.corrections)


def attempts(material: Material) -> float | None:
    """Earlier corrections of this cluster, over all targets, that failed to hold; from 0. Example: a rule, then a retrain: 2."""
    return float(sum(material.deployment.attempts.values()))


FEATURES: dict[str, Feature] = {
    "n_eff": n_eff,
    "sources": sources,
    "authorities": authorities,
    "days": days,
    "answered": answered,
    "contradiction": contradiction,
    "attempts": attempts,
}
