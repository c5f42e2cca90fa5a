"""The registry of arms, and how one arm makes a model of the rows."""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field, JsonValue

from models.anchored import Anchor
from models.dataset import text_of
from models.estimator_text_model import EstimatorTextModel
from models.exceptions import ExceptionModel
from models.tabular_model import TabularModel
from models.text_model import TextModel
from store.records.production import Record
from store.records.weights import DatasetRow

Model = Anchor | TabularModel
TaskKind = Literal["text", "tabular"]
Treatment = Literal["plain", "exceptions"]


class Arm(Record):
    """One way to train the model."""

    name: str
    representation: str
    learner: str
    task: TaskKind = "text"
    treatment: Treatment = "plain"
    """`exceptions`: the rows become nearest-neighbour exceptions over the model of the base rows."""


ARMS: dict[str, Arm] = {
    arm.name: arm
    for arm in (
        Arm(name="word_char_svc", representation="word_char", learner="linear_svc"),
        Arm(name="word_logistic", representation="word", learner="logistic"),
        Arm(name="char_svc", representation="char", learner="linear_svc"),
        Arm(name="word_complement_nb", representation="word", learner="complement_nb"),
        Arm(name="exceptions", representation="word_char", learner="linear_svc", treatment="exceptions"),
        Arm(name="word_char_estimator", representation="word_char", learner="estimator"),
        Arm(name="boosting", representation="columns", learner="boosting", task="tabular"),
        Arm(name="columns_logistic", representation="columns", learner="logistic", task="tabular"),
        Arm(name="forest", representation="columns", learner="forest", task="tabular"),
        Arm(name="estimator", representation="columns", learner="estimator", task="tabular"),
    )
}
BASE = "base"
"""Source of the rows that developers wrote; all others were asked in production."""
DEFAULT_ARM = "word_char_svc"
DEFAULT_ARMS: dict[TaskKind, str] = {"text": DEFAULT_ARM, "tabular": "boosting"}


def refitting(name: str) -> str:
    """The arm that refits a model made by arm `name`: exceptions patch a model, and the default arm replaces both."""
    return DEFAULT_ARM if ARMS[name].treatment == "exceptions" else name


class Task(Record):
    """What stays the same for every arm."""

    out_of_scope: str | None = None
    """Label that means: none of the classes."""
    in_scope_rejection: float = 0.1
    seed: int = 0
    kind: TaskKind = "text"
    estimator: str | None = None
    """Import path of a classifier that is one more arm."""
    estimator_params: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def arms(self) -> tuple[str, ...]:
        """The arms there are for it, in order of the registry."""
        return tuple(
            arm.name
            for arm in ARMS.values()
            if arm.task == self.kind and (arm.learner != "estimator" or self.estimator is not None)
        )


def fit_arm(arm: Arm, base_rows: Sequence[DatasetRow], new_rows: Sequence[DatasetRow], *, task: Task) -> Model:
    """A model of `arm` from the rows the champion was trained on and the corrections since.

    Raises ValueError where the rows cannot train it.
    """
    if arm.task == "tabular":
        return _fit_tabular(arm, [*base_rows, *new_rows], task)
    model = _text_model(arm, task)
    taught = [*base_rows] if arm.treatment == "exceptions" else [*base_rows, *new_rows]
    model.fit(
        [text_of(row) for row in taught],
        [row.label for row in taught],
        [row.weight for row in taught],
        [row.source != BASE for row in taught],
    )
    if arm.treatment == "plain":
        return model
    return ExceptionModel(model).fit([text_of(row) for row in new_rows], [row.label for row in new_rows])


def _text_model(arm: Arm, task: Task) -> TextModel:
    if arm.learner == "estimator":
        return EstimatorTextModel(
            estimator=task.estimator or "",
            estimator_params=task.estimator_params,
            representation=arm.representation,
            out_of_scope=task.out_of_scope,
            in_scope_rejection=task.in_scope_rejection,
            seed=task.seed,
        )
    return TextModel(
        representation=arm.representation,
        learner=arm.learner,
        out_of_scope=task.out_of_scope,
        in_scope_rejection=task.in_scope_rejection,
        seed=task.seed,
    )


def _fit_tabular(arm: Arm, rows: Sequence[DatasetRow], task: Task) -> TabularModel:
    model = TabularModel(
        learner=arm.learner,
        out_of_scope=task.out_of_scope,
        in_scope_rejection=task.in_scope_rejection,
        seed=task.seed,
        estimator=task.estimator if arm.learner == "estimator" else None,
        estimator_params=task.estimator_params if arm.learner == "estimator" else None,
    )
    labels, weights = [row.label for row in rows], [row.weight for row in rows]
    return model.fit([text_of(row) for row in rows], labels, weights, [row.source != BASE for row in rows])


def truth_of(row: DatasetRow, task: Task) -> str | None:
    """The right answer of a row; None: out of scope."""
    return None if row.label == task.out_of_scope else row.label
