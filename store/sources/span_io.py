"""What went into a step and what came out, by whichever convention says it; messages in one form."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from pydantic import JsonValue

from store.records import SpanKind
from store.sources.attribute_set import AttributeSet
from store.sources.messages import answer_in, finish_reason_in, messages_in, without_echo
from store.sources.otel import Flat, RawEvent

INPUTS = (
    "input.value",
    "traceloop.entity.input",
    "langfuse.observation.input",
    "ai.prompt.messages",
    "ai.prompt",
    "input",
)
OUTPUTS = (
    *("output.value", "traceloop.entity.output", "langfuse.observation.output"),
    *("ai.response.text", "ai.response.object", "output"),
)
_ASKING = ("gen_ai.system.message", "gen_ai.user.message", "gen_ai.assistant.message", "gen_ai.tool.message")
DETAILS = "gen_ai.client.inference.operation.details"


_SPEAKING = frozenset(("gen_ai", "llm"))
"""First words of the names of messages."""


class Exchange(NamedTuple):
    """Input and output of a step; None: not said."""

    input: JsonValue
    output: JsonValue
    finish_reason: JsonValue = None


def exchange_of(kind: SpanKind, attributes: AttributeSet, events: Iterable[RawEvent]) -> Exchange:
    """The step's input and output; of a model, its messages and its answer."""
    if kind == "tool":
        return _tool(attributes)
    if kind == "retrieval":
        return _plain(attributes, "gen_ai.retrieval.query.text")
    if kind == "memory":
        return _plain(attributes, "gen_ai.memory.query.text")
    return _spoken(kind, attributes, list(events))


def _tool(attributes: AttributeSet) -> Exchange:
    asked = attributes.json("gen_ai.tool.call.arguments", "ai.toolCall.args")
    if asked is None:
        asked = _generic(attributes, INPUTS)
    parameters = attributes.tree("tool.parameters")
    answered = attributes.json("gen_ai.tool.call.result", "ai.toolCall.result")
    if answered is None:
        answered = _generic(attributes, OUTPUTS)
    attributes.drop("input.value", "output.value")
    return Exchange(parameters if asked is None else asked, answered)


def _plain(attributes: AttributeSet, question: str) -> Exchange:
    asked = attributes.json(question)
    return Exchange(_generic(attributes, INPUTS) if asked is None else asked, _generic(attributes, OUTPUTS))


def _spoken(kind: SpanKind, attributes: AttributeSet, events: list[RawEvent]) -> Exchange:
    """Of a model, an agent or a chain: messages where there are any, else whatever was said."""
    asked, answered = _messages(attributes, events)
    if asked is not None and kind == "llm":
        attributes.drop("input.value")
    if answered is not None and kind == "llm":
        attributes.drop("output.value")
    given = _generic(attributes, INPUTS) if asked is None else asked
    found = _generic(attributes, OUTPUTS) if answered is None else answered
    if kind == "llm":
        given = messages_in(given) or given
    reason = finish_reason_in(found)
    return Exchange(given, answer_in(found) if kind == "llm" or answered is not None else found, reason)


def _messages(attributes: AttributeSet, events: list[RawEvent]) -> tuple[Any, JsonValue]:
    """The messages to the model and those from it, newest convention first; each None where it is not said."""
    if not events and not attributes.follows(_SPEAKING):
        return None, None
    details = AttributeSet(next((event.attributes for event in events if event.name == DETAILS), {}))
    system = _instructions(attributes) or _instructions(details)
    said = _first_said(
        lambda: attributes.json("gen_ai.input.messages"),
        lambda: details.json("gen_ai.input.messages"),
        lambda: _indexed(attributes, "gen_ai.prompt"),
        lambda: _asked_in(events),
        lambda: _content(events, "gen_ai.content.prompt", "gen_ai.prompt"),
        lambda: attributes.tree("llm.input_messages"),
        lambda: _prompts(attributes),
    )
    asked: Any = messages_in(said) or said
    answered = _first_said(
        lambda: attributes.json("gen_ai.output.messages"),
        lambda: details.json("gen_ai.output.messages"),
        lambda: attributes.tree("gen_ai.completion"),
        lambda: _choices_in(events),
        lambda: _content(events, "gen_ai.content.completion", "gen_ai.completion"),
        lambda: attributes.tree("llm.output_messages"),
        lambda: _choices(attributes),
    )
    attributes.drop("llm.input_messages", "llm.output_messages", "gen_ai.prompt.0", "gen_ai.completion.0")
    return (system + asked if isinstance(asked, list) else asked), answered


def _first_said(*ways: Any) -> JsonValue:
    return next((found for way in ways if (found := way()) not in (None, [], "")), None)


def _instructions(attributes: AttributeSet) -> list[Any]:
    parts = attributes.json("gen_ai.system_instructions")
    if not parts:
        return []
    return messages_in([{"role": "system", "parts" if isinstance(parts, list) else "content": parts}]) or []


def _indexed(attributes: AttributeSet, prefix: str) -> JsonValue:
    """`gen_ai.prompt`, either one JSON text or a tree, beside which the prompt's name and version may stand."""
    kept = {name: attributes.take(name) for name in (f"{prefix}.name", f"{prefix}.version")}
    found = attributes.tree(prefix)
    attributes.rest.update({name: value for name, value in kept.items() if value is not None})
    messages = messages_in(found)
    return without_echo(messages) if messages else found  # type: ignore[return-value]  # messages are JSON


def _asked_in(events: list[RawEvent]) -> JsonValue:
    found: list[JsonValue] = []
    for event in events:
        if event.name in _ASKING:
            said = _said(event.attributes, "content")
            found.append({"role": event.name.split(".")[1], **said})
    return found


def _choices_in(events: list[RawEvent]) -> JsonValue:
    chosen = [event.attributes for event in events if event.name == "gen_ai.choice"]
    return [{"role": "assistant", **_said(attributes, "message")} for attributes in chosen]


def _said(attributes: Flat, name: str) -> Flat:
    """The message of an event: its fields one by one, or all of them as JSON in `name`."""
    known = AttributeSet(attributes)
    body = known.json(name, "event.body", "body")
    fields = {
        key: known.json(key) for key in ("role", "tool_calls", "id", "name", "finish_reason") if key in attributes
    }
    if isinstance(body, dict) and {"role", "content", "tool_calls", "message"} & body.keys():
        inner = body.get("message")
        return fields | (inner if isinstance(inner, dict) else body)
    return {"content": body} | fields


def _content(events: list[RawEvent], event_name: str, attribute: str) -> JsonValue:
    found = next((event.attributes for event in events if event.name == event_name), None)
    return AttributeSet(found).json(attribute) if found else None


def _prompts(attributes: AttributeSet) -> JsonValue:
    """OpenInference's older plain completions: `llm.prompts.N.prompt.text`."""
    texts = [item["prompt"] for item in attributes.items("llm.prompts") if isinstance(item, dict) and "prompt" in item]
    return [{"role": "user", "content": [text]} for text in texts]


def _choices(attributes: AttributeSet) -> JsonValue:
    found = attributes.items("llm.choices")
    texts = [item["completion"] for item in found if isinstance(item, dict) and "completion" in item]
    return [{"role": "assistant", "content": [text]} for text in texts]


def _generic(attributes: AttributeSet, names: tuple[str, ...]) -> JsonValue:
    """The first that is said. OpenLLMetry's are the arguments of a Python call, its texts JSON too."""
    for name in names:
        if attributes.peek(name) is None:
            continue
        if name.startswith("traceloop."):
            return _arguments(attributes.encoded(name))
        return attributes.json(name)
    return None


def _arguments(value: JsonValue) -> JsonValue:
    if not isinstance(value, dict):
        return value
    if value.keys() == {"inputs"} or (value.keys() <= {"inputs", "tags", "metadata", "kwargs"} and "inputs" in value):
        return value["inputs"]
    if value.keys() == {"args", "kwargs"}:
        if not value["args"]:
            return value["kwargs"]
        if not value["kwargs"]:
            return value["args"]
    return value
