"""A challenger anchored at the champion: where the two disagree, the champion's answer stays unless the challenger leads clearly.

Two models of nearly the same rows disagree on a few inputs in a hundred, most of them close calls for both; it is these that
turn right answers into wrong ones (Yan et al., Positive-Congruent Training, CVPR 2021). What a challenger has truly learnt, a new
class first of all, it says with a lead. How large a lead is asked for is chosen out of fold: `models.anchored_out_of_fold`.
"""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from models.estimator_text_model import EstimatorTextModel
from models.exceptions import ExceptionModel
from models.predictions import Considered, Prediction
from models.reject import Floats
from models.text_model import TextModel

DEEPEST = 8
"""Models one behind another at the most; with one more the oldest goes."""


class Leads(NamedTuple):
    """By how much, in log-odds, a challenger must prefer its own answer."""

    among_known: float
    """To turn one of the champion's classes into another, or into a rejection, or a rejection into one of them."""
    to_new: float
    """To give a class that the champion does not have: of these the champion is never right."""


class AnchoredModel:
    """A champion and a challenger that overrules it where its lead exceeds `leads`; predicts like a `TextModel`."""

    def __init__(self, champion: "Anchor", challenger: TextModel, leads: Leads) -> None:
        self.champion, self.challenger, self.leads = champion, challenger, leads
        self._known = labels_of(champion)
        self.out_of_scope = challenger.out_of_scope
        self.estimator_fits = challenger.estimator_fits

    def predict(self, texts: Sequence[str]) -> tuple[Prediction, ...]:
        """One prediction a text, in order; an answer that stays has the confidence that the challenger gives it."""
        return anchored(self.champion.predict(texts), self.challenger.considered(texts), self.leads, self._known)

    def parts(self) -> dict[str, Any]:
        """Everything needed to rebuild it: the parts of both models and two numbers."""
        kind = next(name for name, made in ANCHORS.items() if isinstance(self.champion, made))
        own = next(name for name, made in ANCHORS.items() if isinstance(self.challenger, made))
        return {
            "champion": {"kind": kind, "parts": self.champion.parts()},
            "challenger": {"kind": own, "parts": self.challenger.parts()},
            "leads": list(self.leads),
            "known": sorted(self._known),
        }

    @classmethod
    def from_parts(cls, parts: dict[str, Any]) -> Self:
        """The model that gave `parts`."""
        champion, challenger = (
            ANCHORS[parts[side]["kind"]].from_parts(parts[side]["parts"]) for side in ("champion", "challenger")
        )
        return cls(champion, challenger, Leads(*map(float, parts["leads"])))


Anchor = TextModel | ExceptionModel | AnchoredModel
"""What a challenger can be anchored at."""
ANCHORS: dict[str, Any] = {
    "text_estimator": EstimatorTextModel,
    "text": TextModel,
    "exceptions": ExceptionModel,
    "anchored": AnchoredModel,
}
"""By the name in a file; a subclass before its class."""


def anchored(
    before: Sequence[Prediction], considered: Considered, leads: Leads, known: Collection[str]
) -> tuple[Prediction, ...]:
    """The champion's predictions `before`, and the challenger's where it agrees or leads by more than asked for; `known`: the
    champion's classes."""
    own = leads_over([each.answer for each in before], considered)
    asked = [leads.to_new if is_new(each, known) else leads.among_known for each in considered.predictions]
    return tuple(
        new if new.answer == old.answer or own[i] > asked[i] else _stays(old, considered, i)
        for i, (old, new) in enumerate(zip(before, considered.predictions, strict=True))
    )


def is_new(prediction: Prediction, known: Collection[str]) -> bool:
    """Whether the answer is a class that the champion does not have."""
    return prediction.answer is not None and prediction.answer not in known


def labels_of(model: "Anchor") -> frozenset[str]:
    """Every class that the model can answer."""
    if isinstance(model, AnchoredModel):
        return labels_of(model.champion) | labels_of(model.challenger)
    if isinstance(model, ExceptionModel):
        return labels_of(model.beneath) | model.labels
    return frozenset(map(str, model.classes))


def leads_over(answers: Sequence[str | None], considered: Considered) -> Floats:
    """By how much the challenger prefers its own answers to these, in log-odds, shape (n,); 0 where they are the same.

    Where only one of the two turns the input away, it is how sure the challenger is of that.
    """
    leads = np.zeros(len(answers))
    for i, (answer, own) in enumerate(zip(answers, considered.predictions, strict=True)):
        if answer == own.answer:
            continue
        if answer is None or own.answer is None:
            leads[i] = abs(considered.inside[i])
            continue
        leads[i] = _odds(considered, i, own.answer) - _odds(considered, i, answer)
    return leads


def shortened(model: Anchor) -> Anchor:
    """The champion that one more challenger can be anchored at: without its oldest model where there are too many."""
    if not isinstance(model, AnchoredModel) or depth(model) < DEEPEST:
        return model
    return _without_oldest(model)


def depth(model: Anchor) -> int:
    """How many models answer one behind another."""
    return 1 + depth(model.champion) if isinstance(model, AnchoredModel) else 1


def _without_oldest(model: AnchoredModel) -> Anchor:
    if not isinstance(model.champion, AnchoredModel):
        return model.challenger
    return AnchoredModel(_without_oldest(model.champion), model.challenger, model.leads)


def _stays(old: Prediction, considered: Considered, i: int) -> Prediction:
    if old.rejected or old.label not in considered.columns:
        return old
    odds = considered.log_odds[i]
    confidence = 1.0 / float(np.exp(np.minimum(odds - _odds(considered, i, old.label), 700.0)).sum())
    return Prediction(label=old.label, confidence=confidence, rejected=False)


def _odds(considered: Considered, i: int, label: str) -> float:
    column = considered.columns.get(label)
    return -np.inf if column is None else float(considered.log_odds[i, column])
