"""What failures of one cluster have in common, and what it is called."""

from typing import Any

import pytest

from models.detector import detect
from models.error_class import edit_class, error_class, named_argument
from models.fingerprint import cluster_name, failing_step, fingerprint
from store.records import Case, Episode, Failure, Feedback, Fingerprint, Span, Trace


def span(name: str, **fields: Any) -> Span:
    fields = {"kind": "tool", "external_id": name, **fields}
    return Span(source="s", trace_external_id="1", name=name, **fields)


def feedback(**fields: Any) -> Feedback:
    return Feedback(source="s", trace_external_id="1", external_id="f", **fields)


def case(*parts: Span | Feedback, **trace: Any) -> Case:
    found = Episode(
        trace=Trace(source="s", external_id="1", **trace),
        spans=tuple(part for part in parts if isinstance(part, Span)),
        feedback=tuple(part for part in parts if isinstance(part, Feedback)),
    )
    failure = Failure(trace_id=found.trace.id, picked_us=0, probability=1.0)
    return Case(failure=failure, episode=found, signals=detect(found, meanings={}))


def print_of(component: str, **fields: Any) -> Fingerprint:
    return Fingerprint(version=1, component=component, **{"kind": "tool", "error_class": "none", **fields})


def test_a_tool_that_lacks_an_argument_is_named_by_it() -> None:
    found = fingerprint(
        case(span("update_order", input={"id": 1}, output="Error: missing required argument 'address'"))
    )
    assert found == print_of("update_order", error_class="validation", schema_path="address", corrected="missing")
    assert cluster_name(found) == "`update_order` fails: address missing"


def test_a_wrong_label_enters_verbatim_with_intent_and_scope() -> None:
    router = span("router", kind="predict", output="orders")
    picker = span("picker", kind="predict", output="refund")
    truth = feedback(name="label", label="exchange", span_external_id="picker")
    found = fingerprint(case(router, picker, truth, channel="web"))
    assert found == print_of(
        "picker", kind="predict", served="refund", corrected="exchange", intent="orders", scope="web"
    )
    assert cluster_name(found) == "`picker` answers `refund` where `exchange` is right for orders on web"


def test_a_rejected_prediction_is_named_by_the_right_label() -> None:
    found = fingerprint(case(span("router", kind="predict", output=None), feedback(name="label", label="refund")))
    assert cluster_name(found) == "`router` answers nothing where `refund` is right"


def test_free_text_enters_only_as_an_edit_class() -> None:
    found = fingerprint(case(feedback(corrected_output="Call Ann on 555-0199"), output="Call Ann on 555-0100"))
    assert found == print_of("answer", kind="agent", corrected="number")
    assert cluster_name(found) == "answer corrected: another number"


def test_a_long_label_is_free_text() -> None:
    long = "my name is Ann " * 10
    found = fingerprint(case(span("router", kind="predict", output="a"), feedback(name="label", label=long)))
    assert "Ann" not in found.key


def test_a_bad_verdict_without_a_failing_step_is_known_by_the_last_act() -> None:
    steps = (span("get_order", output="x"), span("cancel_order", output="y"), span("get_user", output="z"))
    found = fingerprint(case(*steps, feedback(name="reward", score=0.0)))
    assert found == print_of("cancel_order", kind="agent")
    assert cluster_name(found) == "judged wrong after `cancel_order`, no step failed"


def test_a_bad_verdict_on_a_trace_without_steps_is_the_answers() -> None:
    assert cluster_name(fingerprint(case(feedback(score=0.0)))) == "answer judged wrong, no step failed"


def test_a_thumb_on_a_prediction_is_known_by_the_served_label() -> None:
    found = fingerprint(case(span("router", kind="predict", output="refund"), feedback(score=0.0)))
    assert cluster_name(found) == "`router` answers `refund` where the right answer is not said"


def test_the_failing_step_is_the_cause_and_not_the_chain_around_it() -> None:
    found = case(span("flow", kind="chain", error="boom"), span("pay", error="HTTP 503"), span("m", kind="llm"))
    step = failing_step(found.episode, found.signals)
    assert step is not None
    assert step.name == "pay"
    assert fingerprint(found).error_class == "transient"


def test_the_step_a_bad_verdict_names_is_the_failing_one() -> None:
    found = case(span("a", output="x"), span("b", output="y"), feedback(score=0.0, span_external_id="a"))
    step = failing_step(found.episode, found.signals)
    assert step is not None
    assert step.name == "a"


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        (None, None, "none"),
        ("", "TimeoutError", "transient"),
        ("HTTP 429", None, "transient"),
        ("boom", "503", "transient"),
        ("500 dollars were paid twice", None, "other"),
        ("status code: 502", None, "transient"),
        ("you cannot pay 500 dollars", None, "other"),
        ("401 Unauthorized", None, "auth"),
        ("Error: order not found", None, "not_found"),
        ("Error: non-delivered order cannot be exchanged", None, "validation"),
        ("x", "ValidationError", "validation"),
        ("内部错误", None, "other"),
    ],
)
def test_error_class(text: str | None, kind: str | None, expected: str) -> None:
    assert error_class(text, kind) == expected


@pytest.mark.parametrize(
    ("served", "corrected", "expected"),
    [
        ("", "Yes", "missing"),
        ("Refunds", "Refunds within Europe", "missing"),
        ("order shipped", "Order  shipped!", "format"),
        ("you may cancel", "you may not cancel", "negation"),
        ("das ist erlaubt", "das ist nicht erlaubt", "negation"),
        ("5 days", "10 days", "number"),
        ("ships to Paris", "ships to Rome", "entity"),
        ("ask the shop", "call a friend", "other"),
        ("返品できます", "交換できます", "other"),
    ],
)
def test_edit_class(served: str, corrected: str, expected: str) -> None:
    assert edit_class(served, corrected) == expected


def test_an_argument_is_named_only_by_an_identifier_of_the_call() -> None:
    assert named_argument("no payment method of Ann Smith", ["payment_method_id", "user_id"]) == (
        "payment_method_id",
        False,
    )
    assert named_argument("Ann Smith is unknown", ["user_id"]) == ("", False)
