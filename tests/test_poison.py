"""What one source may change in a model."""

from collections.abc import Sequence

from models.arms import ARMS, fit_arm
from models.fitting import Model, Task
from models.poison import influences
from store.records import DatasetRow

BASE = [
    DatasetRow(input=f"{verb} my {thing}", label=label, source="base")
    for label, verbs in {"order": ("track", "find", "locate"), "refund": ("return", "repay", "reimburse")}.items()
    for verb in verbs
    for thing in ("book", "shoe", "lamp", "desk")
]
ARM = ARMS["word_char_svc"]


def given(source: str, label: str, *, authority: bool = False) -> list[DatasetRow]:
    """What the developers call an order, called `label`, three times over."""
    return [row.model_copy(update={"label": label, "source": source, "authority": authority}) for row in BASE[:12]] * 3


def changed(rows: list[DatasetRow]) -> dict[str, int]:
    def refit(left: Sequence[DatasetRow]) -> Model:
        return fit_arm(ARM, BASE, left, task=Task())

    model = refit(rows)
    return {each.source: each.changed for each in influences(model, refit, BASE, rows)[0]}


def test_who_teaches_wrong_labels_changes_answers_that_were_right() -> None:
    assert [changed(given("mallory", "refund")), changed(given("ann", "order"))] == [{"mallory": 12}, {"ann": 0}]


def test_an_authority_answers_for_itself() -> None:
    assert changed(given("staff:bob", "refund", authority=True)) == {}
