"""What a refit would answer to rows that it did not learn from; each arm is fitted once a fold, whoever asks."""

from collections.abc import Sequence

from models.dataset import text_of
from models.fitting import Arm, Model, Task, fit_arm
from models.splits import folds_of
from models.text_model import MANY_ROWS, Considered, Prediction, TextModel
from store.records.weights import DatasetRow

Answers = list[str | None]
"""One answer a row; None: rejected."""
Predictions = list[Prediction]
Asked = Considered | tuple[Prediction, ...]
"""What a model said: with every other answer where it is a text model."""
FOLDS = 5
"""Over the correction rows: refits on halves learn from half of them and repair too little."""
BASE_FOLDS = 3
"""Over the base rows, where both sides of a comparison are refitted."""
FOLDS_OF_MANY = 2
"""Over the correction rows where there are many base rows: a refit on half the corrections still has all of those."""


class OutOfFold:
    """Answers to the `base` rows, which the champion has learnt, and to the `new` rows, which came since.

    The folds are disjoint by source, by input where the source is unknown or an authority, and the same for every arm.
    """

    def __init__(
        self, base: Sequence[DatasetRow], new: Sequence[DatasetRow], task: Task, *, folds: int | None = None
    ) -> None:
        self.base, self.new, self.task = base, new, task
        many = len(base) >= MANY_ROWS
        self.folds = folds or (FOLDS_OF_MANY if many else FOLDS)
        fold_of = folds_of(base, BASE_FOLDS)
        self.asked_base = [i for i in range(len(base)) if not many or fold_of[i] == 0]
        """Positions of the base rows that are asked: all of them, of many one fold in three."""
        self.estimator_fits = 0
        """Calls of an estimator's `fit` so far."""
        self._fold_of = folds_of(new, self.folds)
        self._known: dict[tuple[str, int], Asked] = {}
        self._known_base: dict[tuple[str, bool], list[tuple[list[int], Asked]]] = {}

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
        if (arm.name, fold) not in self._known:
            held = [self.new[i] for i in self.positions(fold)]
            others = [row for row, other in zip(self.new, self._fold_of, strict=True) if other != fold]
            self._known[arm.name, fold] = self._asked(arm, self.base, others, held)
        return self._known[arm.name, fold]

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
        if (arm.name, with_new) not in self._known_base:
            self._known_base[arm.name, with_new] = self._on_base(arm, with_new)
        return self._known_base[arm.name, with_new]

    def _on_base(self, arm: Arm, with_new: bool) -> list[tuple[list[int], Asked]]:
        fold_of, new_fold_of = folds_of(self.base, BASE_FOLDS), folds_of(self.new, BASE_FOLDS)
        found = []
        for fold in sorted({int(fold_of[i]) for i in self.asked_base}):
            held = [i for i in range(len(self.base)) if fold_of[i] == fold]
            known = [row for row, other in zip(self.base, fold_of, strict=True) if other != fold]
            fresh = [row for row, other in zip(self.new, new_fold_of, strict=True) if with_new and other != fold]
            found.append((held, self._asked(arm, known, fresh, [self.base[i] for i in held])))
        return found

    def _asked(
        self, arm: Arm, base: Sequence[DatasetRow], new: Sequence[DatasetRow], held: Sequence[DatasetRow]
    ) -> Asked:
        if not held:
            return ()
        model: Model = fit_arm(arm, base, new, task=self.task)
        self.estimator_fits += model.estimator_fits
        texts = [text_of(row) for row in held]
        return model.considered(texts) if isinstance(model, TextModel) else model.predict(texts)


def predictions_of(asked: Asked) -> tuple[Prediction, ...]:
    """The predictions alone."""
    return asked.predictions if isinstance(asked, Considered) else asked
