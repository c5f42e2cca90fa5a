"""Langfuse's traces and observations as ours, whatever route they came by.

The interface and the API write camelCase, exports to a bucket snake_case; a time without an offset is UTC there. CSV cells
hold JSON. Inputs and outputs are often JSON inside a JSON text.
"""

from typing import Any
from zoneinfo import ZoneInfo

from store.records import SpanKind
from store.sources.assembly import Draft, timed
from store.sources.context_fields import beside, error_type_of, from_metadata, unquoted
from store.sources.contract import BadRecord
from store.sources.fields import as_count, as_id, as_number, as_text
from store.sources.held_apart import part_io, parted
from store.sources.payload import Object, cut_fields, decoded, object_of
from store.sources.times import Moment, parse_time
from store.sources.usage import Tokens, inclusive, langfuse

UTC = ZoneInfo("UTC")

KINDS: dict[str, SpanKind] = {
    "SPAN": "other",
    "EVENT": "other",
    "GENERATION": "llm",
    "AGENT": "agent",
    "TOOL": "tool",
    "CHAIN": "chain",
    "RETRIEVER": "retrieval",
    "EMBEDDING": "embedding",
    "EVALUATOR": "evaluator",
    "GUARDRAIL": "guardrail",
}

_FIELDS = (
    *("trace_id", "parent_observation_id", "start_time", "end_time", "status_message", "provided_model_name"),
    *("model_parameters", "prompt_name", "prompt_version", "usage_details", "cost_details", "total_cost"),
    *("input_cost", "output_cost", "user_id", "session_id", "trace_name", "trace_tags", "project_id"),
    *("created_at", "updated_at", "event_ts", "is_deleted", "internal_model_id", "internal_model", "prompt_id"),
    *("completion_start_time", "time_to_first_token", "input_usage", "output_usage", "total_usage"),
    *("tool_calls", "tool_call_names", "tool_definitions", "provided_usage_details", "provided_cost_details"),
    *("usage_pricing_tier_id", "usage_pricing_tier_name", "is_root_observation", "is_app_root", "html_path"),
    *("prompt_tokens", "completion_tokens", "total_tokens", "calculated_total_cost", "input_price", "output_price"),
    *("total_price", "calculated_input_cost", "calculated_output_cost", "model_id", "observation_id", "data_type"),
    *("string_value", "long_string_value", "author_user_id", "dataset_run_id", "config_id", "queue_id"),
    *("execution_trace_id", "observation_count", "input_tokens", "output_tokens", "error_count", "warning_count"),
    *("default_count", "debug_count", "comment_count"),
)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


_SNAKE = {_camel(name): name for name in _FIELDS}
_NOT_KEPT = frozenset(_FIELDS) | {
    *("id", "timestamp", "name", "input", "output", "metadata", "type", "level", "model", "latency", "public"),
    *("bookmarked", "release", "version", "tags", "scores", "corrections", "observations", "usage", "unit"),
    *("environment", "comments"),
}
"""Fields that have a place of their own, or say nothing of what happened."""

NOT_SCORES = _NOT_KEPT
"""Columns of a batch export that are not named after a score."""


def in_snake_case(row: Object) -> Object:
    """The row with Langfuse's own fields in snake_case; any other name, such as that of a score, as it is."""
    return row if _SNAKE.keys().isdisjoint(row) else {_SNAKE.get(key, key): value for key, value in row.items()}


def is_camel_case(row: Object) -> bool:
    return not _SNAKE.keys().isdisjoint(row)


def moment(row: Object, *names: str) -> Moment | None:
    """The first of the times that is said. Raises BadRecord, naming the field, for one that is none."""
    for name in names:
        try:
            found = parse_time(row.get(name), UTC)
        except BadRecord as error:
            raise BadRecord(f"{name}: {error}") from error
        if found is not None:
            return found
    return None


def observation_draft(row: Object, apart: Object) -> Draft:
    """A span's fields from an observation in snake_case; evaluation data in it goes to `apart`."""
    external_id = as_id(row.get("id"))
    if external_id is None:
        raise BadRecord("id: missing; it is the id of the observation")
    metadata = object_of(row.get("metadata"))
    wire = object_of(metadata.get("attributes"))
    tokens = _tokens(row)
    read, written = decoded(row.get("input")), decoded(row.get("output"))
    return {
        "trace_external_id": trace_id_of(row),
        "external_id": external_id,
        "parent_external_id": as_id(row.get("parent_observation_id")),
        "kind": _kind(row, wire),
        "name": as_text(row.get("name")),
        "input": part_io(read, apart),
        "output": written,
        "model": as_text(row.get("model") or row.get("provided_model_name")) or None,
        "tool_call_id": as_text(wire.get("gen_ai.tool.call.id")),
        "prompt_version": _prompt(row),
        "cost_usd": _cost(row),
        **timed(moment(row, "start_time"), moment(row, "end_time")),
        **_status(row),
        **tokens.counts,
        "attributes": _attributes(row, metadata, apart) | tokens.attributes | cut_fields(input=read, output=written),
    }


def trace_id_of(row: Object) -> str:
    """The trace of an observation; where none is named, the observation is one of its own."""
    found = as_id(row.get("trace_id")) or as_id(row.get("id"))
    if found is None:
        raise BadRecord("trace_id: missing; it is the id of the trace that this belongs to")
    return found


def _kind(row: Object, wire: Object) -> SpanKind:
    if str(wire.get("gen_ai.operation.name")).endswith("_memory"):
        return "memory"
    return KINDS.get(str(row.get("type")).upper(), "other")


def _status(row: Object) -> Draft:
    if row.get("level") != "ERROR":
        return {}
    message = as_text(row.get("status_message")) or None
    return {"status": "error", "error": message, "error_type": error_type_of(message)}


def _tokens(row: Object) -> Tokens:
    details = object_of(row.get("usage_details"))
    if details:
        return langfuse(details)
    usage = object_of(row.get("usage"))
    if usage:
        return inclusive(usage)
    names = ("input_usage", "output_usage"), ("prompt_tokens", "completion_tokens")
    sent, got = next(((a, b) for a, b in names if row.get(a) or row.get(b)), (None, None))
    return Tokens(as_count(row.get(sent)), as_count(row.get(got))) if sent and got else Tokens()


def _cost(row: Object) -> float | None:
    """US dollars; None where nothing was priced, which Langfuse writes as 0."""
    details = object_of(row.get("cost_details"))
    priced = [row.get("total_cost"), details.get("total"), row.get("calculated_total_cost")]
    return next((cost for value in priced if (cost := as_number(value))), 0.0 if details else None)


def _prompt(row: Object) -> str | None:
    """Name and version of the prompt, as `support:7`."""
    said = [text for key in ("prompt_name", "prompt_version") if (text := as_text(row.get(key)))]
    return ":".join(said) or None


def _attributes(row: Object, metadata: Object, apart: Object) -> Object:
    kept = parted(beside(row, *_NOT_KEPT), apart)
    if metadata:
        kept["metadata"] = parted(metadata, apart)
    for key in ("environment", "version", "model_parameters", "time_to_first_token", "tool_definitions"):
        if (value := decoded(row.get(key))) not in (None, "", [], {}):
            kept[key] = value
    if row.get("level") not in (None, "", "DEFAULT", "ERROR"):
        kept |= beside({"level": row["level"], "status_message": row.get("status_message")})
    return kept


def trace_draft(row: Object, apart: Object) -> Draft:
    """A trace's fields from a trace in snake_case."""
    external_id = as_id(row.get("id"))
    if external_id is None:
        raise BadRecord("id: missing; it is the id of the trace")
    metadata = object_of(row.get("metadata"))
    read, written = decoded(row.get("input")), decoded(row.get("output"))
    attributes = parted(beside(row, *_NOT_KEPT), apart) | cut_fields(input=read, output=written)
    if metadata:
        attributes["metadata"] = parted(metadata, apart)
    attributes |= beside({"environment": row.get("environment"), "tags": decoded(row.get("tags"))})
    tokens = Tokens(as_count(row.get("input_tokens")), as_count(row.get("output_tokens")))
    return {
        "external_id": external_id,
        "name": as_text(row.get("name")),
        "input": part_io(read, apart),
        "output": written,
        **_people(row, metadata),
        **timed(moment(row, "timestamp"), None),
        **{name: count for name, count in tokens.counts.items() if count},
        "attributes": attributes,
    }


def _people(row: Object, metadata: Object) -> Draft:
    return from_metadata(metadata) | {key: value for key, value in _own(row).items() if value}


def _own(row: Object) -> dict[str, str | None]:
    release = as_text(row.get("release"))
    return {
        "user": unquoted(row.get("user_id")),
        "session": unquoted(row.get("session_id")),
        "app_version": release or as_text(row.get("version")),
        "release": release if release and release.startswith("rel_") else None,
    }


def trace_of_observations(rows: list[Object], apart: Object) -> Draft:
    """What observations say of their trace: user, session, name, tags; its input from a marked root."""
    marked = [row for row in rows if row.get("is_root_observation") is True or row.get("is_app_root") is True]
    said: dict[str, Any] = {}
    for row in rows:
        found = _own(row) | {"name": as_text(row.get("trace_name"))}
        said |= {key: value for key, value in found.items() if value and key not in said}
    attributes: Object = {}
    for row in rows:
        tags = decoded(row.get("tags") or row.get("trace_tags"))
        attributes |= beside({"environment": row.get("environment"), "tags": tags})
    for row in marked[:1]:
        said |= {"input": part_io(decoded(row.get("input")), apart), "output": decoded(row.get("output"))}
    return said | {"attributes": attributes}
