"""One trace, span or score of Opik as ours."""

from typing import Any
from zoneinfo import ZoneInfo

from pydantic import JsonValue

from store.records import Feedback, SpanKind
from store.records.production import SourceKind
from store.sources.assembly import Draft, timed
from store.sources.context_fields import beside, error_type_of, from_metadata, sounds_human, unquoted
from store.sources.contract import BadRecord
from store.sources.fields import as_id, as_number, as_text, make
from store.sources.held_apart import part_io, parted
from store.sources.payload import Object, cut_fields, decoded, list_of, object_of
from store.sources.retrieved import records_in
from store.sources.times import Moment, parse_time
from store.sources.usage import Tokens, either

KINDS: dict[str, SpanKind] = {"llm": "llm", "tool": "tool", "guardrail": "guardrail", "general": "other"}
_KINDS_OF_SOURCE: dict[str, SourceKind] = {"ui": "human", "online_scoring": "judge"}
_ZONE = ZoneInfo("UTC")
_SCORE = "feedback_scores."
_ORIGINAL = "original_usage."
_TAKEN = (
    *("id", "trace_id", "parent_span_id", "name", "type", "start_time", "end_time", "input", "output", "metadata"),
    *("error_info", "thread_id", "usage", "total_estimated_cost", "duration", "feedback_scores", "model", "source"),
    *("last_updated_at", "last_updated_by", "created_at", "created_by", "project_id", "span_feedback_scores"),
    *("span_count", "llm_span_count", "guardrails_validations", "visibility_mode", "ttft", "has_tool_spans"),
)


def trace_draft(value: Object, apart: Object) -> Draft:
    """A trace's fields; evaluation data in it goes to `apart`."""
    metadata = object_of(value.get("metadata"))
    usage = _tokens(value)
    return {
        "external_id": as_id(value.get("id")),
        **from_metadata(metadata),
        **({"session": unquoted(value["thread_id"])} if value.get("thread_id") else {}),
        **_common(value, apart),
        **usage.counts,
        "attributes": _attributes(value, metadata, apart) | usage.attributes,
    }


def span_draft(value: Object, apart: Object) -> Draft:
    """A span's fields; documents in a tool's output become the span's, since Opik has no retrievers."""
    metadata = object_of(value.get("metadata"))
    usage = _tokens(value)
    kind = KINDS.get(str(value.get("type")), "other")
    common = _common(value, apart)
    found = object_of(common.get("output")).get("documents")
    return {
        "trace_external_id": as_id(value.get("trace_id")),
        "external_id": as_id(value.get("id")),
        "parent_external_id": as_id(value.get("parent_span_id")),
        "kind": kind,
        "model": as_text(value.get("model")),
        "prompt_version": as_text(metadata.get("prompt_version")),
        "documents": records_in(found) if kind in ("tool", "other") and isinstance(found, list) else (),
        **common,
        **usage.counts,
        "attributes": _attributes(value, metadata, apart) | usage.attributes,
    }


def _common(value: Object, apart: Object) -> Draft:
    error = object_of(value.get("error_info"))
    message = as_text(error.get("message")) or as_text(error.get("exception_type"))
    failed: Draft = {"status": "error", "error": message} if error else {}
    if error and "trace_id" in value:
        failed["error_type"] = as_text(error.get("exception_type")) or error_type_of(message)
    return {
        "name": as_text(value.get("name")),
        "input": part_io(decoded(value.get("input")), apart),
        "output": part_io(decoded(value.get("output")), apart),
        "cost_usd": as_number(value.get("total_estimated_cost")),
        **timed(_moment(value, "start_time"), _moment(value, "end_time")),
        **failed,
    }


def _moment(value: Object, name: str) -> Moment | None:
    try:
        return parse_time(value.get(name), _ZONE)
    except BadRecord as error:
        raise BadRecord(f"{name}: {error}") from error


def _tokens(value: Object) -> Tokens:
    usage = object_of(value.get("usage"))
    details: Object = {}
    for key, count in usage.items():
        if key.startswith(_ORIGINAL) and "cache" in key:
            details[key.rsplit(".", 1)[-1].replace("cached_tokens", "cache_read_tokens")] = count
    return either({**details, **usage})


def _attributes(value: Object, metadata: Object, apart: Object) -> Object:
    kept = {key: item for key, item in parted(beside(value, *_TAKEN), apart).items() if not key.startswith(_SCORE)}
    error = object_of(value.get("error_info"))
    kept |= beside({"traceback": error.get("traceback"), "metadata": parted(metadata, apart)})
    return kept | cut_fields(input=value.get("input"), output=value.get("output"))


def score_list(value: Object) -> list[Object]:
    """The scores that stand in a trace or a span, as a list or as columns, with what they are of."""
    of = {"trace_id": value["trace_id"], "span_id": value.get("id")} if "trace_id" in value else {"id": value.get("id")}
    scores = [object_of(item) | of for item in list_of(value.get("feedback_scores"))]
    for key, item in value.items():
        if key.startswith(_SCORE) and item not in (None, ""):
            scores.append({"name": key.removeprefix(_SCORE), "value": item, **of})
    return scores


def score_feedback(score: Object, owner: Draft) -> Feedback:
    """The feedback that a score is; `trace_id` and `span_id` say what it is of, else `id` names the trace."""
    trace = as_id(score.get("trace_id")) or as_id(score.get("id"))
    if trace is None:
        raise BadRecord("id: missing; it is the trace that the score is of")
    span, name = as_id(score.get("span_id")), as_text(score.get("name")) or "score"
    author = as_id(score.get("created_by"))
    given = _moment(score, "last_updated_at") or _moment(score, "created_at")
    values: dict[str, Any] = {
        "trace_external_id": trace,
        "span_external_id": span,
        "external_id": ":".join(part for part in (name, span or trace, author) if part),
        "name": name,
        "score": as_number(score.get("value")),
        "label": as_text(score.get("category_name")) or None,
        "comment": as_text(score.get("reason")) or None,
        "source_kind": _source_kind(score, name),
        "principal": author,
        "given_us": given.us if given else None,
        "attributes": _said_by(score),
    }
    return make(Feedback, owner | values)


def _source_kind(score: Object, name: str) -> SourceKind:
    """A score of the interface is a person's, of online scoring a judge's; of the SDK its name must tell."""
    known = _KINDS_OF_SOURCE.get(str(score.get("source")))
    return known or ("human" if sounds_human(name) else "program")


def _said_by(score: Object) -> dict[str, JsonValue]:
    return beside({"value_by_author": score.get("value_by_author")})
