"""Which of some texts are most like another, in any language and script: cosine over runs of three characters."""

import math
import re
from collections import Counter
from collections.abc import Sequence

READ = 400
"""Characters of a text that are compared."""
FEW = 8
COMMON = 0.25
"""From `FEW` texts on, what stands in more than this share of them tells none from another, and is left out."""


class Nearest:
    """Texts, indexed once, so that a question costs what it shares with them."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._lengths: list[float] = []
        self._places: dict[str, list[tuple[int, float]]] = {}
        seen = [_grams(text) for text in texts]
        rare = Counter(gram for grams in seen for gram in grams)
        most = len(texts) if len(texts) < FEW else COMMON * len(texts)
        self._weight = {gram: math.log(1 + len(texts) / count) for gram, count in rare.items()}
        for place, grams in enumerate(seen):
            weights = {gram: count * self._weight[gram] for gram, count in grams.items()}
            self._lengths.append(math.sqrt(sum(each * each for each in weights.values())))
            for gram, weight in weights.items():
                if rare[gram] <= most:
                    self._places.setdefault(gram, []).append((place, weight))

    def most_like(self, text: str, most: int) -> list[tuple[int, float]]:
        """Places of the texts that share something with `text` and their cosine, nearest first, at most `most`.

        >>> [place for place, _ in Nearest(["where is my parcel", "cancel my order"]).most_like("Where's the parcel?", 1)]
        [0]
        """
        found: dict[int, float] = {}
        length = 0.0
        unknown = math.log(1 + len(self._lengths))
        weights, places, so_far = self._weight, self._places, found.get
        for gram, count in _grams(text).items():
            weight = count * weights.get(gram, unknown)
            length += weight * weight
            for place, other in places.get(gram, ()):
                found[place] = so_far(place, 0.0) + weight * other
        norm = math.sqrt(length)
        ranked = sorted(
            ((score / (norm * self._lengths[place]), -place) for place, score in found.items()), reverse=True
        )
        return [(-place, score) for score, place in ranked[:most]]


def _grams(text: str) -> Counter[str]:
    padded = [f" {word} " for word in re.findall(r"\w+", text[:READ].casefold())]
    return Counter([word[at : at + 3] for word in padded for at in range(len(word) - 2)])
