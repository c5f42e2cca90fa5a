"""TensorZero's inferences, model inferences and datapoints as ours; their ids are UUIDs of version 7 and tell the time."""

from uuid import UUID

from pydantic import JsonValue

from store.records import Span, Trace
from store.sources.assembly import Draft, Refuse, assembled
from store.sources.chat_exchange import answer_of, last_words, text_of
from store.sources.context_fields import beside, from_metadata, unquoted
from store.sources.contract import BadRecord, Item
from store.sources.fields import as_id, as_number, as_text, make
from store.sources.held_apart import parted
from store.sources.payload import Object, cut_fields, decoded, list_of, object_of
from store.sources.tool_calls import calls_in
from store.sources.usage import either

_TAKEN = (
    *("id", "inference_id", "function_name", "variant_name", "episode_id", "input", "output", "tags", "timestamp"),
    *("processing_time_ms", "tool_params", "type", "dispreferred_outputs", "is_deleted", "staled_at", "updated_at"),
)


def time_of(id_: JsonValue) -> int | None:
    """The microseconds since 1970 in a UUID of version 7; None for another id.

    >>> time_of("019562dc-d5b0-7e43-800d-3a5d37ec37a3"), time_of("x")
    (1741120394672000, None)
    """
    try:
        found = UUID(str(id_))
    except ValueError:
        return None
    return (found.int >> 80) * 1000 if found.version == 7 else None


def inference_items(row: Object, owner: Draft, refuse: Refuse) -> list[Item]:
    """The trace of an inference, the model's step, and a step for each tool call."""
    external_id = _id_of(row)
    apart: Object = {}
    tags = object_of(row.get("tags"))
    sent, got = decoded(row.get("input")), decoded(row.get("output"))
    answer = answer_in(got)
    started, took = time_of(external_id), as_number(row.get("processing_time_ms"))
    times: Draft = {} if started is None else {"started_us": started}
    if started is not None and took is not None:
        times["ended_us"] = started + round(took * 1000)
    function = as_text(row.get("function_name"))
    trace: Draft = {
        "external_id": external_id,
        "name": function,
        "session": unquoted(row.get("episode_id")),
        "input": asked_in(sent),
        "output": answer,
        **from_metadata(tags),
        "prompt_version": as_text(row.get("variant_name")),
        **times,
        "attributes": parted(beside(row, *_TAKEN), apart)
        | beside({"tags": parted(tags, apart)})
        | cut_fields(input=row.get("input"), output=row.get("output")),
        "held_apart": apart,
    }
    step: Draft = {
        "trace_external_id": external_id,
        "external_id": external_id,
        "kind": "llm",
        "name": function,
        "input": sent,
        "output": answer,
        **times,
        "attributes": beside({"tool_params": decoded(row.get("tool_params"))}),
    }
    return assembled(trace, [step], owner, refuse)


def model_inference_items(row: Object, owner: Draft) -> list[Item]:
    """The step of one request to a provider, below the inference that made it."""
    inference, external_id = as_id(row.get("inference_id")), as_id(row.get("id"))
    if inference is None or external_id is None:
        raise BadRecord("inference_id or id: missing")
    tokens = either(row)
    started, took = time_of(external_id), as_number(row.get("response_time_ms"))
    step: Draft = {
        "trace_external_id": inference,
        "external_id": external_id,
        "parent_external_id": inference,
        "kind": "llm",
        "name": as_text(row.get("model_name")),
        "model": as_text(row.get("model_name")),
        "input": decoded(row.get("raw_request") or row.get("input_messages")),
        "output": decoded(row.get("raw_response") or row.get("output")),
        "cost_usd": as_number(row.get("cost")),
        "started_us": started,
        "ended_us": None if started is None or took is None else started + round(took * 1000),
        **tokens.counts,
        "attributes": beside(
            {"finish_reason": row.get("finish_reason"), "provider": row.get("model_provider_name")} | tokens.attributes
        ),
    }
    return [make(Span, owner | step)]


def datapoint_items(row: Object, owner: Draft) -> list[Item]:
    """The trace of a datapoint: what would be asked, and, held apart, what should be answered. A deleted one is none."""
    if row.get("is_deleted") is True:
        return []
    apart: Object = {}
    tags = object_of(row.get("tags"))
    expected = answer_in(decoded(row.get("output")))
    if expected is not None:
        apart["expected_output"] = expected
    trace: Draft = {
        "external_id": _id_of(row),
        "name": as_text(row.get("function_name")),
        "session": unquoted(row.get("episode_id")),
        "input": asked_in(decoded(row.get("input"))),
        **from_metadata(tags),
        "attributes": parted(beside(row, *_TAKEN), apart) | beside({"tags": parted(tags, apart)}),
        "held_apart": apart,
    }
    return [make(Trace, owner | trace)]


def _id_of(row: Object) -> str:
    found = as_id(row.get("inference_id")) or as_id(row.get("id"))
    if found is None:
        raise BadRecord("id: missing")
    return found


def asked_in(sent: JsonValue) -> JsonValue:
    """What the user last said: a text, the arguments of a template, else the whole input."""
    messages = list_of(object_of(sent).get("messages"))
    words = last_words(messages)
    if isinstance(words, list) and len(words) == 1:
        only = object_of(words[0])
        words = only.get("arguments", only.get("value", words))
    return sent if words is None else words


def answer_in(output: JsonValue) -> JsonValue:
    """The text, with its tool calls where there are any; of a JSON function what was parsed, else the raw text."""
    if isinstance(output, dict) and {"raw", "parsed"} & output.keys():
        return output["parsed"] if output.get("parsed") is not None else output.get("raw")
    if not isinstance(output, list):
        return output
    texts = [block for block in output if object_of(block).get("type") == "text"]
    others = [block for block in output if object_of(block).get("type") not in ("text", "tool_call")]
    text = text_of(texts) if texts else None
    return output if others and not texts else answer_of(text, calls_in(output))
