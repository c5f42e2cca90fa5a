import numpy as np
import pytest

from models.calibration import LOWEST, fit_temperature
from models.exceptions import ExceptionModel
from models.reject import RejectModel
from models.text_folds import text_folds
from models.text_model import TextModel

ORDER = [
    f"where is my {thing} order {n}" for thing in ("book", "shoe", "lamp") for n in ("now", "today", "please", "yet")
]
REFUND = [
    f"i want money back for the {thing} {n}"
    for thing in ("book", "shoe", "lamp")
    for n in ("now", "today", "soon", "ok")
]
CHATTER = [
    f"{greeting} {name} how goes it" for greeting in ("hello", "hi", "hey", "yo") for name in ("ann", "bob", "cy")
]
TEXTS, LABELS = ORDER + REFUND, ["order"] * 12 + ["refund"] * 12


def test_a_text_gets_its_label_with_a_confidence() -> None:
    prediction = TextModel().fit(TEXTS, LABELS).predict(["money back for my lamp"])[0]
    assert (prediction.label, 0.5 < prediction.confidence <= 1.0) == ("refund", True)


def test_the_same_seed_gives_the_same_answers() -> None:
    first, second = (TextModel(seed=3).fit(TEXTS, LABELS).predict(TEXTS) for _ in range(2))
    assert first == second


def test_parts_rebuild_the_same_model() -> None:
    model = TextModel(out_of_scope="none").fit(TEXTS + CHATTER, LABELS + ["none"] * 12)
    again = TextModel.from_parts(model.parts())
    assert (again.params, again.predict(TEXTS + CHATTER)) == (model.params, model.predict(TEXTS + CHATTER))


def test_out_of_scope_rows_are_rejected_and_are_no_class() -> None:
    model = TextModel(out_of_scope="none").fit(TEXTS + CHATTER, LABELS + ["none"] * 12)
    assert (model.classes.tolist(), model.predict(["hey ann how goes it"])[0].answer) == (["order", "refund"], None)


def test_without_out_of_scope_rows_the_margins_decide() -> None:
    model = TextModel(out_of_scope="none").fit(TEXTS, LABELS)
    assert model.parts()["reject"]["model"] is None


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3])
def test_at_most_the_share_of_in_scope_rows_is_rejected(share: float) -> None:
    draw = np.random.default_rng(0)
    margin, in_scope = draw.normal(size=(200, 2)), np.ones(200, dtype=bool)
    reject = RejectModel(in_scope_rejection=share).fit(margin, margin, in_scope, [], ~in_scope)
    assert reject.rejects(margin, margin).mean() <= share


def test_the_threshold_comes_from_what_was_asked_not_from_what_developers_wrote() -> None:
    margin = np.concatenate([np.full((100, 2), 5.0), np.linspace(0, 1, 40)[:, None].repeat(2, axis=1)])
    asked, in_scope = np.arange(140) >= 100, np.ones(140, dtype=bool)
    reject = RejectModel(in_scope_rejection=0.1).fit(margin, margin, in_scope, [], asked)
    assert reject.rejects(margin, margin).sum() == 3


def test_the_order_of_the_rows_changes_nothing() -> None:
    texts, labels = TEXTS + CHATTER, LABELS + ["none"] * 12
    backwards = TextModel(out_of_scope="none").fit(texts[::-1], labels[::-1])
    assert backwards.predict(texts) == TextModel(out_of_scope="none").fit(texts, labels).predict(texts)


def test_equal_texts_are_never_on_both_sides_of_a_fold() -> None:
    texts = ["Hi", "hi ", "bye", "hi", "so long"]
    sides = [({texts[i].strip().lower() for i in part} for part in fold) for fold in text_folds(texts, 5, seed=0)]
    assert [train & test for train, test in sides] == [set()] * 3


@pytest.mark.parametrize("learner", ["linear_svc", "logistic", "complement_nb"])
def test_every_learner_gives_probabilities(learner: str) -> None:
    probabilities = TextModel(representation="word", learner=learner).fit(TEXTS, LABELS).probabilities(TEXTS)
    assert np.allclose(probabilities.sum(axis=1), 1.0)


def test_a_class_with_one_example_is_learnt_without_an_error() -> None:
    model = TextModel().fit([*TEXTS, "cancel the subscription"], [*LABELS, "cancel"])
    assert model.predict(["cancel the subscription"])[0].label == "cancel"


def test_one_class_is_refused() -> None:
    with pytest.raises(ValueError, match="1 class in 12 rows"):
        TextModel().fit(ORDER, ["order"] * 12)


def test_single_predictions_need_no_copy_of_the_coefficients() -> None:
    assert TextModel().fit(TEXTS, LABELS).parts()["classifier"].coef_.flags.f_contiguous


def test_no_texts_give_no_predictions() -> None:
    assert TextModel().fit(TEXTS, LABELS).predict([]) == ()


def test_an_exception_changes_what_is_close_to_it_and_nothing_else() -> None:
    beneath = TextModel().fit(TEXTS, LABELS)
    gifts = ["is gift wrapping free", "gift wrapping free or not", "free gift wrapping"]
    model = ExceptionModel(beneath).fit(gifts, ["gift"] * 3)
    assert model.predict(["is gift wrapping free", *TEXTS])[0].answer == "gift"
    assert model.predict(TEXTS) == beneath.predict(TEXTS)


def test_a_class_that_a_fold_never_saw_does_not_flatten_the_confidence() -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(3, size=300)
    decisions = rng.normal(size=(300, 3))
    decisions[np.arange(300), truth] += 2.0
    unseen = np.column_stack([decisions, np.where(np.arange(300) < 60, LOWEST, -3.0)])
    assert fit_temperature(unseen, truth) == pytest.approx(fit_temperature(decisions, truth), rel=0.1)
