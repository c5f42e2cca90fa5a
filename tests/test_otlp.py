"""OpenTelemetry's requests: ids, values and encodings; what is rejected; traces put together in any order."""

import base64
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from store.database import Store, open_store
from store.errors import InputError
from store.ingest import ingest
from store.records import AssembledTrace, Feedback, Rejected, Span, Trace
from store.sources import Item, SourceOptions, read
from store.sources.otlp import decode_request, rejected_spans
from store.traces import count_traces, episodes
from tests.otlp_requests import START_NS, attributes, body, request, span

JSON = "application/json"
US = START_NS // 1000


def decoded(*spans: dict[str, Any], **options: Any) -> list[Item]:
    return decode_request(body(*spans, **options), content_type=JSON, options=SourceOptions())


def only_span(attributes: dict[str, Any] | None = None, **fields: Any) -> Span:
    return span_of(span(1, attributes, **fields))


def span_of(sent: dict[str, Any]) -> Span:
    (found,) = (item for item in decoded(sent) if isinstance(item, Span))
    return found


def only_trace(*spans: dict[str, Any], **options: Any) -> AssembledTrace:
    (found,) = (item for item in decoded(*spans, **options) if isinstance(item, AssembledTrace))
    return found


def stored(tmp_path: Path, name: str, *parts: list[Item]) -> tuple[Store, Any]:
    store = open_store(f"sqlite:///{tmp_path / name}.db", create=True)
    for part in parts:
        ingest(store, part)
    ids = sorted({item.id for part in parts for item in part if isinstance(item, Trace)})
    with store.read() as connection:
        return store, episodes(connection, ids)


def in_protobuf(value: dict[str, Any]) -> bytes:
    """The request as protobuf; its ids are hexadecimal in JSON, and base64 for this parser."""
    text = json.loads(json.dumps(value))
    for holder in text["resourceSpans"]:
        for one in holder["scopeSpans"][0]["spans"]:
            for name in ("traceId", "spanId", "parentSpanId"):
                if name in one:
                    one[name] = base64.b64encode(bytes.fromhex(one[name])).decode()
    data: bytes = ParseDict(text, ExportTraceServiceRequest()).SerializeToString()
    return data


def test_a_request_becomes_spans_then_their_trace() -> None:
    items = decoded(span(2, parent=1), span(1), resource={"service.version": "1.4", "service.name": "shop"})
    assert [type(item).__name__ for item in items] == ["Span", "Span", "AssembledTrace"]
    trace = items[-1]
    assert isinstance(trace, AssembledTrace)
    assert (trace.external_id, trace.name, trace.app_version, trace.span_count) == (f"{1:032x}", "span 1", "1.4", 2)
    assert (trace.started_us, trace.ended_us) == (US + 1000, US + 2000)
    assert trace.attributes == {"service": "shop"}


def test_protobuf_says_the_same_as_json() -> None:
    spans = (span(1, {"gen_ai.operation.name": "chat", "x": [1, True, 0.5]}), span(2, {"user.id": "u"}, parent=1))
    sent = in_protobuf(request(*spans))
    assert decode_request(sent, content_type="application/x-protobuf", options=SourceOptions()) == decoded(*spans)


@pytest.mark.parametrize(
    "spelt",
    [
        "AB" * 16,
        "0x" + "ab" * 16,
        base64.b64encode(bytes.fromhex("ab" * 16)).decode(),
        base64.b64encode(b"ab" * 16).decode(),
    ],
)
def test_every_spelling_of_an_id_is_the_same_id(spelt: str) -> None:
    assert only_span(traceId=spelt).trace_external_id == "ab" * 16


def test_hexadecimal_text_that_was_read_as_base64_is_mended() -> None:
    sent = ExportTraceServiceRequest()
    one = sent.resource_spans.add().scope_spans.add().spans.add()
    one.trace_id, one.span_id = base64.b64decode("ab" * 16), base64.b64decode("cd" * 8)
    items = decode_request(sent.SerializeToString(), content_type="application/x-protobuf", options=SourceOptions())
    assert [(item.trace_external_id, item.external_id) for item in items if isinstance(item, Span)] == [
        ("ab" * 16, "cd" * 8)
    ]


@pytest.mark.parametrize(
    "written",
    [
        {"string_value": "a"},
        {"Value": {"StringValue": "a"}},
        {"array_value": None, "bool_value": None, "int_value": None, "string_value": "a"},
    ],
)
def test_every_spelling_of_a_value_is_read(written: dict[str, Any]) -> None:
    assert span_of(span(1) | {"attributes": [{"key": "k", "value": written}]}).attributes == {"k": "a"}


def test_a_number_that_is_none_becomes_null_and_does_not_lose_the_span() -> None:
    given = [{"key": "score", "value": {"doubleValue": "NaN"}}, {"key": "n", "value": {"intValue": "5"}}]
    assert span_of(span(1) | {"attributes": given}).attributes == {"n": 5}


def test_nan_inside_the_json_of_an_attribute_becomes_null_and_is_marked() -> None:
    found = only_span({"openinference.span.kind": "TOOL", "input.value": '{"limit": NaN}'})
    assert (found.input, found.attributes) == ({"limit": None}, {"not_finite": ["input.value"]})


def test_json_that_was_cut_off_is_kept_as_text_and_marked() -> None:
    found = only_span({"gen_ai.operation.name": "chat", "gen_ai.input.messages": '[{"role": "user", "par'})
    assert found.input == '[{"role": "user", "par'
    assert found.attributes["truncated"] == ["gen_ai.input.messages"]


def test_dropped_attributes_are_counted_on_the_trace() -> None:
    trace = only_trace(span(1, droppedAttributesCount=2), span(2, parent=1, droppedAttributesCount=1))
    assert trace.attributes == {"dropped_attributes": 3}


def test_a_span_that_has_not_ended_has_no_end() -> None:
    found = only_span(endTimeUnixNano="0")
    assert (found.started_us, found.ended_us) == (US + 1000, None)


def test_an_error_is_told_with_its_message_and_type() -> None:
    thrown = {"name": "exception", "timeUnixNano": "0", "attributes": attributes({"exception.type": "Timeout"})}
    found = only_span(status={"code": "STATUS_CODE_ERROR", "message": "too slow"}, events=[thrown])
    assert (found.status, found.error, found.error_type) == ("error", "too slow", "Timeout")


def test_an_exception_that_was_caught_is_no_error_but_is_kept() -> None:
    thrown = {"name": "exception", "attributes": attributes({"exception.message": "retried"})}
    found = only_span(events=[thrown])
    assert (found.status, found.error) == ("unset", None)
    assert found.attributes["events"] == [{"name": "exception", "attributes": {"exception.message": "retried"}}]


def test_a_picture_is_kept_as_its_digest_and_size() -> None:
    picture = "data:image/png;base64," + base64.b64encode(bytes(90)).decode()
    found = only_span({"openinference.span.kind": "CHAIN", "input.value": f"look: {picture}"})
    assert isinstance(found.input, str)
    assert found.input.startswith("look: data:image/png;sha256=")
    assert found.input.endswith(";bytes=90")


def test_user_and_session_lose_the_quotes_around_them() -> None:
    trace = only_trace(span(1, {"user.id": '"alice"', "session.id": '"s-1"'}))
    assert (trace.user, trace.session) == ("alice", "s-1")


def test_a_gold_answer_is_held_apart_and_stands_in_no_span() -> None:
    items = decoded(span(1, {"metadata": '{"expected_output": "no", "tier": "gold"}', "reference": "30 days"}))
    trace = next(item for item in items if isinstance(item, AssembledTrace))
    assert trace.held_apart == {"expected_output": "no", "reference": "30 days"}
    assert "no" not in json.dumps([item.model_dump() for item in items if isinstance(item, Span)]).split('"')
    assert trace.attributes == {"metadata": {"tier": "gold"}}


def test_an_evaluation_event_is_feedback_of_a_judge() -> None:
    said = {
        "gen_ai.evaluation.name": "Relevance",
        "gen_ai.evaluation.score.value": 0.5,
        "gen_ai.evaluation.score.label": "ok",
    }
    event = {"name": "gen_ai.evaluation.result", "timeUnixNano": str(START_NS), "attributes": attributes(said)}
    (found,) = (item for item in decoded(span(1, events=[event])) if isinstance(item, Feedback))
    assert (found.name, found.score, found.label, found.source_kind, found.given_us) == (
        "Relevance",
        0.5,
        "ok",
        "judge",
        US,
    )
    assert (found.trace_external_id, found.span_external_id) == (f"{1:032x}", f"{1:016x}")


def test_a_span_without_an_id_is_rejected_alone_and_can_be_read_again() -> None:
    items = decoded(span(1), span(2, traceId="0" * 32))
    assert rejected_spans(items) == 1
    rejected = items[-1]
    assert isinstance(rejected, Rejected)
    assert rejected.reason.startswith("no trace id: ")
    again = decode_request(rejected.raw.encode(), content_type=JSON, options=SourceOptions())
    assert [type(item) for item in again] == [Rejected]


@pytest.mark.parametrize(
    ("sent", "content_type", "reason"),
    [
        (b"{", JSON, "not JSON"),
        (b"[]", JSON, "not a JSON object"),
        (b"\xff\xff", "application/x-protobuf", "not an OTLP export request in protobuf"),
        (b"{}", "text/plain", "'text/plain' is neither"),
    ],
)
def test_a_body_that_is_no_request_is_an_error(sent: bytes, content_type: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        decode_request(sent, content_type=content_type, options=SourceOptions())


def test_requests_a_line_are_joined_into_one_trace(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_bytes(body(span(2, parent=1)) + b"\n" + body(span(1)) + b"\n")
    assert [type(item).__name__ for item in read(file)] == ["Span", "Span", "AssembledTrace"]


def test_length_delimited_protobuf_is_read(tmp_path: Path) -> None:
    parts = [in_protobuf(request(span(number, trace=number))) for number in (1, 2)]
    file = tmp_path / "traces.bin"
    file.write_bytes(b"".join(len(part).to_bytes(4, "big") + part for part in parts))
    assert [item.external_id for item in read(file, format="otlp") if isinstance(item, Trace)] == [
        f"{1:032x}",
        f"{2:032x}",
    ]


def test_a_damaged_protobuf_file_is_rejected_as_a_whole(tmp_path: Path) -> None:
    file = tmp_path / "traces.pb"
    file.write_bytes(in_protobuf(request(span(1)))[:-5])
    (rejected,) = read(file, format="otlp")
    assert isinstance(rejected, Rejected)
    assert rejected.reason.startswith("not an OTLP export request in protobuf")


def test_log_records_that_are_evaluations_are_feedback_and_the_others_are_counted(tmp_path: Path) -> None:
    said = attributes({"gen_ai.evaluation.name": "Tone", "gen_ai.evaluation.score.value": 1.0})
    ids = {"traceId": f"{1:032x}", "spanId": f"{1:016x}"}
    logs = [{**ids, "eventName": "gen_ai.evaluation.result", "attributes": said}, {"body": {"stringValue": "hi"}}]
    file = tmp_path / "logs.json"
    file.write_text(json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": logs}]}]}), encoding="utf-8")
    given, rejected = read(file)
    assert isinstance(given, Feedback)
    assert (given.name, given.score, given.trace_external_id) == ("Tone", 1.0, f"{1:032x}")
    assert isinstance(rejected, Rejected)
    assert rejected.reason == "log records that are neither an evaluation nor the messages of a span: 1"


def parts_of_a_trace() -> list[list[Item]]:
    """A trace in three requests: the root, a model's call that says the user, and a tool's call below it."""
    messages = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Where is it?"}]}])
    llm = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": messages,
        "gen_ai.usage.input_tokens": 7,
        "user.id": "u",
    }
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "find", "reference": "gold"}
    root = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "shop"}
    return [decoded(span(1, root)), decoded(span(2, llm, parent=1)), decoded(span(3, tool, parent=2))]


def test_spans_that_arrive_in_any_order_end_in_the_same_trace(tmp_path: Path) -> None:
    seen = []
    for number, order in enumerate(itertools.permutations(parts_of_a_trace())):
        store, found = stored(tmp_path, str(number), *order)
        store.close()
        seen.append(found)
    (whole,) = seen[0]
    assert all(found == [whole] for found in seen)
    trace = whole.trace
    assert (trace.name, trace.user, trace.input, trace.input_tokens, trace.held_apart) == (
        "shop", "u", "Where is it?", 7, {"reference": "gold"},
    )  # fmt: skip


def test_all_at_once_is_the_same_as_one_by_one(tmp_path: Path) -> None:
    parts = parts_of_a_trace()
    store, one_by_one = stored(tmp_path, "parts", *parts)
    store.close()
    store, at_once = stored(tmp_path, "whole", [item for part in parts for item in part])
    store.close()
    assert at_once == one_by_one


def test_a_request_sent_again_changes_nothing(tmp_path: Path) -> None:
    parts = parts_of_a_trace()
    store, before = stored(tmp_path, "again", *parts)
    tally = [ingest(store, part) for part in parts]
    assert [(each.stored, each.duplicate) for each in tally] == [(0, 2)] * 3
    with store.read() as connection:
        assert episodes(connection, [before[0].trace.id]) == before
        assert count_traces(connection, "default") == {"traces": 1, "spans": 3, "feedback": 0}
    store.close()


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_of_two_versions_of_a_span_the_one_that_ended_later_stays(tmp_path: Path, order: tuple[int, int]) -> None:
    versions = [decoded(span(1, {"user.id": "early"}, endTimeUnixNano="0")), decoded(span(1, {"user.id": "late"}))]
    store, (found,) = stored(tmp_path, "x", *(versions[number] for number in order))
    store.close()
    assert (found.trace.user, found.trace.ended_us, len(found.spans)) == ("late", US + 2000, 1)


def test_the_root_is_the_earliest_span_whose_parent_is_not_there() -> None:
    trace = only_trace(span(3, parent=2), span(2, parent=9), span(4, parent=8))
    assert trace.name == "span 2"


def test_tokens_are_summed_over_the_innermost_spans() -> None:
    used = {"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 1}
    trace = only_trace(
        span(1, {"gen_ai.usage.input_tokens": 20}), span(2, used, parent=1), span(3, parent=1), span(4, used, parent=3)
    )
    assert (trace.input_tokens, trace.output_tokens) == (20, 2)


def test_a_long_log_is_held_in_pieces_and_stored_as_if_it_were_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.sources.span_window.MAX_SPANS", 4)
    file = tmp_path / "long.jsonl"
    lines = [
        body(span(number, parent=1 if number > 1 else None, trace=trace))
        for number in (1, 2, 3)
        for trace in range(1, 5)
    ]
    file.write_bytes(b"\n".join(lines))
    store, found = stored(tmp_path, "long", list(read(file)))
    store.close()
    assert [(len(one.spans), one.trace.ended_us, one.trace.name) for one in found] == [(3, US + 2000, "span 1")] * 4
