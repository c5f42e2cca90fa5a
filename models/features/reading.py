"""Evidence that a small model misread what was asked, although nobody corrected its step: the answer after it was wrong."""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from models.corrections import differing
from models.features.material import Feature, Material, share
from models.similarity import cosines
from models.steps import input_text, label_in, step_name, text_of
from store.records import Episode, Span

NEAR = 0.3
"""Cosine from which inputs are compared."""
NEIGHBOURS = 5
FEWEST = 20
"""Satisfied predictions a quantile is taken from."""
LOW = 0.1
"""Quantile of the satisfied ones' probabilities below which a prediction is unsure."""
MOST = 300
"""Inputs compared at the most, the first by trace id."""


def misread(material: Material) -> float | None:
    """Share of the cases whose prediction is likelier wrong than right by what was said of the same answer elsewhere; 0 to 1.

    Likelier wrong: of the five most similar inputs (cosine of at least 0.3) among the failures whose label was corrected
    and the satisfied traces, with the same model's same answer, more than half are corrected ones. Cases whose own label was
    corrected are left out: of them it is known. None where no such answer was
    corrected. Example: "take it back" was answered `status` and merely disliked; elsewhere it was corrected to
    `return`: 1.
    """
    corrected: dict[tuple[str, str], list[str]] = {}
    for episode in material.batch:
        for item in differing(episode):
            if item.is_label and item.span is not None:
                corrected.setdefault(_key(item.span), []).append(_asked(episode, item.span))
    if not corrected:
        return None
    fine: dict[tuple[str, str], list[str]] = {}
    for episode in material.satisfied:
        for span in _predictions(episode):
            fine.setdefault(_key(span), []).append(_asked(episode, span))
    pairs = zip(material.cases, material.corrections, strict=True)
    return share(
        _is_misread(case.episode, corrected, fine) for case, items in pairs if not any(i.is_label for i in items)
    )


def unsure(material: Material) -> float | None:
    """Share of the cases with a prediction less probable than nine tenths of the satisfied traces'; 0 to 1.

    None where no case has a prediction with a probability, or fewer than 20 satisfied traces have one. Example: the
    failures' intents were given 0.3, others 0.9: 1.
    """
    known = [s.confidence for each in material.satisfied for s in _predictions(each) if s.confidence is not None]
    if len(known) < FEWEST:
        return None
    low = float(np.quantile(known, LOW))
    given = [[s.confidence for s in _predictions(case.episode) if s.confidence is not None] for case in material.cases]
    return share(min(values) < low if values else None for values in given)


def novelty(material: Material) -> float | None:
    """Median quantile of the cases' distance to the nearest satisfied input, among those of the satisfied ones; 0 to 1.

    What the model was answered well on stands for its training data, which a log does not hold. None where no case
    has a prediction, or below 20 satisfied ones. Example: new words nobody used before: 1.
    """
    fine = [text for each in _first(material.satisfied) for span in _predictions(each) if (text := _asked(each, span))]
    mine = [
        text
        for case in material.cases[:MOST]
        for span in _predictions(case.episode)
        if (text := _asked(case.episode, span))
    ]
    if len(fine) < FEWEST or not mine:
        return None
    usual = _distances(tuple(fine))
    far = 1 - cosines(mine, fine).max(axis=1)
    return float(np.median(np.searchsorted(usual, far, side="left") / len(usual)))


@lru_cache(maxsize=4)
def _distances(texts: tuple[str, ...]) -> NDArray[np.float64]:
    """Distance of each text to the nearest other, sorted; remembered, since all clusters of a turn ask for the same."""
    among = cosines(texts, texts)
    np.fill_diagonal(among, 0.0)
    return np.sort(1 - among.max(axis=1))


def _is_misread(
    episode: Episode, corrected: dict[tuple[str, str], list[str]], fine: dict[tuple[str, str], list[str]]
) -> bool | None:
    for span in _predictions(episode):
        wrong, right = corrected.get(_key(span), []), fine.get(_key(span), [])
        if wrong:
            known = [*wrong[:MOST], *right[:MOST]]
            near = cosines([_asked(episode, span)], known)[0]
            nearest = [at for at in np.argsort(-near, kind="stable")[:NEIGHBOURS] if near[at] >= NEAR]
            return 2 * sum(int(at) < len(wrong[:MOST]) for at in nearest) > len(nearest)
    return False if any(True for _ in _predictions(episode)) else None


def _first(episodes: tuple[Episode, ...]) -> list[Episode]:
    return sorted(episodes, key=lambda each: each.trace.id)[:MOST]


def _predictions(episode: Episode) -> Iterator[Span]:
    return (span for span in episode.spans if span.kind == "predict")


def _key(span: Span) -> tuple[str, str]:
    return step_name(span), label_in(span.output)


def _asked(episode: Episode, span: Span) -> str:
    return text_of(span.input) or input_text(episode)


FEATURES: dict[str, Feature] = {"misread": misread, "unsure": unsure, "novelty": novelty}
