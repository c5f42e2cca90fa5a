"""What people said, read for whom it holds: a wish of one's own, a policy, several causes, reviewers who disagree."""

from typing import Any

import pytest

from models.corrections import naming_labels
from models.detector import detect
from models.evidence import Deployment, weigh
from models.fingerprint import fingerprint
from models.router import PRIOR
from store.records import Case, Policy, Span
from tests.test_evidence import case, evidence, span


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("I always want the window seat, I told you", (0.0, 1.0)),
        ("The aisle, always for me", (0.0, 1.0)),
        ("My parcels never go to the neighbour", (0.0, 1.0)),
        ("I told you, you must always ask for the receipt", (1.0, 1.0)),
        ("Always ask for the receipt", (1.0, 0.0)),
    ],
)
def test_what_always_holds_for_the_speaker_is_a_wish_and_no_policy(said: str, expected: tuple[float, float]) -> None:
    found = evidence(case("1", feedback=[{"score": 0.0, "comment": said}]))
    assert (found["normative"], found["first_person"]) == expected


def test_an_authority_who_says_always_states_a_policy() -> None:
    said = [{"score": 0.0, "comment": "I always want the order number asked for"}]
    assert evidence(case("1", feedback=said, source="ann", authority=True))["normative"] == 1.0


def wishes(sentence: str, *wanted: str) -> list[Case]:
    """One correction of the same answer a user."""
    return [
        case(f"{at}", source=f"u{at}", user=f"u{at}", input="book my usual trip", output="It is booked.",
             feedback=[{"score": 0.0}, {"name": "correction", "corrected_output": sentence.format(each)}])
        for at, each in enumerate(wanted)
    ]  # fmt: skip


@pytest.mark.parametrize(
    "wanted", [("vegan menu", "window seat", "quiet room", "late breakfast"), ("vegan menu", "window seat") * 3]
)
def test_one_sentence_with_another_wish_of_each_user_is_no_agreement(wanted: tuple[str, ...]) -> None:
    found = evidence(*wishes("I always want the {}, I told you", *wanted))
    assert found["agreed"] == 0.0
    assert (found["users_differ"] or 0) >= 0.5
    given = PRIOR.probabilities(found, Deployment())
    assert max(given, key=lambda name: given[name]) == "memory"


def test_one_wish_of_several_users_is_still_their_own() -> None:
    found = evidence(*wishes("I always want the vegan menu, I told you{}", "", "", "", ""))
    assert (found["agreed"], found["normative"], found["first_person"]) == (0.0, 0.0, 1.0)


def test_one_sentence_of_all_users_is_agreement() -> None:
    found = evidence(*wishes("A receipt is needed{}", "", "", "", " please"))
    assert found["agreed"] == pytest.approx(15 / 16)
    assert found["users_differ"] == 0.0


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("Returns are possible within 30 days.", "Returns are possible within 14 days", 1.0),
        ("We ship to Austria.", "We do not ship to Austria.", 1.0),
        ("Elm Street", "Mill Lane", 1.0),
        ("It takes five days.", "You will have it after five working days at most.", 0.0),
    ],
)
def test_answers_of_reviewers_to_one_question_are_compared_over_users(one: str, other: str, expected: float) -> None:
    said = [
        case(str(at), user=f"u{at}", input="until when?", output="I do not know.", source=f"staff:{at}",
             feedback=[{"name": "correction", "corrected_output": text, "principal": f"staff:{at}"}])
        for at, text in enumerate((one, other))
    ]  # fmt: skip
    assert evidence(*said)["contradiction"] == expected
    beside = weigh(said[:1], (), deployment=Deployment(), policy=Policy(), batch=[said[1].episode])
    assert beside["contradiction"] == expected
    own = [each.model_copy(update={"episode": each.episode.model_copy(update={
        "feedback": tuple(said.model_copy(update={"principal": each.episode.trace.user}) for said in each.episode.feedback)
    })}) for each in said]  # fmt: skip
    assert evidence(*own)["contradiction"] == 0.0


def asked_of_pickup(name: str, user: str, right: str | None = None, comment: str | None = None) -> Case:
    given = [{"score": 0.0}, *([{"name": "correction", "corrected_output": right}] if right else [])]
    given += [{"comment": comment}] if comment else []
    return case(
        name, source=user, user=user, input="where do I get it", output="At the Main Street shop.", feedback=given
    )


def test_several_causes_beside_a_cluster_that_nobody_corrected() -> None:
    fee = [asked_of_pickup(f"f{n}", f"u{n}", "At the Main Street shop, a fee is due.") for n in range(4)]
    card = [asked_of_pickup(f"c{n}", f"v{n}", "At the Main Street shop, bring your card.") for n in range(3)]
    wish = [
        asked_of_pickup(f"w{n}", f"w{n}", f"At the {shop} Street shop.")
        for n, shop in enumerate(("Elm", "Mill", "Dock"))
    ]
    mute = [asked_of_pickup(f"m{n}", f"m{n}", comment="wrong") for n in range(3)]

    def several(*beside: Case) -> float | None:
        batch = [each.episode for each in beside]
        return weigh(mute, (), deployment=Deployment(), policy=Policy(), batch=batch)["several_causes"]

    assert several(*fee, *card) == pytest.approx(3 / 7)
    assert several(*fee) == several(*wish) == 0.0
    assert several() is None
    assert evidence(*fee, *card)["several_causes"] is None


def of_users(*right: str, answer: str = "I do not know.") -> list[Case]:
    """Each user corrects the same answer to the same question."""
    return [
        case(f"{at}", source=f"u{at}", user=f"u{at}", input="can I return a sale item", output=answer,
             feedback=[{"score": 0.0, "principal": f"u{at}", "corrected_output": text}])
        for at, text in enumerate(right)
    ]  # fmt: skip


NEVER, DAYS = "Sale items can never be returned.", "Sale items can be returned within 30 days."


@pytest.mark.parametrize(
    ("right", "expected"),
    [
        ((NEVER, DAYS) * 3, 1.0),
        ((DAYS, "Sale items can be returned within 14 days.") * 2, 1.0),
        ((NEVER, *(DAYS,) * 5), 0.0),
        (("Your sale item can never be returned.", "Your sale item can be returned within 30 days.") * 3, 0.0),
        (("It is delivered on Monday.", "It is delivered on Tuesday.") * 3, 0.0),
        ((DAYS, "Sale items can be returned within 30 days, of course.") * 3, 0.0),
    ],
)
def test_users_who_deny_each_other_on_one_answer_are_a_contradiction(right: tuple[str, ...], expected: float) -> None:
    found = evidence(*of_users(*right))
    assert found["contradiction"] == expected
    if expected:
        given = PRIOR.probabilities(found, Deployment())
        assert max(given, key=lambda name: given[name]) == "none"


REPLY: dict[str, Any] = {"input": "close my account", "output": "Your account is deleted.", "user": "ann"}
ASK: dict[str, Any] = {
    "score": 0.0,
    "principal": "ann",
    "corrected_output": "Are you sure? All reservations will be lost.",
}
CONFIRMED: dict[str, Any] = {"name": "label", "span_external_id": "p", "principal": "staff", "corrected_output": "card"}


def predicted(name: str = "1", label: str = "card") -> Span:
    return span(name, "topics", external_id="p", kind="predict", input="close my account", output=label, confidence=0.9)


def test_a_confirmed_label_and_a_corrected_reply_are_no_contradiction() -> None:
    found = evidence(case("1", predicted(), feedback=[ASK, CONFIRMED], **REPLY))
    assert (found["contradiction"], found["model_step"]) == (0.0, 0.0)


def test_labels_of_two_steps_are_no_contradiction() -> None:
    steps = [predicted(), span("1", "tone", external_id="q", kind="predict", input="close my account", output="angry")]
    said = [
        {**CONFIRMED, "corrected_output": "account"},
        {**CONFIRMED, "span_external_id": "q", "corrected_output": "sad"},
    ]
    assert evidence(case("1", *steps, feedback=said, **REPLY))["contradiction"] == 0.0
    both = [{**CONFIRMED, "corrected_output": "account"}, {**CONFIRMED, "corrected_output": "other"}]
    assert evidence(case("1", *steps, feedback=both, **REPLY))["contradiction"] == 1.0


@pytest.mark.parametrize(
    ("said", "component"),
    [
        ([ASK], "answer"),
        ([ASK, CONFIRMED], "answer"),
        ([{**ASK, "corrected_output": ASK["corrected_output"] * 2}], "answer"),
        ([{**ASK, "name": "expected"}], "answer"),
        ([{**ASK, "corrected_output": "account"}], "answer"),
        ([{**ASK, "corrected_output": "account"}, CONFIRMED], "answer"),
        ([{"name": "label", "label": "lost card"}], "topics"),
        ([{**ASK, "span_external_id": "p", "corrected_output": "lost card"}], "topics"),
        ([{"score": 0.0}], "topics"),
        ([{"score": 0.0}, CONFIRMED], "answer"),
    ],
)
def test_a_correction_of_the_reply_is_no_label_of_the_prediction_before_it(
    said: list[dict[str, Any]], component: str
) -> None:
    found = case("1", predicted(), feedback=said, **REPLY)
    assert fingerprint(found).component == component


def test_where_the_output_is_the_label_a_correction_is_about_it() -> None:
    found = fingerprint(case("1", predicted(), feedback=[{"corrected_output": "account"}], output="card"))
    assert (found.component, found.served, found.corrected) == ("topics", "card", "account")


@pytest.mark.parametrize(
    ("said", "component"),
    [
        ([{**ASK, "corrected_output": "Lost card"}], "topics"),
        ([{**ASK, "corrected_output": "Mill"}], "answer"),
        ([{**ASK, "corrected_output": "lost card"}, CONFIRMED], "answer"),
    ],
)
def test_a_correction_of_the_reply_that_is_a_known_label_is_about_the_prediction(
    said: list[dict[str, Any]], component: str
) -> None:
    found = case("1", predicted(), feedback=said, **REPLY)
    read = naming_labels(found.episode, {"topics": {"card", "lost card"}})
    found = found.model_copy(update={"signals": detect(read, meanings={})})
    assert fingerprint(found).component == component
