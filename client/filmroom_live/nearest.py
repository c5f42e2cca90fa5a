"""Which of some texts are most like another, in any language and script: cosine over runs of three characters."""

import math
from collections import Counter
from collections.abc import Sequence

READ = 400
"""Characters of a text that are compared."""


class Nearest:
    """Texts, indexed once, so that a question costs what it shares with them."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._lengths: list[float] = []
        self._places: dict[str, list[tuple[int, float]]] = {}
        seen = [_grams(text) for text in texts]
        rare = Counter(gram for grams in seen for gram in grams)
        self._weight = {gram: math.log(1 + len(texts) / count) for gram, count in rare.items()}
        for place, grams in enumerate(seen):
            weights = {gram: count * self._weight[gram] for gram, count in grams.items()}
            self._lengths.append(math.sqrt(sum(each * each for each in weights.values())))
            for gram, weight in weights.items():
                self._places.setdefault(gram, []).append((place, weight))

    def most_like(self, text: str, most: int) -> list[tuple[int, float]]:
        """Places of the texts that share something with `text` and their cosine, nearest first, at most `most`.

        >>> [place for place, _ in Nearest(["where is my parcel", "cancel my order"]).most_like("Where's the parcel?", 1)]
        [0]
        """
        found: dict[int, float] = {}
        length = 0.0
        for gram, count in _grams(text).items():
            weight = count * self._weight.get(gram, math.log(1 + len(self._lengths)))
            length += weight * weight
            for place, other in self._places.get(gram, ()):
                found[place] = found.get(place, 0.0) + weight * other
        norm = math.sqrt(length)
        ranked = sorted(
            ((score / (norm * self._lengths[place]), -place) for place, score in found.items()), reverse=True
        )
        return [(-place, score) for score, place in ranked[:most]]


def _grams(text: str) -> Counter[str]:
    words = "".join(each if each.isalnum() else " " for each in text[:READ].casefold()).split()
    return Counter(gram for word in words for gram in _runs(f" {word} "))


def _runs(word: str) -> list[str]:
    return [word[at : at + 3] for at in range(max(1, len(word) - 2))]
