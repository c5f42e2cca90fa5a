"""Cases set apart by people: golden ones, which must stay right, and sealed ones, which nothing ever learns from.

Both are put to the very model that would be served.
"""

from collections.abc import Sequence
from typing import Protocol

from models.dataset import text_of
from models.fitting import Task, truth_of
from models.judged_rows import pairs_of
from models.judging import judged_row
from models.predictions import Prediction
from store.records.weights import DatasetRow, GateStage

Cases = Sequence[DatasetRow]


class Answering(Protocol):
    """What answers texts: a model here, or one elsewhere."""

    def predict(self, texts: Sequence[str]) -> tuple[Prediction, ...]:
        """One prediction a text, in order."""


def golden(cases: Cases, champion: Answering | None, challenger: Answering, task: Task) -> GateStage:
    """No case that the champion answers rightly is lost; without its model (None) all of them count as right now."""
    if not cases:
        return GateStage(
            stage="golden", verdict="not measured", numbers={"cases": 0.0}, sentence="the file has no case"
        )
    truths = [truth_of(row, task) for row in cases]
    before, after = truths if champion is None else _answers(champion, cases), _answers(challenger, cases)
    kept = [old == truth for truth, old in zip(truths, before, strict=True)]
    lost = [was and new != truth for truth, was, new in zip(truths, kept, after, strict=True)]
    numbers: dict[str, float | None] = {
        "cases": float(len(cases)),
        "formerly_right": float(sum(kept)),
        "lost": float(sum(lost)),
    }
    sentence = f"{sum(lost)} lost of {sum(kept)} golden cases that were right, {len(cases)} in all"
    if any(lost):
        sentence += f"; the first is case {lost.index(True) + 1} of the file"
    return GateStage(stage="golden", verdict="failed" if any(lost) else "passed", numbers=numbers, sentence=sentence)


def sealed(cases: Cases, champion: Answering | None, challenger: Answering, task: Task) -> GateStage:
    """The sealed cases lose no more than a slice of the traffic may; without the champion's model it is not measured."""
    if not cases or champion is None:
        why = "the file has no case" if not cases else "what the champion answers to sealed cases is not known"
        return GateStage(stage="sealed", verdict="not measured", numbers={"cases": float(len(cases))}, sentence=why)
    answers = zip(cases, _answers(champion, cases), _answers(challenger, cases), strict=True)
    pairs = pairs_of([judged_row(row, old, new, task, in_cluster=False) for row, old, new in answers])
    right = pairs.formerly_right + pairs.newly_right - pairs.newly_wrong
    numbers: dict[str, float | None] = {
        "cases": float(pairs.n),
        "newly_right": float(pairs.newly_right),
        "newly_wrong": float(pairs.newly_wrong),
        "champion_accuracy": pairs.formerly_right / pairs.n,
        "challenger_accuracy": right / pairs.n,
        "loss_bound": pairs.loss_bound,
    }
    sentence = (
        f"{pairs.newly_right} newly right, {pairs.newly_wrong} newly wrong of {pairs.n} sealed cases: accuracy "
        f"{pairs.formerly_right / pairs.n:.3f} and now {right / pairs.n:.3f}"
    )
    return GateStage(
        stage="sealed", verdict="failed" if pairs.slice_loses else "passed", numbers=numbers, sentence=sentence
    )


def _answers(model: Answering, cases: Cases) -> list[str | None]:
    return [prediction.answer for prediction in model.predict([text_of(row) for row in cases])]
