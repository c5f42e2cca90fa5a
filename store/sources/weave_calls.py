"""One call of Weave as a span, and a root call as a trace."""

from zoneinfo import ZoneInfo

from pydantic import JsonValue

from store.records import SpanKind
from store.sources.assembly import Draft, timed
from store.sources.context_fields import beside, error_type_of, from_metadata, unquoted
from store.sources.contract import BadRecord
from store.sources.fields import as_id, as_number, as_text
from store.sources.held_apart import part_io, parted, put
from store.sources.payload import Object, decoded, object_of
from store.sources.retrieved import look_like_documents, records_in
from store.sources.times import Moment, parse_time
from store.sources.usage import either

_ZONE = ZoneInfo("UTC")
_KINDS: dict[str, SpanKind] = {
    "llm": "llm",
    "tool": "tool",
    "agent": "agent",
    "search": "retrieval",
    "retriever": "retrieval",
    "memory": "memory",
    "embedding": "embedding",
    "guardrail": "guardrail",
    "scorer": "evaluator",
}
_EVALUATIONS = ("Evaluation.predict_and_score", "Evaluation.evaluate")
_EXAMPLE = ("example", "row", "target", "expected", "label")


def call_draft(call: Object, trace_id: str, apart: Object, *, is_leaf: bool) -> Draft:
    """A span's fields. A call says not what it is: with usage it is a model's, with documents a search, else a tool."""
    name, digest = op_of(call)
    written = decoded(call.get("output"))
    usage = _usage(call)
    model, counts = next(iter(usage.items()), (None, {}))
    tokens = either(counts)
    kind = _kind(call, written, bool(usage), is_leaf=is_leaf)
    return {
        "trace_external_id": trace_id,
        "external_id": as_id(call.get("id")),
        "parent_external_id": as_id(call.get("parent_id")),
        "kind": kind,
        "name": as_text(call.get("display_name")) or name,
        "input": part_io(_asked(call, name, apart), apart),
        "output": part_io(written, apart),
        "model": model if kind == "llm" else None,
        "documents": records_in(written) if kind == "retrieval" else (),
        **timed(_moment(call, "started_at"), _moment(call, "ended_at")),
        **_status(call),
        **(tokens.counts if kind == "llm" else {}),
        **({"cost_usd": _cost(call)} if kind == "llm" else {}),
        "attributes": beside({"op_version": digest}) | (tokens.attributes if kind == "llm" else {}),
    }


def claims_of(call: Object, apart: Object) -> Draft:
    """What the root call says of the whole."""
    attributes = {key: value for key, value in object_of(call.get("attributes")).items() if key != "weave"}
    _, digest = op_of(call)
    said: Draft = {"app_version": digest, **from_metadata(attributes)}
    session, user = unquoted(call.get("thread_id")), unquoted(call.get("wb_user_id"))
    if session:
        said["session"] = session
    if user:
        said.setdefault("user", user)
    return said | {"attributes": beside({"metadata": parted(attributes, apart)})}


def op_of(call: Object) -> tuple[str | None, str | None]:
    """The name of the operation and the digest of its code.

    >>> op_of({"op_name": "weave:///e/p/op/search_kb:AbC"}), op_of({"op_name": "openai.chat"})
    (('search_kb', 'AbC'), ('openai.chat', None))
    """
    text = as_text(call.get("op_name"))
    if not text or not text.startswith("weave:///"):
        return text, None
    name, _, digest = text.rsplit("/", 1)[-1].rpartition(":")
    return (name, digest) if name else (digest, None)


def _kind(call: Object, written: JsonValue, has_usage: bool, *, is_leaf: bool) -> SpanKind:
    said = object_of(object_of(call.get("attributes")).get("weave")).get("kind")
    if str(said) in _KINDS:
        return _KINDS[str(said)]
    if str(op_of(call)[0]).startswith(_EVALUATIONS):
        return "evaluator"
    if is_leaf and has_usage:
        return "llm"
    if is_leaf and look_like_documents(records_in(written)):
        return "retrieval"
    return "tool" if is_leaf and call.get("parent_id") else "chain"


def _asked(call: Object, name: str | None, apart: Object) -> JsonValue:
    """The inputs; of an evaluation without the example, whose answer is in it."""
    inputs = decoded(call.get("inputs"))
    if not isinstance(inputs, dict) or not str(name).startswith(_EVALUATIONS):
        return inputs
    for key in _EXAMPLE:
        if key in inputs:
            put(apart, key, inputs[key])
    return {key: value for key, value in inputs.items() if key not in _EXAMPLE}


def _usage(call: Object) -> Object:
    return object_of(object_of(call.get("summary")).get("usage"))


def _cost(call: Object) -> float | None:
    costs = object_of(object_of(object_of(call.get("summary")).get("weave")).get("costs"))
    parts = [
        as_number(object_of(cost).get(f"{side}_tokens_total_cost"))
        for cost in costs.values()
        for side in ("prompt", "completion")
    ]
    known = [part for part in parts if part is not None]
    return sum(known) if known else None


def _status(call: Object) -> Draft:
    """The exception is a text, or an object in one, whose traceback is left behind."""
    exception = as_text(call.get("exception"))
    if exception:
        said = object_of(exception)
        kind, message = as_text(said.get("type")), as_text(said.get("message"))
        text = ": ".join(part for part in (kind, message) if part) or exception
        return {"status": "error", "error": text, "error_type": kind or error_type_of(exception)}
    summary = object_of(call.get("summary"))
    state = object_of(summary.get("weave")).get("status")
    if state == "error":
        return {"status": "error"}
    counts = object_of(summary.get("status_counts"))
    return {"status": "ok"} if state == "success" or counts or (call.get("ended_at") and not state) else {}


def _moment(call: Object, name: str) -> Moment | None:
    try:
        return parse_time(call.get(name), _ZONE)
    except BadRecord as error:
        raise BadRecord(f"{name}: {error}") from error
