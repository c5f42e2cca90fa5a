"""What a challenger anchored at the champion would answer to rows that it did not learn from, and how large its lead must be.

The leads are the least at which the anchored answers to the new rows lose no more right ones than asked for: one for classes that
the champion does not have, and one for changes among those it has, shared out so that most is repaired. A row is judged with the
leads that the rows of the other folds ask for; the model that is served has the leads of all of them.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.anchored import Anchor, AnchoredModel, Leads, anchored, is_new, labels_of, leads_over
from models.dataset import text_of
from models.fitting import ARMS, Arm, truth_of
from models.fold_fit import Asked, predictions_of
from models.out_of_fold import Answers, OutOfFold, Predictions
from models.predictions import Considered, Prediction
from models.reject import Bools, Floats
from models.text_model import TextModel


class AnchoredOutOfFold:
    """Asked like an `OutOfFold`, for one arm: its answers are those of the arm anchored at the `champion`.

    `most` answers that were right may be lost over the new rows. The base rows, which the champion has learnt, are anchored at
    refits of the `incumbent` arm without them.
    """

    def __init__(self, plain: OutOfFold, arm: Arm, champion: Anchor, *, incumbent: str, most: int) -> None:
        self.base, self.new, self.task, self.asked_base = plain.base, plain.new, plain.task, plain.asked_base
        self.champion, self.most = champion, most
        self._plain, self._incumbent = plain, ARMS[incumbent]
        self._before = champion.predict([text_of(row) for row in self.new])
        self._asked = [(plain.positions(fold), plain.asked_in(arm, fold)) for fold in range(plain.folds)]
        self._known = labels_of(champion)
        self._compared = self._compare()
        self.leads = least_leads(self._compared, most=most)

    def model(self, challenger: TextModel) -> AnchoredModel:
        """What would be served: a challenger of all rows, anchored."""
        return AnchoredModel(self.champion, challenger, self.leads)

    def answers(self, arm: Arm) -> Answers:
        """Answers to all new rows; only of the arm it was made for."""
        found: Answers = [None] * len(self.new)
        for positions, asked in self._asked:
            others = np.setdiff1d(np.arange(len(self.new)), positions)
            leads = least_leads(self._compared.of(others), most=self.most)
            said = self._anchored([self._before[i] for i in positions], asked, leads)
            for i, prediction in zip(positions, said, strict=True):
                found[i] = prediction.answer
        return found

    def base_answers(self, arm: Arm, *, with_new: bool) -> Answers:
        """As `OutOfFold.base_answers`; with the new rows they are anchored."""
        return [prediction.answer for prediction in self.base_predictions(arm, with_new=with_new)]

    def base_predictions(self, arm: Arm, *, with_new: bool) -> Predictions:
        """The predictions behind `base_answers`."""
        before = self._plain.base_predictions(self._incumbent if with_new else arm, with_new=False)
        if not with_new:
            return before
        known = dict(zip(self.asked_base, before, strict=True))
        found: dict[int, Prediction] = {}
        for held, asked in self._plain.base_asked(arm, with_new=True):
            found |= dict(zip(held, self._anchored([known[i] for i in held], asked, self.leads), strict=True))
        return [found[i] for i in self.asked_base]

    def _anchored(self, before: Sequence[Prediction], asked: Asked, leads: Leads) -> tuple[Prediction, ...]:
        return anchored(before, asked, leads, self._known) if isinstance(asked, Considered) else asked

    def _compare(self) -> "Compared":
        found = Compared(np.zeros(len(self.new)), *(np.zeros(len(self.new), bool) for _ in range(3)))
        truths = [truth_of(row, self.task) for row in self.new]
        for positions, asked in self._asked:
            if not isinstance(asked, Considered):
                continue
            before = [self._before[i].answer for i in positions]
            found.leads[positions] = leads_over(before, asked)
            for i, old, new in zip(positions, before, predictions_of(asked), strict=True):
                found.lost[i] = old == truths[i] != new.answer
                found.won[i] = old != truths[i] == new.answer
                found.to_new[i] = is_new(new, self._known)
        return found


class Compared(NamedTuple):
    """The challenger's own answers to the new rows beside the champion's; each of shape (n,)."""

    leads: Floats
    """By how much the challenger prefers its answer."""
    lost: Bools
    """Whether following it loses a right one."""
    won: Bools
    """Whether following it mends a wrong one."""
    to_new: Bools
    """Whether it is a class that the champion does not have."""

    def of(self, rows: npt.NDArray[np.intp]) -> "Compared":
        """The same of these rows alone."""
        return Compared(self.leads[rows], self.lost[rows], self.won[rows], self.to_new[rows])


def least_leads(found: Compared, *, most: int) -> Leads:
    """The leads to ask for so that at most `most` of the rows lost have more, and as many as can be of those won do.

    Losses are shared out between the two kinds of change; of shares that win as much the one with fewer losses among the
    champion's own classes.

    >>> leads, lost = np.array([3.0, 2.0, 1.0, 0.9]), np.array([False, True, False, True])
    >>> least_leads(Compared(leads, lost, ~lost, np.array([True, True, True, False])), most=1)
    Leads(among_known=0.9, to_new=0.0)
    """
    shares = []
    for among_known in range(most + 1):
        asked = Leads(
            least_lead(found.leads[~found.to_new], found.lost[~found.to_new], most=among_known),
            least_lead(found.leads[found.to_new], found.lost[found.to_new], most=most - among_known),
        )
        enough = found.leads > np.where(found.to_new, asked.to_new, asked.among_known)
        shares.append((-int((found.won & enough).sum()), among_known, asked))
    return min(shares)[2]


def least_lead(leads: Floats, lost: Bools, *, most: int) -> float:
    """The least lead to ask for so that at most `most` of the rows `lost` have more.

    >>> [least_lead(np.array([0.1, 0.9, 0.5]), np.array([True, True, False]), most=most) for most in (0, 1, 2)]
    [0.9, 0.1, 0.0]
    """
    ordered = np.sort(leads[lost])[::-1]
    return float(ordered[most]) if most < len(ordered) else 0.0
