"""How alike texts are, in any language and script: cosine over character n-grams, without a model."""

from collections.abc import Sequence
from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import HashingVectorizer

_READ_LIMIT = 2_000
"""Characters of a text that are compared."""


@cache
def _vectoriser() -> HashingVectorizer:
    return HashingVectorizer(analyzer="char_wb", ngram_range=(3, 4), n_features=2**18, alternate_sign=False)


@lru_cache(maxsize=16)
def _vectors(texts: tuple[str, ...]) -> csr_matrix:
    """Remembered, since all clusters of a turn are compared with the same satisfied traces."""
    found: csr_matrix = _vectoriser().transform([text[:_READ_LIMIT] for text in texts])
    return found


def cosines(texts: Sequence[str], others: Sequence[str]) -> NDArray[np.float64]:
    """Cosine of every text with every other, 0 to 1, shape `(len(texts), len(others))`; an empty text is like nothing."""
    if not texts or not others:
        return np.zeros((len(texts), len(others)))
    left, right = _vectors(tuple(texts)), _vectors(tuple(others))
    found: NDArray[np.float64] = np.clip((left @ right.T).toarray(), 0.0, 1.0)
    return found
