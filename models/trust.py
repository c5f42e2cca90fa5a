"""How far each source of labels can be believed: what became of it, and how often the rest of the data contradicts it."""

from collections import Counter
from collections.abc import Mapping, Sequence

from scipy import stats

from models.collusion import groups_of
from models.dataset import suspect_labels
from store.records.production import Record
from store.records.weights import DatasetRow

DOUBTFUL = 0.01
"""Chance, over all sources together, of calling an honest one doubtful."""


class SourceTrust(Record):
    """One source of labels: a principal, `unknown` where the log names none."""

    source: str
    authority: bool
    labels: int
    disputed: int
    """Labels for which a model trained on the other rows prefers another one."""
    together: int
    """Sources, itself among them, that give one label to inputs which the base set gives one other, more often than chance
    explains; 0: it is in no such group."""
    chance: float
    """Of so many disputed labels by luck, at the rate of the other sources."""
    held: int
    """Changes that rest on its failures and held."""
    failed: int
    """Changes that rest on its failures and failed to hold; what a person took back says nothing of its labels."""
    trust: float
    """Mean of Beta(1 + held, 1 + failed), in (0, 1)."""
    doubtful: bool
    """Whether a person should look at its labels before anything is learnt from them."""


def source_trust(
    rows: Sequence[DatasetRow], outcomes: Mapping[str, tuple[int, int]], *, seed: int
) -> tuple[SourceTrust, ...]:
    """All sources, doubtful ones first, then by labels; `rows` with the base set, `outcomes` as (held, failed).

    A source is doubtful where it is one of an unusual group (`models.collusion`), or its share of
    disputed labels exceeds that of the others (binomial, one-sided, Bonferroni over
    the sources). Authorities are counted and never called doubtful.
    """
    given = Counter(row.source for row in rows if row.source != "base")
    trusted = {row.source for row in rows if row.authority}
    disputed = Counter(rows[i].source for i in suspect_labels(rows, share=1.0, seed=seed))
    together = _together(rows, seed)
    found = [
        _of(source, given, disputed, trusted, outcomes.get(source, (0, 0)), together[source])
        for source in {*given, *outcomes}
    ]
    return tuple(sorted(found, key=lambda each: (not each.doubtful, -each.labels, each.source)))


def _together(rows: Sequence[DatasetRow], seed: int) -> Counter[str]:
    """Of each source in an unusual group, how many are in it."""
    base = [row for row in rows if row.source == "base"]
    found: Counter[str] = Counter()
    for group in groups_of(base, [row for row in rows if row.source != "base"], seed=seed):
        if group.unusual:
            found |= Counter({source: len(group.sources) for source in group.sources})
    return found


def _of(
    source: str,
    given: Counter[str],
    disputed: Counter[str],
    trusted: set[str],
    outcome: tuple[int, int],
    together: int,
) -> SourceTrust:
    labels, wrong = given[source], disputed[source]
    others = given.total() - labels
    rate = (disputed.total() - wrong + 1) / (others + 2)
    chance = float(stats.binom.sf(wrong - 1, labels, rate)) if wrong else 1.0
    held, failed = outcome
    return SourceTrust(
        source=source,
        authority=source in trusted,
        labels=labels,
        disputed=wrong,
        together=together,
        chance=chance,
        held=held,
        failed=failed,
        trust=(1 + held) / (2 + held + failed),
        doubtful=source not in trusted and (together > 0 or chance <= DOUBTFUL / max(1, len(given))),
    )
