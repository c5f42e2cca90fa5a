"""A span as its exporter wrote it, made ours: one `Span`, what was said of it as `Feedback`, what is held apart."""

from typing import Any, NamedTuple

from pydantic import JsonValue

from store.assembled import CLAIMS
from store.records import Feedback, Span, SpanKind
from store.sources.attribute_set import AttributeSet
from store.sources.fields import as_text, make
from store.sources.held_apart import part_io
from store.sources.json_text import loaded
from store.sources.messages import messages_in
from store.sources.otel import Flat, RawSpan
from store.sources.span_feedback import feedback_in
from store.sources.span_io import exchange_of
from store.sources.span_kinds import kind_of
from store.sources.trace_claims import claims_of, take_apart
from store.sources.usage import Tokens, either, langfuse

Values = dict[str, Any]

_MODEL = (
    *("gen_ai.response.model", "llm.response.model_name", "llm.model_name", "embedding.model_name"),
    *("reranker.model_name", "langfuse.observation.model.name", "gen_ai.request.model", "llm.request.model_name"),
)
_USAGE = {
    "input": (
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.prompt_tokens",
        "llm.token_count.prompt",
        "llm.usage.prompt_tokens",
    ),
    "output": (
        *("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
        *("llm.token_count.completion", "llm.usage.completion_tokens"),
    ),
    "cache_read_tokens": (
        *("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens"),
        *("gen_ai.usage.cache_read_tokens", "llm.token_count.prompt_details.cache_read"),
    ),
    "cache_write_tokens": (
        *("gen_ai.usage.cache_write.input_tokens", "gen_ai.usage.cache_creation.input_tokens"),
        *("gen_ai.usage.cache_creation_input_tokens", "gen_ai.usage.cache_write_tokens"),
        "llm.token_count.prompt_details.cache_write",
    ),
    "reasoning_tokens": (
        *("gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.reasoning_tokens"),
        "llm.token_count.completion_details.reasoning",
    ),
    "total": ("llm.usage.total_tokens", "gen_ai.usage.total_tokens", "llm.token_count.total"),
}
_NAMES: dict[str, tuple[str, ...]] = {
    "tool": ("gen_ai.tool.name", "tool.name", "ai.toolCall.name", "traceloop.entity.name"),
    "agent": ("gen_ai.agent.name", "agent.name", "traceloop.entity.name"),
    "chain": ("gen_ai.workflow.name", "traceloop.entity.name"),
    "retrieval": ("gen_ai.data_source.id",),
    "memory": ("gen_ai.memory.store.id",),
}
_MODELS = frozenset(("gen_ai", "llm", "langfuse"))
_RETRIEVING = frozenset(("gen_ai", "reranker", "retrieval"))
"""First words of the names that say it."""
_KEPT_EVENTS = 50
_UNDERSTOOD = ("gen_ai.", "First Token Stream Event", "exception")


class Made(NamedTuple):
    """What one span became."""

    span: Span
    feedback: tuple[Feedback, ...]
    held_apart: Flat


def made_of(raw: RawSpan, owner: Values) -> Made:
    """Our records of a span. `owner` is their project and source. Raises BadRecord where it cannot be one."""
    attributes = AttributeSet(raw.attributes)
    attributes.drop("input.mime_type", "output.mime_type")
    kind = kind_of(attributes)
    feedback = feedback_in(raw, attributes, owner)
    apart = take_apart(raw, attributes)
    claims = claims_of(raw, attributes)
    exchange = exchange_of(kind, attributes, raw.events)
    values: Values = {
        **owner,
        "trace_external_id": raw.trace_id,
        "external_id": raw.span_id,
        "parent_external_id": raw.parent_id,
        "kind": kind,
        "name": attributes.text(*_NAMES.get(kind, ())) or raw.name,
        **_times(raw),
        **_state(raw, attributes),
        "input": part_io(exchange.input, apart) if kind == "evaluator" else exchange.input,
        "output": exchange.output,
        "tool_call_id": attributes.text("gen_ai.tool.call.id", "tool_call.id", "tool.id", "ai.toolCall.id"),
        "model": attributes.text(*_MODEL),
        "cost_usd": _cost(attributes),
        "documents": _documents(kind, attributes, exchange.output),
        "memories": _memories(kind, attributes, exchange.output),
    }
    confidence = attributes.number("filmroom.confidence")
    if confidence is not None and 0 <= confidence <= 1:
        values["confidence"] = confidence
    tokens = _tokens(attributes)
    values |= tokens.counts
    reason = attributes.take("llm.finish_reason") or exchange.finish_reason
    named = {} if values["name"] == raw.name else {"span_name": raw.name}
    more = {
        "finish_reason": reason,
        **named,
        CLAIMS: claims,
        "tools": _tools(attributes),
        "events": _events(raw),
    }
    left = {name: value for name, value in more.items() if value not in (None, "", {}, [])}
    values["attributes"] = {**attributes.rest, **tokens.attributes, **left, **attributes.flaws.marks}
    return Made(make(Span, values), tuple(feedback), apart)


def _times(raw: RawSpan) -> Values:
    times: Values = {}
    if raw.started:
        times |= {"started_us": raw.started.us, "started_ns": raw.started.ns}
    if raw.ended and not (raw.started and raw.ended < raw.started):
        times["ended_us"] = raw.ended.us
    return times


def _state(raw: RawSpan, attributes: AttributeSet) -> Values:
    """Status and error. An exception that was caught, on a span that did not fail, is no error of it."""
    if raw.status != "error" and not attributes.follows(_MODELS):
        return {"status": raw.status}
    level = attributes.peek("langfuse.observation.level")
    said = attributes.text("langfuse.observation.status_message")
    if raw.status != "error" and level not in ("ERROR", "WARNING"):
        return {"status": raw.status}
    thrown = next((event.attributes for event in raw.events if event.name == "exception"), {})
    error = raw.message or said or thrown.get("exception.message")
    kind = attributes.text("error.type") or thrown.get("exception.type")
    stack = as_text(thrown.get("exception.stacktrace"))
    if stack:
        attributes.rest["stacktrace"] = stack
    return {"status": "error", "error": as_text(error) or None, "error_type": as_text(kind) or None}


def _tokens(attributes: AttributeSet) -> Tokens:
    if not attributes.follows(_MODELS):
        return Tokens()
    details = attributes.json("langfuse.observation.usage_details")
    if isinstance(details, dict):
        return langfuse(details)
    found = {name: count for name, names in _USAGE.items() if (count := attributes.count(*names)) is not None}
    return either({**found}) if found else Tokens()


def _cost(attributes: AttributeSet) -> float | None:
    """US dollars; the total, or the sum of its parts."""
    if not attributes.follows(_MODELS):
        return None
    details = attributes.json("langfuse.observation.cost_details")
    parts = details if isinstance(details, dict) else {}
    total = attributes.number("llm.cost.total", "gen_ai.usage.cost", "gen_ai.usage.total_cost")
    if total is None and isinstance(parts.get("total"), (int, float)):
        total = float(parts["total"])  # type: ignore[arg-type]  # checked the line above
    if total is not None:
        return total
    each = [attributes.number("llm.cost.prompt"), attributes.number("llm.cost.completion")]
    each += [value for value in parts.values() if isinstance(value, (int, float))]
    known = [value for value in each if value is not None]
    return round(sum(known), 12) if known else None


def _documents(kind: SpanKind, attributes: AttributeSet, output: JsonValue) -> tuple[JsonValue, ...]:
    """What a retrieval found; of a reranker what it kept."""
    for found in _found_documents(attributes):
        if found:
            return tuple(_document(_bare(item, "document"), attributes) for item in found)
    return _listed(output) if kind == "retrieval" else ()


def _found_documents(attributes: AttributeSet) -> tuple[list[JsonValue], ...]:
    if not attributes.follows(_RETRIEVING):
        return ()
    return (
        attributes.records("gen_ai.retrieval.documents"),
        attributes.items("reranker.output_documents"),
        attributes.items("retrieval.documents"),
    )


def _memories(kind: SpanKind, attributes: AttributeSet, output: JsonValue) -> tuple[JsonValue, ...]:
    found = attributes.records("gen_ai.memory.records")
    return tuple(found) or (_listed(output) if kind == "memory" else ())


def _document(item: JsonValue, attributes: AttributeSet) -> JsonValue:
    """A document, its metadata no longer as text."""
    if not isinstance(item, dict) or not isinstance(item.get("metadata"), str):
        return item
    return {**item, "metadata": loaded(item["metadata"], "document.metadata", attributes.flaws)}


def _listed(output: JsonValue) -> tuple[JsonValue, ...]:
    """An output that is a list of records, and no messages."""
    is_records = isinstance(output, list) and not messages_in(output) and all(isinstance(item, dict) for item in output)
    return tuple(output) if is_records and isinstance(output, list) else ()


def _bare(item: JsonValue, wrapping: str) -> JsonValue:
    inner = item.get(wrapping) if isinstance(item, dict) else None
    return inner if isinstance(inner, dict) else item


def _tools(attributes: AttributeSet) -> JsonValue:
    """The tools that were offered to the model, with their schemas."""
    if not attributes.follows(_MODELS):
        return None
    named = attributes.json("gen_ai.tool.definitions") or attributes.items("llm.request.functions")
    if named:
        return named
    found = [_bare(item, "tool") for item in attributes.items("llm.tools")]
    if not found:
        return None
    schemas = [item.get("json_schema", item) if isinstance(item, dict) else item for item in found]
    holder = AttributeSet({str(place): schema for place, schema in enumerate(schemas)})
    return [holder.json(str(place)) for place in range(len(schemas))]


def _events(raw: RawSpan) -> JsonValue:
    """The events that nothing else tells of; an exception too, on a span that did not fail of it."""
    if not raw.events:
        return None
    told = _UNDERSTOOD if raw.status == "error" else _UNDERSTOOD[:-1]
    others = [event for event in raw.events if not event.name.startswith(told)]
    return [{"name": event.name, "attributes": event.attributes} for event in others[:_KEPT_EVENTS]]
