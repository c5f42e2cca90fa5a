"""One request to a language model with its answer, as a trace: the model's step and the tool calls of this turn.

What the trace says went in is what the user last said; the model's step has all that the model saw.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from pydantic import JsonValue

from store.records import Trace
from store.sources.assembly import Draft, Refuse, assembled
from store.sources.context_fields import beside, from_metadata
from store.sources.contract import BadRecord, Item
from store.sources.fields import as_text
from store.sources.held_apart import parted
from store.sources.payload import Object, object_of
from store.sources.sanitise import parse_json
from store.sources.tool_calls import Call, messages_in, results_in
from store.sources.usage import Tokens


class Exchange(NamedTuple):
    """A request and its answer in one form."""

    external_id: str
    messages: list[JsonValue]
    """All that was sent, the system's words first; empty: the log has the answer alone."""
    text: JsonValue
    """What was answered; None: tool calls alone, or nothing."""
    calls: list[Call]
    model: str | None
    tokens: Tokens
    step: Draft = {}  # noqa: RUF012  # never written to
    """Times, status and error of the model's step."""
    metadata: Object = {}  # noqa: RUF012  # never written to
    """What the program attached to the request."""
    people: Draft = {}  # noqa: RUF012  # never written to
    """User and session, where the request has fields for them."""
    attributes: Object = {}  # noqa: RUF012  # never written to


def exchange_items(exchange: Exchange, owner: Draft, refuse: Refuse) -> list[Item]:
    """The trace of an exchange, the model's step in it, and a step for each tool call of this turn."""
    apart: Object = {}
    answer = answer_of(exchange.text, exchange.calls)
    step: Draft = {
        "trace_external_id": exchange.external_id,
        "external_id": exchange.external_id,
        "kind": "llm",
        "name": exchange.model,
        "model": exchange.model,
        "input": exchange.messages or None,
        "output": answer,
        **exchange.tokens.counts,
        **exchange.step,
        "attributes": exchange.attributes | exchange.tokens.attributes,
    }
    trace: Draft = {
        "external_id": exchange.external_id,
        "input": last_words(exchange.messages),
        "output": answer,
        **from_metadata(exchange.metadata),
        **exchange.people,
        "attributes": beside({"metadata": parted(exchange.metadata, apart)}),
        "held_apart": apart,
    }
    return unnamed(assembled(trace, [step], owner, refuse))


def unnamed(items: list[Item]) -> list[Item]:
    """The items with the trace without a name: its first step's is the model's."""
    return [item.model_copy(update={"name": None}) if isinstance(item, Trace) else item for item in items]


def answer_of(text: JsonValue, calls: list[Call]) -> JsonValue:
    """The text that was answered, or an object with it and the tool calls.

    >>> answer_of(None, [Call("c1", "get", {"id": 7})])
    {'content': None, 'tool_calls': [{'type': 'tool_call', 'id': 'c1', 'name': 'get', 'arguments': {'id': 7}}]}
    """
    if not calls:
        return text
    asked: list[JsonValue] = [
        {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments} for call in calls
    ]
    return {"content": text, "tool_calls": asked}


def last_words(messages: list[JsonValue]) -> JsonValue:
    """What the user last said, as text where it is text alone; the whole of it with pictures; None: nothing.

    >>> last_words([{"role": "user", "content": [{"type": "text", "text": "hi"}]}, {"role": "assistant", "content": "?"}])
    'hi'
    """
    for message in reversed(messages_in(messages)):
        if isinstance(message, dict) and message.get("role") == "user" and not results_in(message):
            return text_of(message.get("content", message.get("parts")))
    return None


def text_of(content: JsonValue) -> JsonValue:
    """The text of blocks that are all text, joined by line ends; a text, and blocks of other kinds, as they are."""
    if not isinstance(content, list):
        return content
    texts = [block if isinstance(block, str) else _text(block) for block in content]
    plain = [text for text in texts if text is not None]
    if len(plain) < len(texts):
        return content
    return "\n".join(plain) if plain else None


def _text(block: JsonValue) -> str | None:
    if not isinstance(block, dict) or not isinstance(block.get("text"), str):
        return None
    return as_text(block["text"]) if set(block) <= _OF_TEXT else None


_OF_TEXT = {"type", "text", "annotations", "logprobs", "cache_control", "citations"}


def stream_events(text: str) -> Iterator[Object]:
    """The JSON objects of a stream of server-sent events. Raises BadRecord for one that is none."""
    for line in text.splitlines():
        if line.startswith("data:") and line[5:].strip() not in ("", "[DONE]"):
            value = parse_json(line[5:].strip().encode())
            if not isinstance(value, dict):
                raise BadRecord("an event of the stream is not a JSON object")
            yield value


def http_error(status: JsonValue, body: JsonValue) -> Draft:
    """The status, message and class of a request that failed; empty where it did not."""
    error = object_of(object_of(body).get("error")) or object_of(body) if body else {}
    code = status if isinstance(status, int) else 200
    if code < 400 and not object_of(object_of(body).get("error")):
        return {}
    kind = as_text(error.get("code")) or as_text(error.get("type"))
    message = as_text(error.get("message")) or f"HTTP {code}"
    return {"status": "error", "error": message, "error_type": kind or f"HTTP {code}"}


def first(*values: Any) -> Any:
    return next((value for value in values if value not in (None, "")), None)
