"""What is done otherwise where there are many rows: the same optimum from fewer of them, fewer folds, samples."""

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from models import arms, dataset, out_of_fold, text_model
from models.arms import try_arms
from models.dataset import suspect_labels
from models.fitting import ARMS, Task
from models.judging import judge_calibration, judge_rows
from models.one_vs_rest import fit_one_vs_rest
from models.out_of_fold import OutOfFold
from models.splits import sample_of
from models.text_model import TextModel
from store.records import DatasetRow

LABELS = ("status", "return", "price", "stock")
ASKS = ("{} of item {}", "item {1}: {0} please", "tell me the {} for {}")
BASE = [
    DatasetRow(input=ask.format(label, n), label=label, source="base")
    for label in LABELS
    for ask in ASKS
    for n in range(12)
]
NEW = [DatasetRow(input=f"give me back {n}", label="return", source=f"u{n}", trace_id=str(n)) for n in range(24)]
TEXTS, Y = [str(row.input) for row in BASE], np.array([row.label for row in BASE])


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (arms, dataset, out_of_fold, text_model):
        monkeypatch.setattr(module, "MANY_ROWS", 60)


def test_a_fit_from_the_rows_that_matter_is_the_fit_from_all() -> None:
    X = TextModel().fit(TEXTS, Y.tolist()).features(TEXTS)
    whole = LinearSVC(tol=1e-5, random_state=0).fit(X, Y)
    for start in (None, whole.decision_function(X), np.zeros((len(Y), 4))):
        found = fit_one_vs_rest(LinearSVC(tol=1e-5, random_state=0), X, Y, np.ones(len(Y)), start=start)
        assert found.classes_.tolist() == whole.classes_.tolist()
        assert np.abs(found.decision_function(X) - whole.decision_function(X)).max() < 0.02


def test_a_model_of_many_rows_is_the_same_from_any_order(many: None) -> None:
    one, other = TextModel().fit(TEXTS, Y.tolist()), TextModel().fit(TEXTS[::-1], Y[::-1].tolist())
    assert one.predict(TEXTS) == other.predict(TEXTS)
    assert sum(p.label == y for p, y in zip(one.predict(TEXTS), Y, strict=True)) == len(Y)


def test_a_sample_keeps_every_label_and_no_order_is_in_it() -> None:
    few = [*BASE, DatasetRow(input="is it raining", label="weather", source="base")]
    drawn = sample_of(few, 50)
    assert (len(drawn), {row.label for row in drawn}) == (50, {*LABELS, "weather"})
    assert sample_of(BASE, 1000) is BASE


def test_of_many_base_rows_a_third_judges_and_none_of_it_was_learnt(many: None) -> None:
    over = OutOfFold(BASE, NEW, Task())
    rows = judge_rows(ARMS["word_char_svc"], over, ["status"] * len(NEW), incumbent="word_char_svc")
    calibrated = judge_calibration(ARMS["word_char_svc"], over, incumbent="word_char_svc")
    assert (len(over.asked_base) < len(BASE) / 2, over.folds) == (True, 2)
    assert len(rows) == len(over.asked_base) + len(NEW)
    assert calibrated is not None
    assert calibrated.rows == len(over.asked_base)


def test_arms_are_chosen_on_a_sample_of_many_rows(many: None) -> None:
    trials = try_arms(OutOfFold(BASE, NEW, Task()), ["status"] * len(NEW), incumbent="word_char_svc")
    assert [trial.error for trial in trials] == [None] * len(Task().arms)


def test_a_wrong_label_is_suspect_among_many_rows(many: None) -> None:
    wrong = DatasetRow(input="status of item 3", label="stock", source="u1")
    right = [DatasetRow(input=f"price of item {n}", label="price", source="u2") for n in range(30)]
    assert suspect_labels([*BASE, *right, wrong], seed=0) == (len(BASE) + len(right),)
