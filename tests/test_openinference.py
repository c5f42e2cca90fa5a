"""OpenInference, OpenLLMetry, Langfuse's SDK and the older GenAI names: one span of each kind, made ours."""

import json
from typing import Any

import pytest

from store.records import AssembledTrace, Feedback, Span
from store.sources import Item, SourceOptions
from store.sources.otlp import decode_request
from tests.otlp_requests import attributes, body, span

USER = {"role": "user", "content": "Where is it?"}


def decoded(*spans: dict[str, Any]) -> list[Item]:
    return decode_request(body(*spans), content_type="application/json", options=SourceOptions())


def only_span(plain: dict[str, Any], **fields: Any) -> Span:
    (found,) = (item for item in decoded(span(1, plain, **fields)) if isinstance(item, Span))
    return found


@pytest.mark.parametrize(
    ("plain", "kind"),
    [
        ({"gen_ai.operation.name": "search_memory"}, "memory"),
        ({"gen_ai.operation.name": "execute_tool"}, "tool"),
        ({"openinference.span.kind": "RERANKER"}, "retrieval"),
        ({"openinference.span.kind": "GUARDRAIL"}, "guardrail"),
        ({"traceloop.span.kind": "workflow"}, "chain"),
        ({"langfuse.observation.type": "generation"}, "llm"),
        ({"llm.request.type": "chat"}, "llm"),
        ({"gen_ai.request.model": "m"}, "llm"),
        ({"filmroom.span.kind": "predict"}, "predict"),
        ({"http.route": "/"}, "other"),
    ],
)
def test_the_kind_is_what_the_attributes_name(plain: dict[str, Any], kind: str) -> None:
    assert only_span(plain).kind == kind


def test_numbered_messages_are_rebuilt_in_the_order_of_their_numbers() -> None:
    plain = {f"llm.input_messages.{number}.message.{key}": text for number in (10, 2) for key, text in
             (("role", "user"), ("content", str(number)))}  # fmt: skip
    found = only_span({"openinference.span.kind": "LLM", **plain})
    assert found.input == [{"role": "user", "content": "2"}, {"role": "user", "content": "10"}]


def test_a_call_that_stands_twice_in_a_message_is_one_call() -> None:
    message = "llm.output_messages.0.message."
    call = {"id": "c1", "function.name": "find", "function.arguments": '{"q": 1}'}
    plain = {
        "openinference.span.kind": "LLM",
        message + "role": "assistant",
        message + "contents.0.message_content.type": "text",
        message + "contents.0.message_content.text": "Let me look.",
        **{f"{message}contents.1.tool_call.{name}": said for name, said in call.items()},
        **{f"{message}tool_calls.0.tool_call.{name}": said for name, said in call.items()},
    }
    calls = [{"id": "c1", "name": "find", "arguments": {"q": 1}}]
    assert only_span(plain).output == {"content": "Let me look.", "tool_calls": calls}


def test_a_retriever_says_what_it_found() -> None:
    document = "retrieval.documents.0.document."
    plain = {"openinference.span.kind": "RETRIEVER", "input.value": "refund", document + "id": "d1", document + "score": 0.5,
             document + "metadata": '{"src": "kb"}'}  # fmt: skip
    found = only_span(plain)
    assert found.input == "refund"
    assert found.documents == ({"id": "d1", "score": 0.5, "metadata": {"src": "kb"}},)


def test_annotations_in_a_span_are_feedback_on_it_or_on_its_trace() -> None:
    plain = {
        "annotations.0.annotation.name": "thumb",
        "annotations.0.annotation.score": 0,
        "annotations.0.annotation.annotator_kind": "HUMAN",
        "trace.evaluations.0.evaluation.name": "safe",
        "trace.evaluations.0.evaluation.label": "yes",
        "trace.evaluations.0.evaluation.annotator_kind": "CODE",
    }
    given = [item for item in decoded(span(1, plain)) if isinstance(item, Feedback)]
    assert [(item.name, item.score, item.label, item.source_kind, item.span_external_id) for item in given] == [
        ("thumb", 0.0, None, "human", f"{1:016x}"),
        ("safe", None, "yes", "program", None),
    ]


def test_older_openllmetry_is_read_and_its_echo_of_the_user_is_dropped() -> None:
    plain = {
        "gen_ai.system": "OpenAI",
        "llm.request.type": "chat",
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "Where is it?",
        "gen_ai.prompt.1.role": "assistant",
        "gen_ai.prompt.1.content": "Where is it?",
        "gen_ai.prompt.1.tool_calls.0.id": "c1",
        "gen_ai.prompt.1.tool_calls.0.name": "find",
        "gen_ai.prompt.1.tool_calls.0.arguments": "{}",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "On Monday.",
        "gen_ai.completion.0.finish_reason": "stop",
        "gen_ai.usage.prompt_tokens": 8,
        "gen_ai.usage.completion_tokens": 3,
        "gen_ai.usage.cache_read_input_tokens": 5,
    }
    found = only_span(plain)
    calls = [{"id": "c1", "name": "find", "arguments": {}}]
    assert found.input == [USER, {"role": "assistant", "content": None, "tool_calls": calls}]
    assert (found.output, found.input_tokens, found.output_tokens) == ("On Monday.", 8, 3)
    assert (found.attributes["finish_reason"], found.attributes["cache_read_tokens"]) == ("stop", 5)


def test_traceloop_arguments_are_those_of_the_call_and_texts_are_no_longer_json() -> None:
    plain = {
        "traceloop.span.kind": "tool",
        "traceloop.entity.name": "find",
        "traceloop.entity.input": '{"args": [], "kwargs": {"order": 7}}',
        "traceloop.entity.output": '"on its way"',
        "traceloop.association.properties.user_id": "u7",
    }
    found = only_span(plain)
    assert (found.name, found.input, found.output) == ("find", {"order": 7}, "on its way")
    assert found.attributes["trace"] == {"user": "u7"}


def test_cached_tokens_count_once_whether_the_input_has_them_or_not() -> None:
    inclusive = {"gen_ai.usage.input_tokens": 130213, "gen_ai.usage.cache_read_tokens": 128955,
                 "gen_ai.usage.cache_write_tokens": 1253}  # fmt: skip
    exclusive = inclusive | {"gen_ai.usage.input_tokens": 5}
    assert [only_span(each).input_tokens for each in (inclusive, exclusive)] == [130213, 130213]


@pytest.mark.parametrize(
    "event",
    [
        {"name": "gen_ai.user.message", "attributes": attributes({"content": "Where is it?"})},
        {"name": "gen_ai.content.prompt", "attributes": attributes({"gen_ai.prompt": json.dumps([USER])})},
        {
            "name": "gen_ai.client.inference.operation.details",
            "attributes": attributes({"gen_ai.input.messages": json.dumps([USER])}),
        },
    ],
)
def test_messages_in_events_are_the_input(event: dict[str, Any]) -> None:
    assert only_span({"gen_ai.operation.name": "chat"}, events=[event]).input == [USER]


def test_langfuse_attributes_say_the_same_things() -> None:
    plain = {
        "langfuse.observation.type": "generation",
        "langfuse.observation.input": json.dumps([USER]),
        "langfuse.observation.output": '{"role": "assistant", "content": "Yes"}',
        "langfuse.observation.model.name": "m",
        "langfuse.observation.cost_details": '{"input": 0.1, "output": 0.2}',
        "langfuse.observation.level": "ERROR",
        "langfuse.observation.status_message": "too long",
        "langfuse.trace.metadata.tier": '"gold"',
        "langfuse.release": "1.4",
        "langfuse.experiment.item.expected_output": "No",
    }
    items = decoded(span(1, plain))
    found, trace = items
    assert isinstance(found, Span)
    assert isinstance(trace, AssembledTrace)
    assert (found.input, found.output, found.model, found.cost_usd) == ([USER], "Yes", "m", 0.3)
    assert (found.status, found.error) == ("error", "too long")
    assert (trace.app_version, trace.attributes, trace.held_apart) == (
        "1.4", {"metadata": {"tier": "gold"}}, {"expected_output": "No"},
    )  # fmt: skip


def test_a_trace_without_input_of_its_own_has_the_question_and_the_answer_of_its_models() -> None:
    ask = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps([{"role": "system", "content": "x"}, USER]),
    }
    answer = {
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "Here."}]}])
    }
    items = decoded(span(1), span(2, ask | answer, parent=1))
    (trace,) = (item for item in items if isinstance(item, AssembledTrace))
    assert (trace.input, trace.output) == ("Where is it?", "Here.")
