"""What a challenger anchored at the champion would answer to rows that it did not learn from, and how large its lead must be.

The lead is the least at which the anchored answers to the new rows lose no more right ones than asked for. A row is judged with
the lead that the rows of the other folds ask for; the model that is served has the lead of all of them.
"""

from collections.abc import Sequence

import numpy as np

from models.anchored import Anchor, AnchoredModel, anchored, leads_over
from models.dataset import text_of
from models.fitting import ARMS, Arm, truth_of
from models.out_of_fold import Answers, Asked, OutOfFold, Predictions, predictions_of
from models.reject import Bools, Floats
from models.text_model import Considered, Prediction, TextModel


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
        self._leads, self._lost = self._compared()
        self.lead = least_lead(self._leads, self._lost, most=most)

    def model(self, challenger: TextModel) -> AnchoredModel:
        """What would be served: a challenger of all rows, anchored."""
        return AnchoredModel(self.champion, challenger, self.lead)

    def answers(self, arm: Arm) -> Answers:
        """Answers to all new rows; only of the arm it was made for."""
        found: Answers = [None] * len(self.new)
        for positions, asked in self._asked:
            others = np.setdiff1d(np.arange(len(self.new)), positions)
            lead = least_lead(self._leads[others], self._lost[others], most=self.most)
            said = _anchored([self._before[i] for i in positions], asked, lead)
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
            found |= dict(zip(held, _anchored([known[i] for i in held], asked, self.lead), strict=True))
        return [found[i] for i in self.asked_base]

    def _compared(self) -> tuple[Floats, Bools]:
        """Of each new row the challenger's lead over the champion's answer, and whether following it loses a right one."""
        leads, lost = np.zeros(len(self.new)), np.zeros(len(self.new), bool)
        truths = [truth_of(row, self.task) for row in self.new]
        for positions, asked in self._asked:
            if not isinstance(asked, Considered):
                continue
            before = [self._before[i].answer for i in positions]
            leads[positions] = leads_over(before, asked)
            pairs = zip(positions, before, predictions_of(asked), strict=True)
            lost[positions] = [old == truths[i] != new.answer for i, old, new in pairs]
        return leads, lost


def least_lead(leads: Floats, lost: Bools, *, most: int) -> float:
    """The least lead to ask for so that at most `most` of the rows `lost` have more.

    >>> [least_lead(np.array([0.1, 0.9, 0.5]), np.array([True, True, False]), most=most) for most in (0, 1, 2)]
    [0.9, 0.1, 0.0]
    """
    ordered = np.sort(leads[lost])[::-1]
    return float(ordered[most]) if most < len(ordered) else 0.0


def _anchored(before: Sequence[Prediction], asked: Asked, lead: float) -> tuple[Prediction, ...]:
    return anchored(before, asked, lead) if isinstance(asked, Considered) else asked
