"""What a refit would answer to rows that it did not learn from; each arm is fitted once a fold, whoever asks."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from models.fitting import Arm, Task
from models.fold_fit import Asked, FoldAnswers, FoldFailed, FoldFit, Mapper, fit_fold, predictions_of
from models.predictions import Prediction
from models.splits import folds_of
from models.text_model import MANY_ROWS
from store.records.weights import DatasetRow

Answers = list[str | None]
"""One answer a row; None: rejected."""
Predictions = list[Prediction]
FOLDS = 5
"""Over the correction rows: refits on halves learn from half of them and repair too little."""
BASE_FOLDS = 3
"""Over the base rows, where both sides of a comparison are refitted."""
FOLDS_OF_MANY = 2
"""Over the correction rows where there are many base rows: a refit on half the corrections still has all of those."""


class Place(NamedTuple):
    """Whose answers to which rows: one fit."""

    arm: Arm
    fold: int
    with_new: bool | None = None
    """None: a fold of the new rows is asked; otherwise one of the base rows, by a model that learnt new rows or none."""


class OutOfFold:
    """Answers to the `base` rows, which the champion has learnt, and to the `new` rows, which came since.

    The folds are disjoint by source, by input where the source is unknown or an authority, and the same for every arm.
    Each fold is fitted when it is first asked for, or ahead with others by the `mapper`; the numbers are the same.
    """

    def __init__(
        self,
        base: Sequence[DatasetRow],
        new: Sequence[DatasetRow],
        task: Task,
        *,
        folds: int | None = None,
        mapper: Mapper | None = None,
    ) -> None:
        self.base, self.new, self.task, self.mapper = base, new, task, mapper
        many = len(base) >= MANY_ROWS
        self.folds = folds or (FOLDS_OF_MANY if many else FOLDS)
        self._base_fold_of, self._new_fold_of = folds_of(base, BASE_FOLDS), folds_of(new, BASE_FOLDS)
        self.asked_base = [i for i in range(len(base)) if not many or self._base_fold_of[i] == 0]
        """Positions of the base rows that are asked: all of them, of many one fold in three."""
        self.estimator_fits = 0
        """Calls of an estimator's `fit` behind all that was asked so far."""
        self._fold_of = folds_of(new, self.folds)
        self._ready: dict[Place, FoldAnswers] = {}
        self._used: set[Place] = set()

    def positions(self, fold: int) -> list[int]:
        """Positions of the new rows of one fold."""
        return [i for i in range(len(self.new)) if self._fold_of[i] == fold]

    def answers(self, arm: Arm) -> Answers:
        """Answers to all new rows by models of all base rows, as the champion is, and of the new rows of other folds.

        Raises ValueError where a fold cannot be trained.
        """
        answers: Answers = [None] * len(self.new)
        for fold in range(self.folds):
            for i, answer in zip(self.positions(fold), self.answers_in(arm, fold), strict=True):
                answers[i] = answer
        return answers

    def answers_in(self, arm: Arm, fold: int) -> Answers:
        """Answers to the new rows of one fold, in order."""
        return [prediction.answer for prediction in predictions_of(self.asked_in(arm, fold))]

    def asked_in(self, arm: Arm, fold: int) -> Asked:
        """What is said to the new rows of one fold, in order."""
        return self._asked(Place(arm, fold))

    def base_answers(self, arm: Arm, *, with_new: bool) -> Answers:
        """Answers to the base rows asked, in order of `asked_base`, by models of the other base folds.

        `with_new`: and of new rows apart from them.
        """
        return [prediction.answer for prediction in self.base_predictions(arm, with_new=with_new)]

    def base_predictions(self, arm: Arm, *, with_new: bool) -> Predictions:
        """The predictions behind `base_answers`."""
        found: dict[int, Prediction] = {}
        for held, asked in self.base_asked(arm, with_new=with_new):
            found |= dict(zip(held, predictions_of(asked), strict=True))
        return [found[i] for i in self.asked_base]

    def base_asked(self, arm: Arm, *, with_new: bool) -> list[tuple[list[int], Asked]]:
        """(positions among the base rows, what is said to them) of each base fold."""
        places = self.base_places(arm, with_new=with_new)
        return [(self._base_positions(place.fold), self._asked(place)) for place in places]

    def places(self, arm: Arm) -> list[Place]:
        """The fits behind `answers`."""
        return [Place(arm, fold) for fold in range(self.folds)]

    def base_places(self, arm: Arm, *, with_new: bool) -> list[Place]:
        """The fits behind `base_asked`."""
        folds = sorted({int(self._base_fold_of[i]) for i in self.asked_base})
        return [Place(arm, fold, with_new) for fold in folds]

    def prepare(self, places: Iterable[Place]) -> None:
        """Fit at once, by the mapper, what will be asked for; without one nothing is done ahead. Raises EngineAway."""
        missing = [place for place in dict.fromkeys(places) if place not in self._ready]
        if self.mapper is not None and missing:
            found = self.mapper.map(fit_fold, [self._job(place) for place in missing])
            self._ready |= dict(zip(missing, found, strict=True))

    def cost_of(self, arm: Arm) -> tuple[int, float]:
        """(estimator fits, seconds of fitting wherever it ran) behind what was asked of an arm so far."""
        used = [self._ready[place] for place in self._used if place.arm == arm]
        return sum(each.estimator_fits for each in used), sum(each.seconds for each in used)

    def _base_positions(self, fold: int) -> list[int]:
        return [i for i in range(len(self.base)) if self._base_fold_of[i] == fold]

    def _asked(self, place: Place) -> Asked:
        if place not in self._ready:
            self._ready[place] = fit_fold(self._job(place))
        found = self._ready[place]
        if place not in self._used:
            self._used.add(place)
            self.estimator_fits += found.estimator_fits
        if found.error:
            failed = FoldFailed(found.error)
            failed.add_note(found.where)
            raise failed
        return found.asked

    def _job(self, place: Place) -> FoldFit:
        arm, fold, with_new = place
        if with_new is None:
            others = [row for row, other in zip(self.new, self._fold_of, strict=True) if other != fold]
            return FoldFit(arm, self.base, others, [self.new[i] for i in self.positions(fold)], self.task)
        known = [row for row, other in zip(self.base, self._base_fold_of, strict=True) if other != fold]
        fresh = [row for row, other in zip(self.new, self._new_fold_of, strict=True) if with_new and other != fold]
        return FoldFit(arm, known, fresh, [self.base[i] for i in self._base_positions(fold)], self.task)
