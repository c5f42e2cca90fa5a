"""Evidence from people's words, from what was at hand, and about the label itself."""

from collections.abc import Sequence
from typing import Any

import pytest

from models.detector import detect
from models.evidence import Deployment, weigh
from models.features.blame import blamed
from store.records import Case, Episode, Failure, Feedback, Policy, Span, Trace


def episode(trace: str, *spans: Span, right: Any = None, comment: str | None = None, **fields: Any) -> Episode:
    said = Feedback(
        source="s", trace_external_id=trace, external_id="f", score=0.0, corrected_output=right, comment=comment
    )
    return Episode(trace=Trace(source="s", external_id=trace, **fields), spans=spans, feedback=(said,))


def span(trace: str, kind: Any, **fields: Any) -> Span:
    return Span(source="s", trace_external_id=trace, external_id=fields.pop("id", kind), kind=kind, **fields)


def case(found: Episode, source: str = "unknown", authority: bool = False) -> Case:
    failure = Failure(trace_id=found.trace.id, picked_us=0, probability=1, source=source, authority=authority)
    return Case(failure=failure, episode=found, signals=detect(found, meanings={}))


def evidence(*cases: Case, batch: Sequence[Episode] = (), **deployment: Any) -> dict[str, float | None]:
    return weigh(cases, (), deployment=Deployment(**deployment), policy=Policy(), batch=batch)


def intent(trace: str, right: str, confidence: float | None, **case_fields: Any) -> Case:
    step = span(trace, "predict", name="bot", model="bot", input="hi", output="greet", confidence=confidence)
    return case(episode(trace, step, right=right), **case_fields)


def question(trace: str, output: Any = None, answer: str = "I don't know.", **fields: Any) -> Episode:
    read = span(trace, "memory", name="memory", output=output, **fields)
    return episode(trace, read, right="size 42", input=f"my size, {trace}?", output=answer)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("The user agent incorrectly assumed a date", {"request": 1.0}),
        ("The task description is not aligned, which led to an inaccurate answer", {"instruction": 1.0}),
        ("No exception handler when the context is too long", {"program": 1.0}),
        ("The agent made a logical error in scenario 2", {"model": 1.0}),
        ("TypeError in the parser. It calculated wrongly.", {"program": 0.5, "model": 0.5}),
        ("prompt injection", {}),
        ("thanks anyway", {}),
        ("", {}),
    ],
)
def test_a_sentence_blames_what_it_names_first(said: str, expected: dict[str, float]) -> None:
    assert blamed(said) == expected


def test_words_that_blame_a_model_count_only_where_it_can_be_retrained() -> None:
    wrong = case(episode("1", span("1", "llm", model="gpt", output="3"), comment="It calculated wrongly."))
    assert evidence(wrong)["model_blamed"] is None
    assert evidence(wrong, models={"gpt": None})["model_blamed"] == 1.0
    assert evidence(wrong)["program_blamed"] == 0.0


def test_no_comment_blames_nothing_and_that_is_not_measured() -> None:
    assert evidence(case(episode("1", comment="不对")))["request_blamed"] is None


def test_a_memory_that_did_not_bring_the_correction() -> None:
    assert evidence(case(question("1", {"recalled": 3})))["unremembered"] == 1.0
    assert evidence(case(question("1", {"recalled": 3}, answer="size 44")))["unremembered"] == 0.0
    assert evidence(case(question("1", memories=("size 44",))))["unremembered"] == 1.0
    assert evidence(case(question("1", memories=("wears Size 42",))))["unremembered"] == 0.0
    assert evidence(case(episode("1", right="size 42", output="44")))["unremembered"] is None


def test_a_retrieval_that_did_not_bring_the_correction() -> None:
    search = span("1", "retrieval", name="search", documents=("returns within 14 days",))
    found = evidence(case(episode("1", search, right="30 days", output="14 days")))
    assert (found["retrieval_miss"], found["unremembered"]) == (1.0, None)


def test_overlooked_is_the_share_of_the_correction_that_the_model_was_shown() -> None:
    answer = span("1", "llm", name="gpt", input="we met on 9 June", output="in July")
    assert evidence(case(episode("1", answer, right="9 June 2023", output="in July")))["overlooked"] == 2 / 3
    assert evidence(case(episode("1", right="9 June", output="in July")))["overlooked"] is None


def test_a_service_that_brings_nothing_for_anybody_is_silent() -> None:
    down = [question(str(at), []) for at in range(5)]
    assert evidence(case(down[0]), batch=down)["batch_silence"] == 1.0
    assert evidence(case(down[0]), batch=down[:4])["batch_silence"] == 0.0
    assert evidence(case(down[0]), batch=[*down, question("9", ["a fact"])])["batch_silence"] == 0.0
    assert evidence(case(question("1")), batch=[question(str(at)) for at in range(9)])["batch_silence"] is None


def test_one_question_asked_again_is_no_silence() -> None:
    again = [question("1", []) for _ in range(9)]
    assert evidence(case(again[0]), batch=again)["batch_silence"] == 0.0


def test_label_noise_sets_the_models_probability_against_the_sources() -> None:
    assert evidence(intent("1", "bye", 0.9))["label_noise"] == pytest.approx(0.5)
    assert evidence(intent("1", "bye", 0.5))["label_noise"] == pytest.approx(0.1)
    agreeing = [intent(str(at), "bye", 0.9, source=f"u{at}") for at in range(2)]
    assert evidence(*agreeing)["label_noise"] == pytest.approx(0.1)
    assert evidence(intent("1", "bye", 1.0))["label_noise"] == pytest.approx(11 / 12)


def test_an_authoritys_label_and_one_without_a_probability_are_not_doubted() -> None:
    assert evidence(intent("1", "bye", 0.9, authority=True))["label_noise"] is None
    assert evidence(intent("1", "bye", None))["label_noise"] is None


@pytest.mark.parametrize(
    "label", ["NO_NODES_DETECTED", "out_of_scope", "oos", "None", "default fallback intent", "no match"]
)
def test_a_label_that_says_no_class_fits_cannot_be_learnt_without_such_a_class(label: str) -> None:
    found = evidence(intent("1", label, 0.3), models={"bot": None})
    assert (found["no_class"], found["rejectable"]) == (1.0, 1.0)
    assert evidence(intent("1", label, 0.7), models={"bot": None})["rejectable"] == 0.0
    assert evidence(intent("1", label, 0.3), models={"bot": label})["no_class"] in (0.0, None)


def test_an_ordinary_label_is_a_class() -> None:
    assert evidence(intent("1", "no_refund_wanted", 0.3), models={"bot": None})["no_class"] == 0.0
