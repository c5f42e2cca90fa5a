"""What real files of the tracing systems hold, counted and copied by hand from the files themselves."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from store.records import Feedback, Rejected, Span, Trace
from store.sources import Item, SourceOptions, read, recognise
from store.sources.json_records import take_sample
from store.sources.mlflow import items_of_trace
from store.sources.mlflow_spans import plain_value
from store.sources.payload import cut_fields
from store.sources.rows import read_rows
from store.sources.usage import exclusive

UTC = SourceOptions(timezone="UTC")


class Holds(NamedTuple):
    """What is in a file."""

    traces: int = 0
    spans: int = 0
    feedback: int = 0
    corrected: int = 0
    """Feedback with what should have been answered."""
    apart: int = 0
    """Traces with evaluation data."""
    rejected: int = 0


FILES: dict[str, Holds] = {
    "langfuse/agno-2025-06-11.trace.json": Holds(1, 6),
    "langfuse/autogen-2025-06-06.trace.json": Holds(1, 2),
    "langfuse/claude-agent-2025-12-22.trace.json": Holds(1, 7, 3),
    "langfuse/crewai-2025-07-11.trace.json": Holds(1, 6, 2),
    "langfuse/csharp-agent-with-gemini-2026-03-09.trace.json": Holds(1, 8),
    "langfuse/google-gemini-2025-08-01.trace.json": Holds(1, 1, 2),
    "langfuse/langgraph-js-2025-10-30.trace.json": Holds(1, 20, 2),
    "langfuse/langgraph-python-2025-08-22.trace.json": Holds(1, 9, 2),
    "langfuse/llamaindex-2025-06-05.trace.json": Holds(1, 2),
    "langfuse/microsoft-agent-2025-12-17.trace.json": Holds(1, 4, 3),
    "langfuse/pydantic-ai-2025-06-06.trace.json": Holds(1, 3, 1, corrected=1),
    "langfuse/pydantic-ai-tools-2025-06-06.trace.json": Holds(1, 3, 1, corrected=1),
    "langfuse/pydantic-ai-with-gemini-2025-12-24.trace.json": Holds(1, 1),
    "langfuse/vercel-aisdk-2025-11-17.trace.json": Holds(1, 3, 2),
    "langfuse/py_sdk_5.0.4_scores.json": Holds(0, 0, 6, corrected=1),
    "mlflow/v2_trace_agent.json": Holds(1, 3),
    "mlflow/v2_search_traces.records.jsonl": Holds(1, 3),
    "mlflow/v3_trace_agent_assessed.json": Holds(1, 5, 7, corrected=2),
    "mlflow/v3_trace_agent_tool_error.json": Holds(1, 5),
    "mlflow/v3_trace_huge.json": Holds(1, 1),
    "mlflow/v3_trace_multimodal.json": Holds(1, 1),
    "mlflow/v3_search_traces.records.jsonl": Holds(7, 15, 7, corrected=2),
    "mlflow/v3_search_traces.csv": Holds(7, 15, 7, corrected=2),
    "langsmith/langsmith_js_wrap_openai_default.json": Holds(1, 1),
    "langsmith/langsmith_js_wrap_openai_reasoning.json": Holds(1, 1),
    "langsmith/py_sdk_0.15_runs_batch.json": Holds(1, 4),
    "langsmith/py_sdk_0.15_runs_multipart.bin": Holds(1, 4),
    "langsmith/py_sdk_0.15_runs_multipart.headers.json": Holds(),
    "langsmith/py_sdk_0.15_feedback_model.json": Holds(0, 0, 1),
    "openai/batch_input_cookbook_head3.jsonl": Holds(rejected=2),
    "openai/batch_output_doc_example.jsonl": Holds(2, 2),
    "openai/chat_completions_example.json": Holds(1, 1),
    "openai/chat_completions_function_example.json": Holds(1, 2),
    "openai/chat_completions_streaming_function_example.jsonl": Holds(1, 2),
    "openai/langsmith_sdk_responses_api_and_gemini_cassettes.jsonl": Holds(2, 3),
    "openai/openinference_openai_cassettes.jsonl": Holds(7, 9),
    "anthropic/message_batch_results_doc_example.jsonl": Holds(4, 4),
    "anthropic/openinference_anthropic_cassettes.jsonl": Holds(25, 31),
    "anthropic/reasoning-tool-use-non-streaming.json": Holds(1, 2),
    "anthropic/redacted-thinking-non-streaming.json": Holds(1, 1),
    "opik/py_sdk_2.2.122_0041_POST_api_v1_private_spans_batch.json": Holds(0, 3),
    "opik/py_sdk_2.2.122_0042_POST_api_v1_private_traces_batch.json": Holds(1),
    "opik/py_sdk_2.2.122_0043_PUT_api_v1_private_spans_feedback-scores.json": Holds(0, 0, 1),
    "opik/py_sdk_2.2.122_0044_PUT_api_v1_private_traces_feedback-scores.json": Holds(0, 0, 2),
    "weave/claude_agent_sdk_tool_use_response.json": Holds(1, 3),
    "weave/py_sdk_0.54_calls_complete.json": Holds(1, 3),
    "weave/py_sdk_0.54_feedback_batch_create.json": Holds(0, 0, 3, corrected=1),
    "tensorzero/chat_datapoint_fixture.jsonl": Holds(41, apart=31),
    "tabular/derived_predictions_500.jsonl": Holds(500, 500),
    "tabular/derived_delayed_labels.jsonl": Holds(0, 0, 465, corrected=465),
    "tabular/nannyml_california_housing_analysis_head500.csv": Holds(500, 500),
    "tabular/nannyml_mc_analysis_head500.csv": Holds(500, 500),
    "tabular/nannyml_mc_analysis_gt_head500.csv": Holds(0, 0, 500, corrected=500),
    "tabular/nannyml_synthetic_car_loan_analysis_head2000.csv": Holds(2000, 2000),
    "tabular/nannyml_synthetic_car_loan_dq_analysis_head2000.csv": Holds(2000, 2000),
    "issues/langfuse_17413_observation_without_trace_id.json": Holds(1, 1),
    "issues/langsmith-sdk_751_dotted_order_without_parent.json": Holds(1, 1),
    "issues/litellm_37269_trace_id_not_root_run_id.json": Holds(1, 1),
    "issues/openai-openapi_302_batch_4xx_error_null.jsonl": Holds(2, 2),
}
MAPPED = {
    "tabular/nannyml_california_housing_analysis_gt_head500.csv": ({"label": "clf_target"}, 500),
    "tabular/nannyml_synthetic_car_loan_analysis_target_head2000.csv": ({"label": "repaid"}, 2000),
}


def sample(shared: Path, name: str) -> Path:
    path = shared / "samples" / name
    if not path.exists():
        pytest.skip(f"no sample {path}")
    return path


def holds(items: list[Item]) -> Holds:
    said = [item for item in items if isinstance(item, Feedback)]
    traces = [item for item in items if isinstance(item, Trace)]
    return Holds(
        len(traces),
        sum(isinstance(item, Span) for item in items),
        len(said),
        sum(item.corrected_output is not None for item in said),
        sum(bool(item.held_apart) for item in traces),
        sum(isinstance(item, Rejected) for item in items),
    )


def the(items: list[Item], name: str) -> Any:
    """The one trace, or the one span or feedback of this name."""
    kinds = Trace if name == "trace" else (Span, Feedback)
    (found,) = [item for item in items if isinstance(item, kinds) and (name == "trace" or item.name == name)]
    return found


@pytest.mark.parametrize("name", FILES)
def test_a_real_file_holds_what_was_counted_by_hand(shared: Path, name: str) -> None:
    path = sample(shared, name)
    expected = "anthropic" if path.name.startswith("claude_agent_sdk") else name.split("/", maxsplit=1)[0]
    if expected == "issues":
        expected = path.name.split("_")[0].split("-")[0].replace("litellm", "langsmith")
    assert recognise(path).name == expected
    assert holds(list(read(path, options=UTC))) == FILES[name]


@pytest.mark.parametrize("name", MAPPED)
def test_a_file_of_targets_holds_a_label_a_row(shared: Path, name: str) -> None:
    columns, rows = MAPPED[name]
    items = list(read(sample(shared, name), options=SourceOptions(columns=columns)))
    assert holds(items) == Holds(feedback=rows, corrected=rows)


FIELDS: dict[str, Mapping[str, Mapping[str, Any]]] = {
    "langfuse/autogen-2025-06-06.trace.json": {
        "trace": {
            "external_id": "1b72c51fabed12ae7df83bfd4a09f545",
            "user": "user_123",
            "session": "session_abc",
            "app_version": "1.0.0",
            "input": "Say 'Hello World!'",
            "output": "Hello World!",
            "started_us": 1749209493965000,
            "input_tokens": 41,
            "output_tokens": 3,
        },
        "chat gpt-4o": {"kind": "llm", "parent_external_id": "95f4f51edeb603d9", "model": "gpt-4o"},
    },
    "langfuse/pydantic-ai-2025-06-06.trace.json": {
        "trace": {"input": "What is Langfuse?"},
        "output": {"principal": "cm167x5rh00018bk3mcnituff", "source_kind": "human", "score": None},
    },
    "langfuse/langgraph-js-2025-10-30.trace.json": {
        "get_weather": {
            "kind": "tool",
            "input": {"city": "San Francisco"},
            "tool_call_id": "call_VEZJgIQLgzcb80IIyQJm7JCi",
        },
        "trace": {"input_tokens": 321, "output_tokens": 123, "model": "gpt-5-mini-2025-08-07"},
    },
    "langfuse/langgraph-python-2025-08-22.trace.json": {"Web-Search": {"kind": "tool", "input": {"query": "example"}}},
    "langfuse/claude-agent-2025-12-22.trace.json": {
        "correctness": {"score": 0.0, "source_kind": "judge"},
        "hallucination": {"score": 1.0, "source_kind": "judge"},
    },
    "langfuse/py_sdk_5.0.4_scores.json": {
        "user-feedback": {"score": 0.0, "comment": "wrong policy", "source_kind": "human"},
        "failure_mode": {"label": "hallucination", "score": None},
        "expected": {"corrected_output": "No: the 30-day window has passed.", "label": None},
        "note": {"comment": "free text note"},
        "csat": {"trace_external_id": "?session:s-1", "score": 2.0},
    },
    "mlflow/v3_trace_agent_assessed.json": {
        "trace": {
            "external_id": "tr-c98caa957650030c8fa54a87d23bb2bc",
            "user": "u-17",
            "session": "s-1",
            "prompt_version": "prompts:/support/7",
            "app_version": "1.4.2",
            "status": "ok",
            "started_us": 1796048265099000,
            "ended_us": 1796048265200000,
            "output": "You can get a refund.",
            "cost_usd": 7.185e-05,
        },
        "support_agent": {"external_id": "c9ce446917d755da", "kind": "agent", "started_ns": 575},
        "read_memory": {
            "kind": "memory",
            "parent_external_id": "c9ce446917d755da",
            "memories": ({"id": "mem_1", "content": "customer prefers email", "score": 0.9},),
        },
        "chat": {"model": "gpt-4o-mini-2024-07-18", "input_tokens": 311, "output_tokens": 42},
        "thumbs": {"score": 1.0, "principal": "expert-2", "comment": "agent relabelled after review"},
        "groundedness": {"label": "no", "source_kind": "judge"},
        "judge_failed": {"score": None, "label": None},
        "expected_response": {"corrected_output": "No: the 30-day window has passed."},
        "expected_facts": {"corrected_output": ["30 days", "no refund"]},
    },
    "mlflow/v3_trace_agent_tool_error.json": {
        "lookup_order": {
            "status": "error",
            "error": "KeyError: 'order ORD-404 not found'",
            "error_type": "KeyError",
            "external_id": "5b61d171b109204d",
        },
        "trace": {"user": "u-18", "session": "s-2", "status": "ok"},
    },
    "mlflow/v2_trace_agent.json": {
        "trace": {
            "external_id": "1b7a880bbe1547d8aeb3cf21d2f01436",
            "user": "u-17",
            "session": "s-1",
            "ended_us": 1796049801366000,
        },
        "search_kb": {
            "documents": (
                {"page_content": "Refunds within 30 days", "metadata": {"doc_uri": "kb/refunds.md"}, "id": "d1"},
            )
        },
        "lookup_order": {"status": "error", "error_type": "KeyError", "input": {"o": "ORD-404"}},
    },
    "langsmith/langsmith_js_wrap_openai_reasoning.json": {
        "ChatOpenAI": {
            "started_us": 1728803138291000,
            "ended_us": 1728803148730000,
            "model": "o1-mini",
            "input_tokens": 43,
            "output_tokens": 1901,
        }
    },
    "langsmith/py_sdk_0.15_runs_multipart.bin": {
        "trace": {
            "external_id": "01a22cd6-7a58-7780-b007-60f0236e71cf",
            "session": "s-1",
            "user": "u-17",
            "output": "Yes",
            "started_us": 1796048583256507,
            "prompt_version": "support:7",
        },
        "lookup_order": {"status": "error", "error": "KeyError('ORD-404')", "error_type": "KeyError"},
    },
    "langsmith/py_sdk_0.15_feedback_model.json": {
        "correctness": {
            "trace_external_id": "01a22cd6-68e8-7bc1-aefa-81a997c10d8a",
            "score": 0.25,
            "source_kind": "judge",
            "given_us": 1796048580011086,
        }
    },
    "openai/chat_completions_streaming_function_example.jsonl": {
        "response": {"kind": "tool", "tool_call_id": "call_kLW0Bq2cIfzym8DG6BADIcm4", "input": {"answer": "Boston"}},
        "trace": {"input_tokens": 57, "output_tokens": 17, "started_us": 1710800855000000},
    },
    "anthropic/reasoning-tool-use-non-streaming.json": {
        "get_weather": {"tool_call_id": "toolu_01Lb15KzZHz63KFSjmBpc4Fx", "input": {"location": "San Francisco"}}
    },
    "opik/py_sdk_2.2.122_0041_POST_api_v1_private_spans_batch.json": {
        "search_kb": {
            "kind": "tool",
            "ended_us": 1796049492965330,
            "documents": ({"id": "d1", "text": "Refunds within 30 days", "score": 0.83},),
        },
        "lookup_order": {"status": "error", "error": "ORD-404", "error_type": "KeyError"},
        "chat": {"input_tokens": 88, "output_tokens": 17, "cost_usd": 0.00015},
    },
    "opik/py_sdk_2.2.122_0042_POST_api_v1_private_traces_batch.json": {
        "trace": {"session": "s-1", "user": "u-17", "output": {"answer": "Yes, you can."}, "ended_us": 1796049492967098}
    },
    "opik/py_sdk_2.2.122_0043_PUT_api_v1_private_spans_feedback-scores.json": {
        "hallucination": {
            "trace_external_id": "01a22ce4-5be4-7dc5-9a69-78571a1ec254",
            "span_external_id": "01a22ce4-5be7-794c-b53a-d194bcb3c151",
            "score": 1.0,
            "comment": "contradicts kb",
        }
    },
    "weave/py_sdk_0.54_calls_complete.json": {
        "trace": {
            "external_id": "01a22ced-0f5b-72f1-a36b-32561f25c026",
            "session": "s-1",
            "user": "u-17",
            "prompt_version": "7",
            "status": "ok",
        },
        "lookup_order": {"kind": "tool", "status": "error", "error": "KeyError: 'ORD-404'", "error_type": "KeyError"},
        "search_kb": {"kind": "retrieval"},
    },
    "weave/py_sdk_0.54_feedback_batch_create.json": {
        "reaction": {"label": "👎", "score": 0.0},
        "note": {"comment": "wrong policy"},
        "expected": {"corrected_output": "No: 30-day window"},
    },
    "weave/claude_agent_sdk_tool_use_response.json": {
        "Bash": {"kind": "tool", "input": {"command": "ls -la"}, "output": "file1.py\nfile2.py\nREADME.md"},
        "trace": {"session": "s-def456", "input_tokens": 150, "output_tokens": 75, "cost_usd": 0.008},
    },
    "issues/langfuse_17413_observation_without_trace_id.json": {
        "trace": {"external_id": "gen-1", "input": "hello", "output": "hi"}
    },
    "issues/langsmith-sdk_751_dotted_order_without_parent.json": {
        "trace": {"external_id": "bbc2d4c6-cf3a-41e5-89b5-2cfcbda67958"},
        "x": {
            "parent_external_id": "c8912efb-69e3-4f67-844c-bbd2efe5ece3",
            "started_us": 1717149660540304,
        },
    },
    "issues/litellm_37269_trace_id_not_root_run_id.json": {
        "trace": {"external_id": "0198c2b0-0000-7000-8000-000000000001"}
    },
}


@pytest.mark.parametrize("name", FIELDS)
def test_key_fields_of_a_real_file_are_those_that_stand_in_it(shared: Path, name: str) -> None:
    items = list(read(sample(shared, name)))
    for record, fields in FIELDS[name].items():
        found = the(items, record)
        assert {field: getattr(found, field) for field in fields} == dict(fields)


def test_cached_tokens_of_anthropic_are_part_of_the_input(shared: Path) -> None:
    said = json.loads(sample(shared, "issues/langfuse_12306_cache_tokens_inclusive_vs_exclusive.json").read_text())
    assert exclusive(said["anthropic_usage"]).input == said["otel_attributes"]["gen_ai.usage.input_tokens"]


def test_mlflow_inputs_that_were_encoded_twice_are_unwrapped(shared: Path) -> None:
    said = json.loads(sample(shared, "issues/mlflow_18767_double_encoded_inputs.json").read_text())
    assert plain_value(said["mlflow.spanInputs"]) == {"input": "test"}


def test_mlflow_users_that_were_quoted_are_not(shared: Path) -> None:
    info = json.loads(sample(shared, "issues/mlflow_23642_quoted_user_session.json").read_text())
    (trace,) = items_of_trace({"info": {"trace_id": "tr-1", **info}, "data": {"spans": []}}, SourceOptions())
    assert isinstance(trace, Trace)
    assert (trace.user, trace.session, trace.name) == ("alice", "s-1", "chat")


def test_a_lone_surrogate_in_an_mlflow_output_is_mended(shared: Path, tmp_path: Path) -> None:
    said = sample(shared, "issues/mlflow_24123_lone_surrogate_attribute.json").read_text()
    span = said.replace('"trace_id": "tr-1"', '"span_id": "0102030405060708"')
    file = tmp_path / "trace.json"
    file.write_text('{"info": {"trace_id": "tr-1"}, "data": {"spans": [' + span + "]}}")
    assert the(list(read(file)), "trace").output == "done �"


def test_a_preview_that_was_cut_is_marked(shared: Path) -> None:
    line = sample(shared, "issues/langwatch_5283_truncated_64kb_preview.jsonl").read_text()
    assert cut_fields(input=json.loads(line)["input"]) == {"truncated": ["input"]}


def test_rows_that_were_fused_are_rejected_with_their_line(shared: Path) -> None:
    path = sample(shared, "issues/langwatch_6286_csv_rows_fused_at_chunk_boundary.csv")
    (fused,) = [row for row in read_rows(path, take_sample(path)) if isinstance(row, Rejected)]
    assert (fused.line, fused.reason) == (3, "3 cells, and the header has 2")


def test_the_folder_of_opik_requests_is_one_trace_with_its_end(shared: Path) -> None:
    items = list(read(sample(shared, "opik")))
    assert holds(items) == Holds(1, 3, 3)
    assert {item.trace_id for item in items if not isinstance(item, Rejected | Trace)} == {the(items, "trace").id}


def test_langfuse_scores_and_langfuse_spans_name_the_same_trace(shared: Path) -> None:
    options = SourceOptions(source="langfuse")
    spans = list(read(sample(shared, "langfuse/py_sdk_5.0.4_otlp_traces.decoded.json"), options=options))
    scores = [item for item in read(sample(shared, "langfuse/py_sdk_5.0.4_scores.json")) if isinstance(item, Feedback)]
    told = {item.id for item in spans if isinstance(item, Trace)}
    assert {item.trace_id for item in scores if item.name != "csat"} <= told
