"""Real exports of OpenTelemetry, OpenInference, OpenLLMetry, Langfuse's SDK and Phoenix, against a table worked out by hand."""

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from store.database import open_store
from store.ingest import ingest
from store.records import Feedback, Rejected, Span, Trace
from store.sources import Item, read, recognise
from store.traces import episodes

SAMPLES = Path(__file__).parent.parent.parent / "shared" / "samples"

pytestmark = pytest.mark.skipif(not SAMPLES.exists(), reason=f"no samples at {SAMPLES}")

ORDER = {"order_id": "ORD-1"}
CALL = {"content": None, "tool_calls": [{"id": "call_abc123", "name": "lookup_order", "arguments": ORDER}]}
REFUND = "Yes, you can get a refund within 30 days."
PARIS = "The weather in Paris is currently rainy with a temperature of 57°F."
RATE = "Error code: 429 - Rate limit reached"
PANDAS = (".csv", ".parquet")
"""Endings of files in which pandas wrote 0.8300000000000001 for 0.83."""
GPT, CLAUDE = "gpt-4o-mini-2024-07-18", "claude-sonnet-4-5-20250929"


class Expected(NamedTuple):
    """What a file holds."""

    format: str
    traces: int
    spans: int
    feedback: int
    rejected: int = 0


FILES = {
    "otel/otlp_json_file_genai_latest.jsonl": Expected("otlp", 2, 10, 2),
    "otel/otlp_json_file_genai_legacy_events.jsonl": Expected("otlp", 1, 1, 0),
    "otel/otlp_json_file_truncated_by_attr_limit.jsonl": Expected("otlp", 1, 5, 1),
    "otel/otlp_proto_example_events.json": Expected("otlp", 0, 0, 0, 1),
    "otel/otlp_proto_example_logs.json": Expected("otlp", 0, 0, 0, 1),
    "otel/otlp_proto_example_trace.json": Expected("otlp", 1, 1, 0),
    "otel/otlp_proto_genai_latest_chat_span.pb": Expected("otlp", 1, 1, 1),
    "openinference/openinference_otlp.pb": Expected("otlp", 5, 11, 1),
    "openinference/openinference_otlp_json_hex_ids.json": Expected("otlp", 5, 11, 1),
    "openinference/openinference_sdk_console_to_json.jsonl": Expected("otlp", 5, 11, 1),
    "openinference/openinference_client_span_input_output_only.json": Expected("otlp", 1, 1, 0),
    "openinference/otel_genai_client_span_tool_calls.json": Expected("otlp", 1, 1, 0),
    "openinference/otel_genai_deprecated_client_span_tool_calls.json": Expected("otlp", 1, 1, 0),
    "openinference/otel_genai_tool_execution_span.json": Expected("otlp", 1, 1, 0),
    "openllmetry/openllmetry_0.62.4_otlp.json": Expected("otlp", 3, 6, 0),
    "langfuse/py_sdk_5.0.4_otlp_traces.pb": Expected("otlp", 1, 4, 0),
    "langfuse/py_sdk_5.0.4_otlp_traces.decoded.json": Expected("otlp", 1, 4, 0),
    "issues/otel-collector_3195_instrumentationLibrarySpans_base64.json": Expected("otlp", 2, 2, 0),
    "issues/otel-collector_8720_go_marshalled_base64_ids.json": Expected("otlp", 1, 1, 0),
    "issues/otel-swift_537_base64_of_hex_string.json": Expected("otlp", 1, 1, 0),
    "issues/openinference_2261_sparse_tool_call_index.json": Expected("otlp", 1, 1, 0),
    "issues/openllmetry_1428_tool_call_message_content_bleed.json": Expected("otlp", 1, 1, 0),
    "phoenix/phoenix20_rest_spans.json": Expected("phoenix", 5, 11, 1),
    "phoenix/phoenix20_rest_spans_genai_latest.json": Expected("phoenix", 2, 10, 2),
    "phoenix/phoenix20_rest_spans_otlpv1.json": Expected("phoenix", 5, 11, 1),
    "phoenix/phoenix20_spans_dataframe.csv": Expected("phoenix", 5, 11, 1),
    "phoenix/phoenix20_spans_dataframe.parquet": Expected("phoenix", 5, 11, 1),
    "phoenix/phoenix20_spans_dataframe.records.jsonl": Expected("phoenix", 5, 11, 1),
    "phoenix/phoenix20_rest_span_annotations.json": Expected("phoenix", 0, 0, 5),
    "phoenix/phoenix20_rest_trace_annotations.json": Expected("phoenix", 0, 0, 1),
    "phoenix/phoenix20_rest_session_annotations.json": Expected("phoenix", 0, 0, 1),
    "phoenix/atif_harbor_terminus2_invalid_json.json": Expected("atif", 1, 8, 0),
    "phoenix/atif_parallel_tools_mixed_results.json": Expected("atif", 1, 6, 0),
    "phoenix/phoenix20_rest_sessions.json": Expected("phoenix", 0, 0, 0, 1),
    "phoenix/phoenix20_rest_traces.json": Expected("phoenix", 0, 0, 0, 5),
}

TRACES: list[tuple[str, str, dict[str, Any]]] = [
    (
        "otel/otlp_json_file_genai_latest.jsonl",
        "f70db089eb5081fa5ec8c780432d6b33",
        {
            "name": "support",
            "user": "u-17",
            "session": "conv_5j66",
            "app_version": "1.4.2",
            "prompt_version": "support-system@7",
            "started_us": 1796048467992594,
            "started_ns": 854,
            "ended_us": 1796048468043841,
            "input": "Can I get a refund after 41 days?",
            "output": "Yes you can.",
            "model": GPT,
            "input_tokens": 311,
            "output_tokens": 42,
            "status": "unset",
        },
    ),
    (
        "otel/otlp_json_file_genai_latest.jsonl",
        "4d04addaa7bc9292aaeb8e0ca817b5e8",
        {"session": "conv_err", "status": "error", "error": "tool failed"},
    ),
    (
        "otel/otlp_json_file_truncated_by_attr_limit.jsonl",
        "39e5cfdfedf09f45d7954551c51e9c47",
        {
            "input": '[{"role": "user", "parts": [{"type": "text", "content": "Can I g',
            "output": '[{"role": "assistant", "parts": [{"type": "text", "content": "Ye',
        },
    ),
    *(
        (file, "7584b377788b4c11e645431ec0c6da69",
         {"user": "u-17", "session": "s-1", "prompt_version": "v7", "input": "Can I get a refund?", "output": REFUND,
          "model": GPT, "input_tokens": 176, "output_tokens": 34, "error": None})
        for file, expected in FILES.items() if expected.traces == 5
    ),
    *(
        (file, "b30a09dc6e5898e426775eba8698c1ac", {"user": "u-17", "session": "s-1", "status": "error", "error": RATE})
        for file, expected in FILES.items() if expected.traces == 5
    ),
    (
        "openllmetry/openllmetry_0.62.4_otlp.json",
        "47da5d10fb56c683641fed389665911b",
        {"name": "support", "user": "u-17", "session": "s-1", "input": {"question": "refund?"}, "output": REFUND,
         "input_tokens": 176, "output_tokens": 34},
    ),
    (
        "openllmetry/openllmetry_0.62.4_otlp.json",
        "152ea4867946ad5c70c6e2aab363e2f9",
        {"model": CLAUDE, "input": "refund?", "input_tokens": 1020, "output_tokens": 31},
    ),
    *(
        (f"langfuse/py_sdk_5.0.4_otlp_traces.{kind}", "a1b05a7ac9e4d2eb700d18b9b362da50",
         {"user": "u-17", "session": "s-1", "app_version": "1.4.2", "input": {"question": "Can I get a refund?"},
          "output": "Yes, you can.", "model": "gpt-4o-mini", "output_tokens": 42, "cost_usd": 0.00015})
        for kind in ("pb", "decoded.json")
    ),
    (
        "issues/otel-collector_3195_instrumentationLibrarySpans_base64.json",
        "7205c8eae8a1cfae3713a66aabb365e3",
        {"name": "/metrics", "started_us": 1621253293188761, "started_ns": 633, "status": "ok"},
    ),
    (
        "issues/otel-collector_8720_go_marshalled_base64_ids.json",
        "67acfc2ea56f108fa4535fc28ba99705",
        {"name": "Simple", "started_us": 1697982593201336, "ended_us": 1697982593201347},
    ),
    (
        "phoenix/atif_parallel_tools_mixed_results.json",
        "sess-parallel-mixed",
        {"session": "sess-parallel-mixed", "name": "multi-tool-agent", "app_version": "1.0.0", "model": "gpt-4",
         "started_us": 1737367200000000, "ended_us": 1737367205000000, "input_tokens": 1200, "output_tokens": 105,
         "cost_usd": 0.005},
    ),
    ("issues/otel-swift_537_base64_of_hex_string.json", "9e2a3dc06074b17540d54de4e51e735f", {"name": "swift"}),
]  # fmt: skip

SPANS: list[tuple[str, str, dict[str, Any]]] = [
    (
        "otel/otlp_json_file_genai_latest.jsonl",
        "c6c92246d73039db",
        {"kind": "tool", "name": "lookup_order", "input": ORDER, "output": {"status": "delivered", "days": 41},
         "tool_call_id": "call_abc", "parent_external_id": "808c4d33f262555f"},
    ),
    (
        "otel/otlp_json_file_genai_latest.jsonl",
        "e2ea3033c75d0e72",
        {"kind": "tool", "status": "error", "error": "orders-db timed out after 5s", "error_type": "TimeoutError"},
    ),
    (
        "otel/otlp_json_file_genai_latest.jsonl",
        "22f4db2b3d66bc52",
        {"kind": "memory", "input": "contact preference",
         "memories": ({"id": "mem_123", "content": "prefers email", "score": 0.95},)},
    ),
    (
        "otel/otlp_json_file_genai_latest.jsonl",
        "763cb9fa27e6295c",
        {"kind": "retrieval", "input": "refund policy",
         "documents": ({"id": "doc_1", "score": 0.83, "content": "Refunds within 30 days."}, {"id": "doc_2", "score": 0.41})},
    ),
    (
        "otel/otlp_json_file_genai_legacy_events.jsonl",
        "a98601a4a7e6655a",
        {"input": [{"role": "system", "content": "You are support."}, {"role": "user", "content": "Where is ORD-1?"}],
         "output": {"content": None, "tool_calls": [{"id": "c1", "name": "lookup_order", "arguments": ORDER}]},
         "model": GPT, "input_tokens": 88, "output_tokens": 17},
    ),
    (
        "openllmetry/openllmetry_0.62.4_otlp.json",
        "ddf394ec6bba6108",
        {"kind": "tool", "name": "lookup_order", "input": ORDER, "output": {"status": "delivered"}},
    ),
    ("openllmetry/openllmetry_0.62.4_otlp.json", "d2993ec3db27c519", {"error": RATE, "error_type": "RateLimitError"}),
    *(
        (file, "4888f229ff49234d",
         {"kind": "tool", "name": "lookup_order", "input": ORDER, "output": {"status": "delivered"},
          "tool_call_id": "call_abc123"})
        for file, expected in FILES.items() if expected.traces == 5
    ),
    *(
        (file, "0138b20f5db2c533",
         {"kind": "llm", "output": CALL, "model": GPT, "input_tokens": 88, "output_tokens": 17})
        for file, expected in FILES.items() if expected.traces == 5
    ),
    *(
        (file, "b6de323765f211ec",
         {"output": {"content": "Let me look that up.",
                     "tool_calls": [{"id": "toolu_01A", "name": "lookup_order", "arguments": ORDER}]},
          "model": CLAUDE, "input_tokens": 1020, "output_tokens": 31})
        for file, expected in FILES.items() if expected.traces == 5
    ),
    *(
        (file, "dc18a253d4698aeb",
         {"kind": "retrieval", "input": "refund",
          "documents": ({"id": "d1", "content": "Refunds within 30 days", "score": 0.83, "metadata": {"src": "kb"}},
                        {"content": "Digital goods are not refundable"})})
        for file, expected in FILES.items() if expected.traces == 5 and not file.endswith(PANDAS)
    ),
    (
        "langfuse/py_sdk_5.0.4_otlp_traces.pb",
        "6b2a3a8d0f19b31d",
        {"kind": "tool", "input": {"order_id": "ORD-404"}, "error": "KeyError: ORD-404 not found", "status": "error"},
    ),
    (
        "openinference/otel_genai_tool_execution_span.json",
        "1",
        {"kind": "tool", "name": "get_weather", "input": {"city": "New York"}, "tool_call_id": "1234"},
    ),
    *(
        (f"openinference/{name}.json", "1", {"kind": "llm", "model": "gpt-4-0613", "input_tokens": 97, "output_tokens": 52})
        for name in ("openinference_client_span_input_output_only", "otel_genai_client_span_tool_calls",
                     "otel_genai_deprecated_client_span_tool_calls")
    ),
    ("openinference/otel_genai_client_span_tool_calls.json", "1", {"output": PARIS}),
    (
        "phoenix/atif_parallel_tools_mixed_results.json",
        "3",
        {"kind": "tool", "name": "get_stock", "input": {"ticker": "SPY"}, "tool_call_id": "call_stock",
         "error": "Error: API rate limit exceeded"},
    ),
    (
        "phoenix/atif_harbor_terminus2_invalid_json.json",
        "3",
        {"kind": "tool", "name": "bash_command", "tool_call_id": "call_1_1", "status": "ok",
         "input": {"keystrokes": "printf 'Hello, world!\\n' > hello.txt\n", "duration": 0.1}},
    ),
    (
        "issues/openinference_2261_sparse_tool_call_index.json",
        "1",
        {"input": [{"role": "assistant", "content": "Let me check",
                    "tool_calls": [{"id": "toolu_1", "name": "lookup", "arguments": {}}]}]},
    ),
    (
        "issues/openllmetry_1428_tool_call_message_content_bleed.json",
        "1",
        {"input": [{"role": "user", "content": "Can you tell me the weather in San Francisco, CA?"},
                   {"role": "assistant", "content": None}]},
    ),
]  # fmt: skip

FEEDBACK: list[tuple[str, tuple[Any, ...]]] = [
    ("otel/otlp_proto_genai_latest_chat_span.pb", ("Relevance", 4.0, "relevant", "on topic", "judge")),
    *(
        (file, ("user_thumbs", 0.0, "down", "wrong policy", "human"))
        for file, expected in FILES.items() if expected.traces == 5
    ),
    ("phoenix/phoenix20_rest_span_annotations.json", ("note", None, None, "customer called back angry", "human")),
    ("phoenix/phoenix20_rest_span_annotations.json", ("score_only", 0.123456789, None, None, "program")),
    ("phoenix/phoenix20_rest_span_annotations.json", ("label_only", None, "refund", None, "program")),
    ("phoenix/phoenix20_rest_span_annotations.json", ("hallucination", 1.0, "hallucinated", "contradicts kb", "judge")),
    ("phoenix/phoenix20_rest_span_annotations.json", ("user_thumbs", 1.0, "thumbs-up", None, "human")),
    ("phoenix/phoenix20_rest_trace_annotations.json", ("csat", 2.0, None, None, "human")),
    ("phoenix/phoenix20_rest_session_annotations.json", ("resolved", None, "no", None, "human")),
]  # fmt: skip


def items_of(file: str) -> list[Item]:
    if file.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    return list(read(SAMPLES / file))


def fields_of(item: Trace | Span, fields: dict[str, Any]) -> dict[str, Any]:
    return {name: getattr(item, name) for name in fields}


@pytest.mark.parametrize("file", FILES)
def test_each_file_is_recognised_and_counted(file: str) -> None:
    found = Counter(
        next(kind for kind in (Trace, Span, Feedback, Rejected) if isinstance(item, kind)) for item in items_of(file)
    )
    counts = Expected(recognise(SAMPLES / file).name, found[Trace], found[Span], found[Feedback], found[Rejected])
    assert counts == FILES[file]


@pytest.mark.parametrize(("file", "trace", "fields"), TRACES)
def test_traces_say_what_the_file_says(file: str, trace: str, fields: dict[str, Any]) -> None:
    (found,) = (item for item in items_of(file) if isinstance(item, Trace) and item.external_id == trace)
    assert fields_of(found, fields) == fields


@pytest.mark.parametrize(("file", "span", "fields"), SPANS)
def test_spans_say_what_the_file_says(file: str, span: str, fields: dict[str, Any]) -> None:
    (found,) = (item for item in items_of(file) if isinstance(item, Span) and item.external_id == span)
    assert fields_of(found, fields) == fields


@pytest.mark.parametrize(("file", "said"), FEEDBACK)
def test_feedback_says_what_the_file_says(file: str, said: tuple[Any, ...]) -> None:
    given = [item for item in items_of(file) if isinstance(item, Feedback)]
    assert said in [(item.name, item.score, item.label, item.comment, item.source_kind) for item in given]


@pytest.mark.parametrize("file", FILES)
def test_no_file_has_an_expected_output(file: str) -> None:
    items = items_of(file)
    assert [item for item in items if isinstance(item, Feedback) and item.corrected_output is not None] == []
    assert [item.held_apart for item in items if isinstance(item, Trace) and item.held_apart] == []


@pytest.mark.parametrize("turned", [False, True])
def test_annotations_of_phoenix_find_their_traces_in_either_order(tmp_path: Path, turned: bool) -> None:
    names = ["rest_spans", "rest_span_annotations", "rest_trace_annotations", "rest_session_annotations"]
    store = open_store(f"sqlite:///{tmp_path / 'x.db'}", create=True)
    for name in reversed(names) if turned else names:
        ingest(store, read(SAMPLES / f"phoenix/phoenix20_{name}.json"))
    ids = [item.id for item in items_of("phoenix/phoenix20_rest_spans.json") if isinstance(item, Trace)]
    with store.read() as connection:
        given = {one.trace.external_id[:4]: [item.name for item in one.feedback] for one in episodes(connection, ids)}
    store.close()
    assert {trace: sorted(names) for trace, names in given.items() if names} == {
        "7584": ["user_thumbs"],
        "b30a": ["csat", "hallucination", "label_only", "note", "resolved", "score_only", "user_thumbs"],
    }
