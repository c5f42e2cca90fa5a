"""Which groups of complaints about the answers to one intent are of one cause.

People complain of one cause in many words; what ties their words together is that they stand beside the same correction, or
beside each other. Where anything does, it is one cause.
"""

from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from sklearn.preprocessing import normalize

from models.corrections import differing
from models.steps import input_text
from store.records import Case

CHARACTERS = 2000
"""Of one failure's text."""
TOGETHER = 0.3
"""Cosine of two centres from which their groups are one."""
NOW_AND_THEN = 0.2
"""Share of a group that uses another's words, from which the two are one."""


def content_words(text: str) -> set[str]:
    """The words of a text that say something: letters only, three and more.

    >>> sorted(content_words("The 3 parcels are at Elm Street!"))
    ['elm', 'parcels', 'street']
    """
    cleaned = "".join(each if each.isalpha() else " " for each in text.casefold())
    return {word for word in cleaned.split() if 2 < len(word) < 25 and word not in ENGLISH_STOP_WORDS}


def wanted_change(case: Case) -> tuple[frozenset[str], bool]:
    """The words the last correction of the answer adds, and whether it keeps half of the answer and more.

    Then also those it takes out, with a hyphen before them: what two users want in one place is one question.
    """
    items = [item for item in differing(case.episode, case.signals) if not item.is_label]
    if not items:
        return frozenset(), False
    served, right = content_words(items[-1].served[:CHARACTERS]), content_words(items[-1].corrected[:CHARACTERS])
    added = right - served - content_words(input_text(case.episode))
    if 2 * len(served & right) < max(1, len(served)):
        return frozenset(added), False
    return frozenset(added | {f"-{word}" for word in served - right}), True


def of_one_cause(
    x: NDArray[np.float64],
    labels: NDArray[np.int64],
    words: Sequence[Collection[str]],
    changes: Sequence[Collection[str]],
) -> NDArray[np.int64]:
    """The labels with groups of one cause made one, -1 for a group that could be of several.

    `x`: unit vectors, shape `(n, dimensions)`. One cause: near, or a word or change that at least half of one group has a
    fifth of the other has too; of changes, half and a fifth of those with a correction. A group without a change of its
    own that is near to two that are not near to each other says what may be said of anything.
    """
    names = sorted(set(labels.tolist()) - {-1})
    if len(names) < 2:
        return labels
    inside = [np.flatnonzero(labels == name).tolist() for name in names]
    said = [_most_and_some([words[at] for at in group]) for group in inside]
    changed = [_most_and_some([changes[at] for at in group if changes[at]]) for group in inside]
    centres = normalize(np.vstack([x[labels == name].mean(axis=0) for name in names]))
    near = centres @ centres.T >= TOGETHER
    for mine in range(len(names)):
        for other in range(len(names)):
            tied = said[mine][0] & said[other][1] or changed[mine][0] & changed[other][1]
            near[mine, other] |= bool(tied)
    near |= near.T
    generic = [at for at in range(len(names)) if not changed[at][0] and _joins_strangers(near, at)]
    near[generic, :] = near[:, generic] = False
    _, parts = connected_components(near, directed=False)
    found = labels.copy()
    for at, (name, part) in enumerate(zip(names, parts, strict=True)):
        found[labels == name] = -1 if at in generic else part
    return found


def _most_and_some(texts: Sequence[Collection[str]]) -> tuple[set[str], set[str]]:
    """The words that at least half of these have, and those that a fifth has."""
    counts = Counter(word for each in texts for word in each)
    most = {word for word, count in counts.items() if 2 * count >= len(texts)}
    return most, {word for word, count in counts.items() if count >= NOW_AND_THEN * len(texts)}


def _joins_strangers(near: NDArray[np.bool_], at: int) -> bool:
    beside = [other for other in np.flatnonzero(near[at]).tolist() if other != at]
    return any(not near[one, other] for one in beside for other in beside)
