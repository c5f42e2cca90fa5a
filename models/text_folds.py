"""Folds over texts that never part equal ones."""

from collections.abc import Sequence

import numpy as np
from sklearn.model_selection import KFold

from models.reject import Folds


def text_folds(texts: Sequence[str], folds: int, *, seed: int) -> Folds:
    """(train, test) positions of at most `folds` folds, the same for any order of the texts; equal texts stay together.

    A text that stands on both sides would be predicted from itself. A single text has no fold.
    """
    keys = [text.strip().lower() for text in texts]
    distinct = sorted(set(keys))
    if len(distinct) < 2:
        return []
    numbers = {key: number for number, key in enumerate(distinct)}
    group = np.array([numbers[key] for key in keys])
    split = KFold(min(folds, len(distinct)), shuffle=True, random_state=seed).split(distinct)
    found: Folds = []
    for _, test in split:
        held = np.isin(group, test)
        found.append((np.flatnonzero(~held), np.flatnonzero(held)))
    return found
