"""A request and an answer of OpenAI's two APIs, or of Gemini's, in one form."""

from typing import Any

from pydantic import JsonValue

from store.sources.assembly import Draft, timed
from store.sources.chat_exchange import Exchange, first, http_error, text_of
from store.sources.context_fields import beside, unquoted
from store.sources.fields import as_text
from store.sources.payload import Object, list_of, object_of
from store.sources.times import parse_time
from store.sources.tool_calls import calls_in
from store.sources.usage import gemini, inclusive

_SETTINGS = ("temperature", "top_p", "max_tokens", "max_output_tokens", "response_format", "tool_choice", "stream")


def exchange_of(external_id: str, request: Object, body: Object, status: JsonValue, extra: Object) -> Exchange:
    """The exchange of a request, which may be empty, and a body, which may be an error."""
    choice = object_of(next(iter(list_of(body.get("choices")) or list_of(body.get("candidates"))), None))
    said = object_of(choice.get("message") or choice.get("content"))
    output = list_of(body.get("output"))
    refusal = as_text(said.get("refusal"))
    text = first(text_of(said.get("content", _texts(said.get("parts")))), refusal) if choice else _output_text(output)
    settings = {key: request.get(key) for key in _SETTINGS}
    attributes = beside(
        {
            "finish_reason": choice.get("finish_reason") or choice.get("finishReason"),
            "tool_definitions": request.get("tools"),
            "settings": beside(settings),
            "refusal": bool(refusal) or None,
            "incomplete_details": body.get("incomplete_details"),
            "reasoning": [item for item in output if object_of(item).get("type") == "reasoning"],
            "service_tier": body.get("service_tier"),
            "system_fingerprint": body.get("system_fingerprint"),
            "other_choices": list_of(body.get("choices"))[1:],
            **extra,
        }
    )
    return Exchange(
        external_id=external_id,
        messages=_messages(request, body),
        text=text,
        calls=calls_in(choice or output),
        model=as_text(body.get("model") or body.get("modelVersion") or request.get("model")),
        tokens=gemini(body["usageMetadata"]) if "usageMetadata" in body else inclusive(body.get("usage")),
        step=_step(body, status),
        metadata=object_of(body.get("metadata")) or object_of(request.get("metadata")),
        people=_people(request, body),
        attributes=attributes,
    )


def _step(body: Object, status: JsonValue) -> Draft:
    """Times and status. A stored completion says when it was made, which is all there is of time."""
    times = timed(parse_time(body.get("created") or body.get("created_at")), parse_time(body.get("completed_at")))
    failed = http_error(status, body)
    if not failed and body.get("status") == "failed":
        failed = {"status": "error", "error": "the response failed", "error_type": "failed"}
    return times | (failed or {"status": "ok"})


def _messages(request: Object, body: Object) -> list[JsonValue]:
    """All that was sent, as messages: a text input is the user's, instructions are the system's."""
    said = first(request.get("messages"), request.get("input"), request.get("contents"), request.get("prompt"))
    if said is None:
        said = body.get("input")
    messages: list[JsonValue] = said if isinstance(said, list) else [{"role": "user", "content": said}] if said else []
    system = first(request.get("instructions"), request.get("systemInstruction"), body.get("instructions"))
    return [{"role": "system", "content": system}, *messages] if system and messages else messages


def _people(request: Object, body: Object) -> Draft:
    conversation = first(body.get("conversation"), request.get("conversation"))
    session = conversation.get("id") if isinstance(conversation, dict) else conversation
    user = first(request.get("user"), request.get("safety_identifier"), body.get("user"), body.get("safety_identifier"))
    found = {"user": unquoted(user), "session": unquoted(session)}
    return {field: text for field, text in found.items() if text}


def _texts(parts: JsonValue) -> JsonValue:
    """The text of Gemini's parts; None where there are only calls."""
    return [part for part in list_of(parts) if "text" in object_of(part)] or None


def _output_text(output: list[JsonValue]) -> JsonValue:
    """The text of a response's messages, a refusal's words included; None where it holds none."""
    blocks: list[JsonValue] = []
    for item in output:
        if object_of(item).get("type") == "message":
            for block in list_of(object_of(item).get("content")):
                refusal = object_of(block).get("refusal")
                blocks.append({"type": "text", "text": refusal} if refusal else block)
    return text_of(blocks) if blocks else None


def joined_chunks(chunks: list[Object]) -> Object:
    """The completion that the pieces of a stream make; of the Responses API its last event has it whole."""
    for chunk in reversed(chunks):
        if isinstance(chunk.get("response"), dict):
            return object_of(chunk["response"])
    whole: dict[str, Any] = {}
    content, refusal, finish = "", "", None
    calls: dict[int, Object] = {}
    for chunk in chunks:
        whole |= {key: value for key, value in chunk.items() if key != "choices" and value is not None}
        for choice in list_of(chunk.get("choices")):
            delta = object_of(object_of(choice).get("delta"))
            content += as_text(delta.get("content")) or ""
            refusal += as_text(delta.get("refusal")) or ""
            finish = object_of(choice).get("finish_reason") or finish
            _add_calls(calls, list_of(delta.get("tool_calls")))
    message: Object = {"role": "assistant", "content": content or None, "refusal": refusal or None}
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    return whole | {"object": "chat.completion", "choices": [{"message": message, "finish_reason": finish}]}


def _add_calls(calls: dict[int, Object], deltas: list[JsonValue]) -> None:
    for number, item in enumerate(deltas):
        delta = object_of(item)
        index = delta.get("index")
        call = calls.setdefault(index if isinstance(index, int) else number, {"type": "function"})
        said, known = object_of(delta.get("function")), object_of(call.get("function"))
        call["id"] = delta.get("id") or call.get("id")
        call["function"] = {
            "name": (as_text(known.get("name")) or "") + (as_text(said.get("name")) or ""),
            "arguments": (as_text(known.get("arguments")) or "") + (as_text(said.get("arguments")) or ""),
        }
