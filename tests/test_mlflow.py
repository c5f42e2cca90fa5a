"""MLflow 2 and 3: ids, attributes in JSON, assessments and expectations, traces that are broken or still running."""

import json
from pathlib import Path
from typing import Any

from store.records import Feedback, Rejected, Span, Trace
from store.sources import Item, SourceOptions, read, recognise
from store.sources.mlflow import items_of_trace

ROOT = "AQIDBAUGBwg="
"""The base64 of 0102030405060708."""
START_US = 1772359200000000


def span(**fields: Any) -> dict[str, Any]:
    attributes = {"mlflow.spanType": '"AGENT"', "mlflow.spanInputs": '{"q": 1}'} | fields.pop("attributes", {})
    return {
        "trace_id": "yYyqlXZQAwyPpUqH0juyvA==",
        "span_id": ROOT,
        "parent_span_id": None,
        "name": "agent",
        "start_time_unix_nano": START_US * 1000 + 7,
        "end_time_unix_nano": START_US * 1000 + 2_000_000_000,
        "events": [],
        "status": {"code": "STATUS_CODE_OK", "message": ""},
        "attributes": attributes,
        **fields,
    }


def trace(*spans: dict[str, Any], **info: Any) -> dict[str, Any]:
    said = {"trace_id": "tr-1", "request_time": "2026-03-01T10:00:00Z", "state": "OK", "execution_duration_ms": 2000}
    return {"info": said | info, "data": {"spans": list(spans)}}


def items(*spans: dict[str, Any], **info: Any) -> list[Item]:
    return items_of_trace(trace(*spans, **info), SourceOptions())


def assessment(**fields: Any) -> dict[str, Any]:
    source = {"source_type": "HUMAN", "source_id": "ann"}
    return {
        "assessment_id": "a1",
        "assessment_name": "n",
        "trace_id": "tr-1",
        "source": source,
        "valid": True,
        **fields,
    }


def feedback(*assessments: dict[str, Any]) -> list[Feedback]:
    return [item for item in items(assessments=list(assessments)) if isinstance(item, Feedback)]


def test_ids_in_base64_are_hexadecimal_and_times_keep_their_nanoseconds() -> None:
    child = span(span_id="CAcGBQQDAgE=", parent_span_id=ROOT)
    found = [item for item in items(child, span()) if isinstance(item, Span)]
    assert [(item.external_id, item.parent_external_id) for item in found] == [
        ("0102030405060708", None),
        ("0807060504030201", "0102030405060708"),
    ]
    assert (found[0].started_us, found[0].started_ns, found[0].ended_us) == (START_US, 7, START_US + 2_000_000)


def test_a_trace_has_the_input_of_its_root_and_not_the_copy_that_was_cut() -> None:
    copies = {"mlflow.traceInputs": '{"q": "xxx...', "mlflow.trace.user": '"alice"', "mlflow.trace.session": "s"}
    found = items(span(attributes={"mlflow.spanOutputs": '"yes"'}), trace_metadata=copies)[0]
    assert isinstance(found, Trace)
    assert (found.input, found.output, found.user, found.session, found.attributes) == (
        {"q": 1},
        "yes",
        "alice",
        "s",
        {},
    )


def test_a_trace_without_spans_has_the_copy_and_says_that_it_was_cut() -> None:
    (found,) = items(trace_metadata={"mlflow.traceInputs": '{"q": "xxx...', "mlflow.traceOutputs": '"yes"'})
    assert isinstance(found, Trace)
    assert (found.input, found.output, found.attributes) == ('{"q": "xxx...', "yes", {"truncated": ["input"]})


def test_a_trace_that_is_still_running_has_no_end_and_no_status() -> None:
    found = items(span(parent_span_id="CAcGBQQDAgE="), state="IN_PROGRESS", execution_duration_ms=0)[0]
    assert isinstance(found, Trace)
    assert (found.status, found.ended_us, found.started_us) == ("unset", None, START_US)


def test_numbers_that_are_none_become_null_and_leave_a_mark() -> None:
    found = items(span(attributes={"mlflow.spanOutputs": '{"score": NaN, "x": 1}'}))[1]
    assert isinstance(found, Span)
    assert (found.output, found.attributes) == ({"score": None, "x": 1}, {"not_finite": ["output"]})


def test_an_exception_says_the_class_of_an_error() -> None:
    event = {"name": "exception", "attributes": {"exception.type": "KeyError", "exception.message": "'ORD-404'"}}
    found = items(span(status={"code": "STATUS_CODE_ERROR", "message": ""}, events=[event]), state="ERROR")
    assert isinstance(found[0], Trace)
    assert isinstance(found[1], Span)
    assert (found[1].status, found[1].error, found[1].error_type) == ("error", "KeyError: 'ORD-404'", "KeyError")
    assert (found[0].status, found[0].error) == ("error", "KeyError: 'ORD-404'")


def test_cached_tokens_that_are_beside_the_input_are_added_to_it() -> None:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 100, "output_tokens": 7, "total_tokens": 112}
    found = items(span(attributes={"mlflow.chat.tokenUsage": json.dumps(usage)}))[1]
    assert isinstance(found, Span)
    assert (found.input_tokens, found.output_tokens) == (105, 7)
    assert found.attributes == {"cache_read_tokens": 100}


def test_an_assessment_that_was_superseded_is_left_out() -> None:
    first = assessment(feedback={"value": False}, valid=False)
    second = assessment(assessment_id="a2", feedback={"value": True}, overrides="a1")
    assert [item.external_id for item in feedback(first, second)] == ["a2"]
    assert [item.external_id for item in feedback(first | {"valid": True}, second)] == ["a2"]


def test_verdicts_are_scores_or_labels_and_a_judge_that_failed_is_neither() -> None:
    error = {"error_code": "ValueError", "error_message": "rate limited"}
    judge = {"source_type": "LLM_JUDGE", "source_id": "m"}
    given = feedback(
        assessment(feedback={"value": False}),
        assessment(assessment_id="a2", feedback={"value": "no"}, source=judge),
        assessment(assessment_id="a3", feedback={"value": None, "error": error}, source=judge),
        assessment(assessment_id="a4", feedback={"value": {"tone": 4.0}}, rationale="curt"),
    )
    assert [(item.score, item.label, item.source_kind) for item in given] == [
        (0.0, None, "human"),
        (None, "no", "judge"),
        (None, None, "judge"),
        (None, None, "human"),
    ]
    assert (given[2].attributes, given[3].attributes) == ({"error": error}, {"value": {"tone": 4.0}})
    assert given[3].comment == "curt"


def test_what_a_person_expected_is_the_corrected_output() -> None:
    value = {"serialization_format": "JSON_FORMAT", "value": '["30 days"]'}
    given = feedback(
        assessment(expectation={"value": "No."}),
        assessment(assessment_id="a2", expectation={"serialized_value": value}),
    )
    assert [item.corrected_output for item in given] == ["No.", ["30 days"]]


def test_what_a_dataset_expected_is_held_apart_and_nowhere_else() -> None:
    expected = assessment(expectation={"value": "SECRET-1"}, source={"source_type": "CODE", "source_id": "eval"})
    scorer = span(attributes={"mlflow.spanInputs": '{"inputs": 1, "expectations": {"expected_response": "SECRET-2"}}'})
    found = items(scorer, assessments=[expected], tags={"ground_truth": "SECRET-3"})
    assert isinstance(found[0], Trace)
    assert found[0].held_apart == {
        "n": "SECRET-1",
        "expectations": {"expected_response": "SECRET-2"},
        "ground_truth": "SECRET-3",
    }
    assert "SECRET" not in json.dumps([item.model_dump(mode="json", exclude={"held_apart"}) for item in found])


def test_an_assessment_in_a_file_of_its_own_names_its_trace(tmp_path: Path) -> None:
    file = tmp_path / "assessments.jsonl"
    file.write_text(json.dumps(assessment(feedback={"value": True})))
    (given,) = read(file)
    assert isinstance(given, Feedback)
    assert given.trace_id == items(span())[0].id  # type: ignore[union-attr]  # the first is the trace


def test_a_span_without_an_id_is_rejected_alone() -> None:
    found = items(span(), span(span_id=None))
    assert [type(item) for item in found] == [Trace, Span, Rejected]


def test_a_table_written_by_pandas_is_read_like_the_records(tmp_path: Path) -> None:
    file = tmp_path / "traces.csv"
    cells = {"trace_id": "tr-1", "state": "OK", "request_time": 1772359200000, "execution_duration": 2000}
    cells |= {"request": {"x": float("nan")}, "response": "yes", "trace_metadata": {"mlflow.trace.user": "u"}}
    cells |= {"tags": {}, "spans": [span()], "assessments": [assessment(feedback={"value": True})]}
    quoted = ['"' + str(cell).replace('"', '""') + '"' for cell in cells.values()]
    file.write_text(",".join(cells) + "\n" + ",".join(quoted) + "\n")
    assert recognise(file).name == "mlflow"
    found, step, given = read(file)
    assert isinstance(found, Trace)
    assert isinstance(step, Span)
    assert isinstance(given, Feedback)
    assert (found.user, found.ended_us, step.kind, given.score) == ("u", START_US + 2_000_000, "agent", 1.0)
