"""Does any source, or group of sources, steer the model? A refit without it may change hardly an answer to the canaries."""

from collections import Counter
from collections.abc import Callable, Sequence

from models.collusion import Group
from models.dataset import text_of
from models.fitting import BASE, Model
from store.records.production import Record
from store.records.weights import DatasetRow

CANARIES = 500
"""Base inputs asked of both models at the most."""
SOURCES = 5
"""Sources left out in turn, those with the most rows."""
FEWEST_ROWS = 3
"""A source with fewer rows is not left out."""
GROUPS = 5
"""Groups left out in turn, those with the most rows."""


class Influence(Record):
    """What one source, or a group of them, changes."""

    source: str
    rows: int
    changed: int
    """Canaries that the model without the source answers otherwise."""
    canaries: int

    @property
    def share(self) -> float:
        return self.changed / self.canaries if self.canaries else 1.0


def influences(
    model: Model,
    refit: Callable[[Sequence[DatasetRow]], Model],
    base: Sequence[DatasetRow],
    new: Sequence[DatasetRow],
    groups: Sequence[Group] = (),
) -> tuple[tuple[Influence, ...], int]:
    """What each of the largest sources of the `new` rows changes in `model`, and the estimator fits that took.

    `refit` makes such a model of other new rows, `groups` are sources that say the same.
    Authorities and the base set answer for themselves and are not left out.
    """
    sizes = Counter(row.source for row in new if not row.authority and row.source != BASE)
    suspects: list[tuple[str, tuple[str, ...]]] = [
        (source, (source,)) for source, rows in sizes.most_common(SOURCES) if rows >= FEWEST_ROWS
    ]
    suspects += [(group.name, group.sources) for group in [each for each in groups if len(each.sources) > 1][:GROUPS]]
    texts = list(dict.fromkeys(text_of(row) for row in base if row.source == BASE))[:CANARIES]
    before = [prediction.answer for prediction in model.predict(texts)] if suspects else []
    found, fits = [], 0
    for name, sources in suspects:
        without = refit([row for row in new if row.source not in sources])
        fits += without.estimator_fits
        after = [prediction.answer for prediction in without.predict(texts)]
        changed = sum(a != b for a, b in zip(before, after, strict=True))
        rows = sum(sizes[source] for source in sources)
        found.append(Influence(source=name, rows=rows, changed=changed, canaries=len(texts)))
    return tuple(found), fits
