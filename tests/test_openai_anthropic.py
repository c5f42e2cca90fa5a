"""Answers of OpenAI and Anthropic: tool calls of this turn, errors, streams, tokens, batches joined to their requests."""

import json
from pathlib import Path
from typing import Any

from store.records import Rejected, Span, Trace
from store.sources import Item, read, recognise


def load(folder: Path, *values: object, name: str = "log.jsonl") -> list[Item]:
    file = folder / name
    file.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    return list(read(file))


def trace_of(items: list[Item]) -> Trace:
    (found,) = [item for item in items if isinstance(item, Trace)]
    return found


def tools_of(items: list[Item]) -> list[Span]:
    return [item for item in items if isinstance(item, Span) and item.kind == "tool"]


def completion(message: dict[str, Any], **fields: Any) -> dict[str, Any]:
    said = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1772359200, "model": "gpt-4o-2024"}
    return said | {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], **fields}


def recorded(request: dict[str, Any], response: object, **fields: Any) -> dict[str, Any]:
    return {"url": "https://api.openai.com/v1/chat/completions", "request": request, "response": response, **fields}


def call(id_: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}


ANSWER = {"role": "assistant", "content": "sunny"}
TURN = [
    {"role": "system", "content": "be kind"},
    {"role": "user", "content": "and yesterday?"},
    {"role": "assistant", "content": None, "tool_calls": [call("c0", "old", "{}")]},
    {"role": "tool", "tool_call_id": "c0", "content": "rain"},
    {"role": "assistant", "content": "rain"},
    {"role": "user", "content": "weather in Oslo?"},
    {"role": "assistant", "content": None, "tool_calls": [call("c1", "weather", '{"city": "Oslo"}')]},
    {"role": "tool", "tool_call_id": "c1", "content": '{"sky": "clear"}'},
]


def test_an_exchange_is_what_the_user_said_and_what_was_answered(tmp_path: Path) -> None:
    request = {"messages": TURN, "user": "u7", "metadata": {"session_id": "s3", "tier": "gold"}}
    trace = trace_of(load(tmp_path, recorded(request, completion(ANSWER))))
    assert (trace.input, trace.output, trace.user, trace.session) == ("weather in Oslo?", "sunny", "u7", "s3")
    assert (trace.model, trace.started_us, trace.status, trace.name) == ("gpt-4o-2024", 1772359200000000, "ok", None)


def test_the_tools_of_this_turn_are_its_steps_and_those_of_earlier_turns_are_not(tmp_path: Path) -> None:
    asked = ANSWER | {"content": None, "tool_calls": [call("c2", "wind", '{"city": "Oslo"}')]}
    items = load(tmp_path, recorded({"messages": TURN}, completion(asked)))
    assert [(span.name, span.input, span.output, span.status) for span in tools_of(items)] == [
        ("weather", {"city": "Oslo"}, {"sky": "clear"}, "ok"),
        ("wind", {"city": "Oslo"}, None, "unset"),
    ]
    assert trace_of(items).output == {
        "content": None,
        "tool_calls": [{"type": "tool_call", "id": "c2", "name": "wind", "arguments": {"city": "Oslo"}}],
    }


def test_a_refusal_is_the_answer_and_marked(tmp_path: Path) -> None:
    (_, span) = load(tmp_path, completion({"role": "assistant", "content": None, "refusal": "I can not."}))
    assert isinstance(span, Span)
    assert (span.output, span.attributes["refusal"]) == ("I can not.", True)


def test_a_request_that_failed_is_an_error_with_its_code(tmp_path: Path) -> None:
    error = {"error": {"message": "bad image", "type": "invalid_request_error", "code": "invalid_image_url"}}
    trace, span = load(tmp_path, recorded({"messages": TURN[:2], "model": "m"}, error, status=400))
    assert isinstance(trace, Trace)
    assert isinstance(span, Span)
    assert (trace.status, trace.error, trace.output) == ("error", "bad image", None)
    assert (span.error_type, span.model) == ("invalid_image_url", "m")


def test_a_response_keeps_its_reasoning_beside_its_text(tmp_path: Path) -> None:
    output = [
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi", "annotations": []}]},
        {"type": "function_call", "call_id": "c1", "name": "get", "arguments": '{"id": 7}'},
    ]
    usage = {"input_tokens": 45, "input_tokens_details": {"cached_tokens": 5}, "output_tokens": 54}
    body = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1772359200,
        "model": "m",
        "output": output,
        "usage": usage,
    }
    request = {"input": "hello", "instructions": "be kind"}
    items = load(tmp_path, {"request": request, "response": body})
    (tool,) = tools_of(items)
    trace = trace_of(items)
    assert (trace.input, trace.input_tokens, tool.tool_call_id, tool.input) == ("hello", 45, "c1", {"id": 7})
    assert isinstance(trace.output, dict)
    assert trace.output["content"] == "hi"


def test_a_stored_completion_has_its_metadata_and_its_gold_answer_apart(tmp_path: Path) -> None:
    metadata = {"user_id": "u7", "expected_output": "SECRET"}
    page = {"object": "list", "data": [completion(ANSWER, metadata=metadata)], "has_more": False}
    items = load(tmp_path, page)
    assert (trace_of(items).user, trace_of(items).held_apart) == ("u7", {"expected_output": "SECRET"})
    assert "SECRET" not in json.dumps([item.model_dump(mode="json", exclude={"held_apart"}) for item in items])


def batch_line(number: int, **fields: Any) -> dict[str, Any]:
    response = {"status_code": 200, "request_id": f"req_{number}", "body": completion(ANSWER, id=f"chatcmpl-{number}")}
    return {"id": f"batch_req_{number}", "custom_id": f"q-{number}", "response": response, "error": None} | fields


def batch_request(number: int) -> dict[str, Any]:
    body = {"model": "m", "messages": [{"role": "user", "content": f"question {number}"}]}
    return {"custom_id": f"q-{number}", "method": "POST", "url": "/v1/chat/completions", "body": body}


def test_answers_of_a_batch_are_joined_to_their_requests_in_any_order(tmp_path: Path) -> None:
    expired = batch_line(3, response=None, error={"code": "batch_expired", "message": "too late"})
    load(tmp_path, *(batch_request(number) for number in (1, 2, 3, 4)), name="input.jsonl")
    load(tmp_path, batch_line(2), batch_line(1), expired, name="output.jsonl")
    items = list(read(tmp_path))
    traces = [item for item in items if isinstance(item, Trace)]
    assert [(trace.external_id, trace.input, trace.status) for trace in traces] == [
        ("batch_req_2", "question 2", "ok"),
        ("batch_req_1", "question 1", "ok"),
        ("batch_req_3", "question 3", "error"),
    ]
    (rejected,) = [item for item in items if isinstance(item, Rejected)]
    assert (rejected.line, rejected.reason[:41]) == (4, "a request of a batch without its answer; ")


def test_requests_of_the_same_id_that_differ_are_not_guessed_between(tmp_path: Path) -> None:
    load(tmp_path, batch_request(1), name="monday.jsonl")
    other = batch_request(1) | {"body": {"model": "m", "messages": [{"role": "user", "content": "other"}]}}
    load(tmp_path, other, name="tuesday.jsonl")
    trace, span = load(tmp_path, batch_line(1), name="output.jsonl")
    assert isinstance(trace, Trace)
    assert isinstance(span, Span)
    assert trace.input is None
    assert span.attributes["request"] == "different requests of this custom_id are in the folder"


def message(*blocks: dict[str, Any], **fields: Any) -> dict[str, Any]:
    said = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "content": list(blocks)}
    return said | {"stop_reason": "end_turn", "usage": {"input_tokens": 5, "output_tokens": 7}, **fields}


def test_a_tool_result_of_anthropic_joins_its_call_and_may_be_an_error(tmp_path: Path) -> None:
    use = {"type": "tool_use", "id": "toolu_1", "name": "get", "input": {"id": 7}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "is_error": True}
    result["content"] = [{"type": "text", "text": "not found"}]
    messages = [
        {"role": "user", "content": "where is it?"},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
    ]
    answer = message({"type": "text", "text": "gone"})
    items = load(tmp_path, {"request": {"messages": messages, "system": "be kind"}, "response": answer})
    (tool,) = tools_of(items)
    assert recognise(tmp_path / "log.jsonl").name == "anthropic"
    assert (tool.name, tool.input, tool.output, tool.status, tool.error) == (
        "get",
        {"id": 7},
        "not found",
        "error",
        "not found",
    )
    assert (trace_of(items).input, trace_of(items).output) == ("where is it?", "gone")


def test_tokens_that_anthropic_read_from_its_cache_are_input(tmp_path: Path) -> None:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 128955, "cache_creation_input_tokens": 1253}
    span = load(tmp_path, message(usage=usage | {"output_tokens": 1}))[1]
    assert isinstance(span, Span)
    assert span.input_tokens == 130213
    assert (span.attributes["cache_read_tokens"], span.attributes["cache_write_tokens"]) == (128955, 1253)


def test_a_stream_of_anthropic_is_put_together(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": message(usage={"input_tokens": 9, "output_tokens": 1})},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "one "}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "moment"}},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "t", "name": "get"}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"id":'}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": " 7}"}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 20}},
    ]
    stream = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    items = load(tmp_path, {"url": "https://api.anthropic.com/v1/messages", "request": {}, "response": stream})
    trace = trace_of(items)
    assert (trace.input_tokens, trace.output_tokens) == (9, 20)
    assert [(span.name, span.input) for span in tools_of(items)] == [("get", {"id": 7})]
    assert isinstance(trace.output, dict)
    assert trace.output["content"] == "one moment"


def test_results_of_an_anthropic_batch_are_joined_and_failures_are_errors(tmp_path: Path) -> None:
    request = {"messages": [{"role": "user", "content": "hi"}]}
    load(tmp_path, {"custom_id": "a", "params": request}, {"custom_id": "b", "params": request}, name="requests.jsonl")
    done = {"custom_id": "a", "result": {"type": "succeeded", "message": message({"type": "text", "text": "hello"})}}
    load(tmp_path, {"custom_id": "b", "result": {"type": "expired"}}, done, name="results.jsonl")
    traces = [item for item in read(tmp_path) if isinstance(item, Trace)]
    assert [(trace.input, trace.output, trace.status, trace.error) for trace in traces] == [
        ("hi", None, "error", "the request was expired"),
        ("hi", "hello", "ok", None),
    ]


def test_long_signatures_and_redacted_thinking_are_kept_as_digests(tmp_path: Path) -> None:
    thinking = {"type": "redacted_thinking", "data": "QUFB" * 100}
    span = load(tmp_path, message(thinking, {"type": "text", "text": "42"}))[1]
    assert isinstance(span, Span)
    assert span.output == "42"
    assert span.attributes["thinking"] == [
        {"type": "redacted_thinking", "data": "data:;sha256=4daeb9ac8be20328;bytes=300"}
    ]


def test_two_runs_of_an_agent_in_one_stream_are_two_traces(tmp_path: Path) -> None:
    run: list[dict[str, Any]] = [
        {"type": "system", "subtype": "init", "session_id": "s1"},
        {"type": "user", "message": {"role": "user", "content": "list files"}},
        {"type": "assistant", "message": {"model": "m", "content": [{"type": "text", "text": "none"}]}},
        {"type": "result", "num_turns": 1, "is_error": False, "result": "none", "session_id": "s1"},
    ]
    traces = [item for item in load(tmp_path, *run, *run[:3]) if isinstance(item, Trace)]
    assert [(trace.input, trace.output, trace.status) for trace in traces] == [
        ("list files", "none", "ok"),
        ("list files", "none", "unset"),
    ]
