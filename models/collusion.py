"""Sources that say the same unusual thing: one label, for inputs that the base set gives one other label.

Each of many accounts may say too little to be noticed alone. Together they are: the base set's own rows tell how often inputs of
one label look like another's.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
from scipy import stats

from models.dataset import text_of
from models.taught_rows import Labels
from models.text_folds import text_folds
from models.text_model import TextModel
from store.records.production import Record
from store.records.weights import DatasetRow

FOLDS = 3
FEWEST_ROWS = 3
UNUSUAL = 0.01
"""Chance, over all pairs of labels together, of calling an honest group unusual."""


class Group(Record):
    """Sources that give `label` to inputs which the base set calls `expected`."""

    expected: str
    label: str
    sources: tuple[str, ...]
    rows: int
    chance: float
    """Of so many such rows among all that were given the label, were they as rare as in the base set."""

    @property
    def unusual(self) -> bool:
        """Whether it is rarer than chance allows, over the pairs of labels that were compared."""
        return self.chance <= UNUSUAL

    @property
    def name(self) -> str:
        """The group in a few words."""
        return f"{len(self.sources)} sources that call {self.expected} {self.label}"


def groups_of(base: Sequence[DatasetRow], given: Sequence[DatasetRow], *, seed: int) -> tuple[Group, ...]:
    """The groups of one source or more among the `given` rows, the largest first; authorities are in none.

    Rows with a label that the base set does not have are left out: it cannot say what they look like. `chance` is multiplied by
    the number of pairs compared. Without a base set of two labels there is no group.
    """
    labels: Labels = np.array([row.label for row in base], dtype=np.str_)
    known = set(labels.tolist())
    asked = [row for row in given if not row.authority and row.label in known]
    if len(known) < 2 or not asked:
        return ()
    texts = [text_of(row) for row in base]
    try:
        usual = Counter(zip(_out_of_fold(texts, labels, seed), labels.tolist(), strict=True))
        expected = _expected(texts, labels, [text_of(row) for row in asked], seed)
    except ValueError:
        return ()
    said: defaultdict[tuple[str, str], list[DatasetRow]] = defaultdict(list)
    for row, other in zip(asked, expected, strict=True):
        said[other, row.label].append(row)
    per_label, per_base = Counter(row.label for row in asked), Counter(labels.tolist())
    pairs = {pair: rows for pair, rows in said.items() if pair[0] != pair[1]}
    found = []
    for (other, label), rows in pairs.items():
        sources = tuple(sorted({row.source for row in rows}))
        rate = (usual[other, label] + 1) / (per_base[label] + 2)
        chance = float(stats.binom.sf(len(rows) - 1, per_label[label], rate)) * len(pairs)
        if len(rows) >= FEWEST_ROWS:
            found.append(Group(expected=other, label=label, sources=sources, rows=len(rows), chance=min(1.0, chance)))
    return tuple(sorted(found, key=lambda each: (-each.rows, each.expected, each.label)))


def _out_of_fold(texts: Sequence[str], labels: Labels, seed: int) -> list[str]:
    found = labels.copy()
    for train, test in text_folds(texts, FOLDS, seed=seed):
        if len(np.unique(labels[train])) > 1:
            found[test] = _expected([texts[i] for i in train], labels[train], [texts[i] for i in test], seed)
    return [str(label) for label in found]


def _expected(texts: Sequence[str], labels: Labels, asked: Sequence[str], seed: int) -> list[str]:
    model = TextModel(seed=seed).fit(texts, labels.tolist())
    return [prediction.label for prediction in model.predict(asked)]
