"""Sparse text features: TF-IDF of words, of runs of characters, or of both, each of length 1.

scikit-learn's vectorisers learn the terms and their weights. To predict for a few texts, the same features are made here
without the checks that scikit-learn repeats at each call: for one short text these take longer than the features.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import FeatureUnion

_WORDS = r"(?u)\b\w+\b"
FEW = 16
"""Above so many texts at once scikit-learn's own way is the faster one."""


def _words(many: bool) -> TfidfVectorizer:
    fewest = 2 if many else 1
    return TfidfVectorizer(ngram_range=(1, 2), token_pattern=_WORDS, sublinear_tf=True, min_df=fewest, dtype=np.float32)


def _characters(many: bool) -> TfidfVectorizer:
    lengths, fewest = ((2, 4), 2) if many else ((3, 5), 1)
    return TfidfVectorizer(analyzer="char_wb", ngram_range=lengths, sublinear_tf=True, min_df=fewest, dtype=np.float32)


def _both(many: bool) -> FeatureUnion:
    weights = {"word": 0.5**0.5, "char": 0.5**0.5}
    return FeatureUnion([("word", _words(many)), ("char", _characters(many))], transformer_weights=weights)


REPRESENTATIONS: dict[str, Callable[[bool], Any]] = {"word": _words, "char": _characters, "word_char": _both}
"""By name, from whether there are many rows: then a term that stands in one of them alone is noise."""


class TextFeatures:
    """What a fitted vectoriser of `REPRESENTATIONS` makes of texts.

    >>> vectoriser = REPRESENTATIONS["word_char"](False).fit(["where is my order", "i want a refund"])
    >>> own, theirs = TextFeatures(vectoriser).of(["my refund!"]), vectoriser.transform(["my refund!"])
    >>> float(abs(own - theirs).max()) < 1e-6
    True
    """

    def __init__(self, vectoriser: Any) -> None:
        self._vectoriser = vectoriser
        self._parts: list[tuple[Callable[[str], Sequence[str]], dict[str, int], list[float], int, float]] = []
        self._columns = 0
        weights = getattr(vectoriser, "transformer_weights", None) or {}
        for name, part in named_parts(vectoriser):
            idf, weight = [float(each) for each in part.idf_], float(weights.get(name, 1.0))
            self._parts.append((part.build_analyzer(), part.vocabulary_, idf, self._columns, weight))
            self._columns += len(idf)

    def of(self, texts: Sequence[str]) -> Any:
        """The features of `texts`, a CSR matrix of float32, shape (n, d)."""
        if len(texts) > FEW:
            return sp.csr_matrix(self._vectoriser.transform(texts))
        columns: list[int] = []
        values: list[float] = []
        ends = [0]
        for text in texts:
            for analyse, vocabulary, idf, start, weight in self._parts:
                counts = Counter(vocabulary[term] for term in analyse(text) if term in vocabulary)
                found = [(1.0 + math.log(count)) * idf[column] for column, count in counts.items()]
                length = math.sqrt(sum(value * value for value in found)) or 1.0
                columns += [start + column for column in counts]
                values += [value / length * weight for value in found]
            ends.append(len(columns))
        arrays = np.array(values, np.float32), np.array(columns, np.int32), np.array(ends, np.int32)
        return sp.csr_matrix(arrays, shape=(len(texts), self._columns))


def named_parts(vectoriser: Any) -> list[tuple[str, Any]]:
    """The TF-IDF vectorisers of a representation, by name."""
    found: list[tuple[str, Any]] = getattr(vectoriser, "transformer_list", [("", vectoriser)])
    return found


def without_vocabularies(vectoriser: Any) -> tuple[Any, list[str]]:
    """A copy without its terms, and the terms of each part in order of their columns, one a line.

    A model file would hold a node for every term otherwise; no term has a line break in it.
    """
    bare = deepcopy(vectoriser)
    terms = []
    for _, part in named_parts(bare):
        vars(part).pop("_stop_words_id", None)  # a memory address, which would make each saving another file
        terms.append("\n".join(sorted(part.vocabulary_, key=part.vocabulary_.get)))
        del part.vocabulary_
    return bare, terms


def with_vocabularies(vectoriser: Any, terms: list[str]) -> Any:
    """The vectoriser that gave both to `without_vocabularies`, changed in place."""
    for (_, part), lines in zip(named_parts(vectoriser), terms, strict=True):
        part.vocabulary_ = {term: column for column, term in enumerate(lines.split("\n"))}
    return vectoriser
