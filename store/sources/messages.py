"""Chat messages of every convention in one form: `role`, `content`, `tool_calls`, `tool_call_id`.

Read are the parts of OpenTelemetry, the `content` and `tool_calls` of OpenAI, the blocks of Anthropic, and the rebuilt
trees of OpenInference and OpenLLMetry. Content of text alone is a text; with anything else in it, a list of parts.
"""

from collections.abc import Iterable
from typing import Any

from pydantic import JsonValue

from store.sources.json_text import Flaws, loaded
from store.sources.media import shortened

Message = dict[str, JsonValue]

_CALLS = ("tool_call", "tool_use", "function_call", "server_tool_use")
_RESULTS = ("tool_call_response", "tool_result", "function_call_output")


def messages_in(value: JsonValue) -> list[Message] | None:
    """The messages of a list, of an object with `messages`, or of one message; None: it holds none."""
    if isinstance(value, dict):
        if isinstance(value.get("messages"), list):
            system = value.get("system")
            before: list[JsonValue] = [{"role": "system", "content": system}] if system else []
            return messages_in([*before, *_list(value["messages"])])
        value = [value]
    if not isinstance(value, list) or not value:
        return None
    plain = [_unwrapped(item) for item in value]
    if not all(isinstance(item, dict) and ("role" in item or "parts" in item) for item in plain):
        return None
    return [message for item in plain if isinstance(item, dict) for message in _normal(item)]


def answer_in(value: JsonValue) -> JsonValue:
    """What a model answered: the text, or an object with `content` and `tool_calls`; a list where there are several.

    A value that holds no message is given back as it is.
    """
    found = messages_in(_choices(value))
    if found is None:
        return value
    answers = [_answer(message) for message in found]
    return answers[0] if len(answers) == 1 else answers


def finish_reason_in(value: JsonValue) -> JsonValue:
    """Why the model stopped, where a message or a choice says it; None: it does not."""
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict):
            for name in ("finish_reason", "stop_reason"):
                if item.get(name):
                    return item[name]
    return None


def without_echo(messages: list[Message]) -> list[Message]:
    """The messages without the user's text repeated as the assistant's: old OpenLLMetry wrote it where the assistant
    had called a tool and said nothing (traceloop/openllmetry issue 1428).
    """
    asked: JsonValue = None
    mended = []
    for message in messages:
        if message.get("role") == "assistant" and asked is not None and message.get("content") == asked:
            mended.append({**message, "content": None})
            continue
        asked = message.get("content") if message.get("role") == "user" else None
        mended.append(message)
    return mended


def _choices(value: JsonValue) -> JsonValue:
    """The messages of an OpenAI response, else the value."""
    if isinstance(value, dict) and isinstance(value.get("choices"), list):
        return [item["message"] for item in _list(value["choices"]) if isinstance(item, dict) and "message" in item]
    return value


def _unwrapped(item: JsonValue) -> JsonValue:
    """OpenInference wraps each message in `{"message": ...}`."""
    if isinstance(item, dict) and isinstance(item.get("message"), dict):
        return item["message"]
    return item


def _normal(message: Message) -> list[Message]:
    """One message as ours; each result of a tool in it is a message of its own."""
    parts = _parts(message)
    said = [part for part in parts if not _is(part, _CALLS) and not _is(part, _RESULTS)]
    calls = _unique([_call(part) for part in parts if _is(part, _CALLS)] + [_call(item) for item in _calls(message)])
    results = [_result(part) for part in parts if _is(part, _RESULTS)]
    content = _content(said)
    if results and content is None and not calls:
        return results
    main: Message = {"role": message.get("role") or "assistant", "content": content}
    if calls:
        main["tool_calls"] = list(calls)
    for name in ("tool_call_id", "name"):
        if message.get(name):
            main[name] = message[name]
    if main["role"] == "tool" and "tool_call_id" not in main and message.get("id"):
        main["tool_call_id"] = message["id"]
    return [*results, main]


def _parts(message: Message) -> list[JsonValue]:
    for name in ("parts", "contents", "content"):
        found = message.get(name)
        if isinstance(found, list):
            return [_part(item) for item in found]
        if found is not None and found != "":
            return [found]
    return []


def _part(item: JsonValue) -> JsonValue:
    """A part of OpenInference without its wrapping: `message_content` with the call beside it."""
    if not isinstance(item, dict):
        return item
    if isinstance(item.get("tool_call"), dict):
        return {"type": "tool_call", **item["tool_call"]}  # type: ignore[dict-item]  # checked the line above
    inner = item.get("message_content")
    return inner if isinstance(inner, dict) else item


def _is(part: JsonValue, kinds: Iterable[str]) -> bool:
    return isinstance(part, dict) and str(part.get("type")) in kinds


def _calls(message: Message) -> list[JsonValue]:
    found = [_call_inside(item) for item in _list(message.get("tool_calls"))]
    if isinstance(message.get("function_call"), dict):
        found.append(message["function_call"])
    return found


def _call_inside(item: JsonValue) -> JsonValue:
    return item["tool_call"] if isinstance(item, dict) and "tool_call" in item else item


def _call(item: JsonValue) -> Message:
    said: Any = item if isinstance(item, dict) else {"name": item}
    function = said.get("function") if isinstance(said.get("function"), dict) else said
    arguments = next((function[name] for name in ("arguments", "input", "args") if name in function), None)
    return {
        "id": said.get("id") or said.get("call_id"),
        "name": function.get("name"),
        "arguments": loaded(arguments, "arguments", Flaws()),
    }


def _unique(calls: list[Message]) -> list[Message]:
    """Each call once: some instrumentations write the same call both among the parts and beside them."""
    seen: set[str] = set()
    kept = []
    for call in calls:
        key = str(call["id"])
        if call["id"] and key in seen:
            continue
        seen.add(key)
        kept.append(call)
    return kept


def _result(part: JsonValue) -> Message:
    said: Any = part
    given = next((said[name] for name in ("response", "result", "content", "output") if name in said), None)
    call = said.get("id") or said.get("tool_use_id") or said.get("call_id")
    content = _content(given) if isinstance(given, list) else given
    return {"role": "tool", "content": content, "tool_call_id": call}


def _content(parts: list[JsonValue]) -> JsonValue:
    texts = [_text(part) for part in parts]
    plain = [text for text in texts if text is not None]
    if len(plain) == len(parts):
        return "\n".join(plain) if plain else None
    return [text if text is not None else _trimmed(part) for text, part in zip(texts, parts, strict=True)]


def _text(part: JsonValue) -> str | None:
    if isinstance(part, str):
        return part
    if not isinstance(part, dict) or part.get("type") not in ("text", "input_text", "output_text", None):
        return None
    found = part.get("text", part.get("content"))
    return found if isinstance(found, str) else None


def _trimmed(part: JsonValue) -> JsonValue:
    """A part that is no text, its blob as a digest."""
    if isinstance(part, dict) and part.get("type") == "blob" and "content" in part:
        part = {name: value for name, value in part.items() if name != "content"} | {"data": part["content"]}
    return shortened(part)


def _answer(message: Message) -> JsonValue:
    if message.get("tool_calls"):
        return {"content": message.get("content"), "tool_calls": message["tool_calls"]}
    return message.get("content")


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []
