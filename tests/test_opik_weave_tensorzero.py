"""Opik, Weave and TensorZero: updates, feedback that knows no trace, demonstrations; feedback comes before its trace."""

import json
from pathlib import Path
from typing import Any

import pytest

from store.database import open_store
from store.ingest import ingest
from store.records import Feedback, Span, Trace
from store.sources import Item, read, recognise
from store.traces import episodes

U1, U2, U3 = ("019562dc-d5b0-7e43-800d-3a5d37ec37a" + digit for digit in "123")
UUID_US = 1741120394672000
"""The time inside those UUIDs."""


def load(folder: Path, *values: object, name: str = "log.jsonl") -> list[Item]:
    file = folder / name
    file.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    return list(read(file))


def trace_of(items: list[Item]) -> Trace:
    (found,) = [item for item in items if isinstance(item, Trace)]
    return found


def spans_of(items: list[Item]) -> list[Span]:
    return [item for item in items if isinstance(item, Span)]


def said(items: list[Item]) -> list[Feedback]:
    return [item for item in items if isinstance(item, Feedback)]


def without_apart(items: list[Item]) -> str:
    return json.dumps([item.model_dump(mode="json", exclude={"held_apart"}) for item in items])


def opik(**fields: Any) -> dict[str, Any]:
    return {"id": U1, "project_name": "p", "name": "agent", "start_time": "2026-03-01T10:00:00Z", **fields}


def test_an_opik_trace_has_its_spans_its_scores_and_its_people(tmp_path: Path) -> None:
    score = {"name": "user_thumbs", "value": 0.0, "category_name": "down", "reason": "rude", "source": "ui"}
    page = {"content": [opik(thread_id="s3", input={"q": 1}, feedback_scores=[score | {"created_by": "ann"}])]}
    page["content"].append(opik(id=U2, trace_id=U1, type="llm", model="m", output={"a": 2}, usage={"prompt_tokens": 9}))
    items = load(tmp_path, page)
    assert recognise(tmp_path / "log.jsonl").name == "opik"
    trace, (given,) = trace_of(items), said(items)
    assert (trace.session, trace.input, trace.output, trace.input_tokens) == ("s3", {"q": 1}, {"a": 2}, 9)
    assert (given.score, given.label, given.comment, given.source_kind, given.principal) == (
        0.0,
        "down",
        "rude",
        "human",
        "ann",
    )
    assert given.trace_id == trace.id


def test_an_opik_error_has_its_class(tmp_path: Path) -> None:
    error = {"exception_type": "KeyError", "message": "ORD-404", "traceback": "Traceback ..."}
    (span,) = spans_of(load(tmp_path, opik(trace_id=U2, type="tool", error_info=error)))
    assert (span.status, span.error, span.error_type) == ("error", "ORD-404", "KeyError")
    assert span.attributes["traceback"] == "Traceback ..."


def test_columns_of_an_opik_table_are_scores(tmp_path: Path) -> None:
    file = tmp_path / "traces.csv"
    file.write_text(f"id,name,start_time,input,feedback_scores.quality\n{U1},a,2026-03-01T10:00:00Z,hi,0.25\n")
    items = list(read(file))
    assert [(item.name, item.score) for item in said(items)] == [("quality", 0.25)]
    assert trace_of(items).input == "hi"


def test_an_update_of_opik_whose_span_is_elsewhere_is_kept_by_itself(tmp_path: Path) -> None:
    name = f"0001_PATCH_api_v1_private_traces_{U1}.json"
    (trace,) = load(tmp_path, {"project_name": "p", "output": {"a": 1}, "source": "sdk"}, name=name)
    assert isinstance(trace, Trace)
    assert (trace.external_id, trace.output) == (U1, {"a": 1})


def test_a_score_of_an_opik_span_waits_for_the_span(tmp_path: Path) -> None:
    score = {"id": U2, "project_name": "p", "name": "n", "value": 1, "source": "sdk"}
    (given,) = load(tmp_path, {"scores": [score]}, name="1_PUT_api_v1_private_spans_feedback-scores.json")
    assert isinstance(given, Feedback)
    assert (given.trace_external_id, given.span_external_id) == (f"?span:{U2}", U2)


def weave(**fields: Any) -> dict[str, Any]:
    call = {
        "project_id": "e/p",
        "id": "c1",
        "trace_id": "t1",
        "parent_id": None,
        "op_name": "weave:///e/p/op/agent:AbC",
    }
    return call | {"started_at": "2026-03-01T10:00:00Z", "inputs": {"q": 1}, "attributes": {}, "summary": {}, **fields}


def test_a_weave_call_with_usage_is_a_models_step(tmp_path: Path) -> None:
    usage = {"claude": {"input_tokens": 5, "cache_read_input_tokens": 100, "output_tokens": 7}}
    child = weave(id="c2", parent_id="c1", op_name="weave:///e/p/op/chat:X", summary={"usage": usage})
    items = load(tmp_path, child, weave(thread_id="s3", attributes={"user_id": "u7"}))
    assert recognise(tmp_path / "log.jsonl").name == "weave"
    assert [(span.name, span.kind, span.model, span.input_tokens) for span in spans_of(items)] == [
        ("agent", "chain", None, None),
        ("chat", "llm", "claude", 105),
    ]
    trace = trace_of(items)
    assert (trace.external_id, trace.user, trace.session, trace.app_version) == ("t1", "u7", "s3", "AbC")


def test_starts_and_ends_of_weave_calls_are_one_call(tmp_path: Path) -> None:
    end = {"project_id": "e/p", "id": "c1", "trace_id": "t1", "ended_at": "2026-03-01T10:00:02Z", "output": 3}
    batch = [{"mode": "start", "req": {"start": weave()}}, {"mode": "end", "req": {"end": end | {"summary": {}}}}]
    (span,) = spans_of(load(tmp_path, {"batch": batch}))
    assert (span.input, span.output, span.status) == ({"q": 1}, 3, "ok")


def test_the_example_of_a_weave_evaluation_is_held_apart_and_nowhere_else(tmp_path: Path) -> None:
    call = weave(op_name="weave:///e/p/op/Evaluation.predict_and_score:X", inputs={"example": {"answer": "SECRET-1"}})
    items = load(tmp_path, call | {"attributes": {"ground_truth": "SECRET-2"}})
    assert trace_of(items).held_apart == {"example": {"answer": "SECRET-1"}, "ground_truth": "SECRET-2"}
    assert "SECRET" not in without_apart(items)


def test_gold_in_opiks_metadata_is_held_apart_and_nowhere_else(tmp_path: Path) -> None:
    items = load(tmp_path, opik(metadata={"expected_output": "SECRET", "tier": "a"}))
    assert trace_of(items).held_apart == {"expected_output": "SECRET"}
    assert "SECRET" not in without_apart(items)


@pytest.mark.parametrize("order", [("calls", "feedback"), ("feedback", "calls")])
def test_feedback_on_a_weave_call_finds_its_trace_whichever_comes_first(tmp_path: Path, order: tuple[str, str]) -> None:
    feedback = {"weave_ref": "weave:///e/p/call/c2", "feedback_type": "wandb.note.1", "payload": {"note": "wrong"}}
    files = {
        "calls": load(tmp_path, weave(), weave(id="c2", parent_id="c1"), name="calls.jsonl"),
        "feedback": load(tmp_path, feedback | {"id": "f1", "creator": "ann"}, name="feedback.jsonl"),
    }
    store = open_store(f"sqlite:///{tmp_path / 'filmroom.db'}", create=True)
    for name in order:
        ingest(store, files[name])
    with store.read() as connection:
        (episode,) = episodes(connection, [trace_of(files["calls"]).id])
    assert [(item.comment, item.span_external_id, item.principal) for item in episode.feedback] == [
        ("wrong", "c2", "ann")
    ]


def inference(**fields: Any) -> dict[str, Any]:
    row = {"id": U1, "function_name": "answer", "variant_name": "v2", "episode_id": "e1", "processing_time_ms": 1500}
    sent = {"system": "be kind", "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]}
    got = [{"type": "text", "text": "hello"}]
    return row | {"input": json.dumps(sent), "output": json.dumps(got), "tags": {"user_id": "u7"}, **fields}


def test_an_inference_of_tensorzero_is_a_trace_at_the_time_in_its_id(tmp_path: Path) -> None:
    items = load(tmp_path, inference())
    assert recognise(tmp_path / "log.jsonl").name == "tensorzero"
    trace, (span,) = trace_of(items), spans_of(items)
    assert (trace.input, trace.output, trace.session, trace.user) == ("hi", "hello", "e1", "u7")
    assert (trace.name, trace.prompt_version) == ("answer", "v2")
    assert (trace.started_us, trace.ended_us) == (UUID_US, UUID_US + 1_500_000)
    assert span.kind == "llm"


def test_tool_calls_of_tensorzero_are_steps(tmp_path: Path) -> None:
    blocks = [{"type": "tool_call", "id": "c1", "name": "get", "arguments": {"id": 7}, "raw_arguments": '{"id": 7}'}]
    _, tool = spans_of(load(tmp_path, inference(output=json.dumps(blocks))))
    assert (tool.kind, tool.name, tool.input, tool.tool_call_id) == ("tool", "get", {"id": 7}, "c1")


def test_feedback_of_tensorzero_joins_its_inference(tmp_path: Path) -> None:
    trace = trace_of(load(tmp_path, inference()))
    demonstration = {"id": U2, "inference_id": U1, "value": json.dumps([{"type": "text", "text": "good day"}])}
    given = said(
        load(
            tmp_path,
            {"id": U2, "target_id": U1, "metric_name": "user_rating", "value": 0.5, "tags": {}},
            {"id": U3, "target_id": U1, "metric_name": "exact_match", "value": False},
            {"id": U3, "target_id": U1, "target_type": "inference", "value": "too short"},
            demonstration | {"tags": {"author": "Alice"}},
            {"id": U3, "target_id": "e1", "target_type": "episode", "value": "all wrong"},
            name="feedback.jsonl",
        )
    )
    assert [(item.name, item.score, item.comment, item.corrected_output) for item in given] == [
        ("user_rating", 0.5, None, None),
        ("exact_match", 0.0, None, None),
        ("comment", None, "too short", None),
        ("demonstration", None, None, "good day"),
        ("comment", None, "all wrong", None),
    ]
    assert [item.trace_id == trace.id for item in given] == [True, True, True, True, False]
    assert [item.source_kind for item in given] == ["human", "program", "human", "human", "human"]
    assert (given[3].principal, given[0].given_us, given[4].trace_external_id) == ("Alice", UUID_US, "?session:e1")


def test_the_output_of_a_datapoint_is_held_apart_and_nowhere_else(tmp_path: Path) -> None:
    row = inference(dataset_name="d", output=json.dumps([{"type": "text", "text": "SECRET"}]))
    del row["variant_name"]
    items = load(tmp_path, row, row | {"id": U2, "is_deleted": True})
    assert trace_of(items).held_apart == {"expected_output": "SECRET"}
    assert "SECRET" not in without_apart(items)
