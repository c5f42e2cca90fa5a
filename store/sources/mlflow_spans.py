"""One span of MLflow 2 or 3 as ours."""

from pydantic import JsonValue

from store.records import SpanKind
from store.sources import json_text
from store.sources.assembly import Draft, timed
from store.sources.context_fields import beside, error_type_of
from store.sources.contract import BadRecord
from store.sources.fields import as_number, as_text
from store.sources.held_apart import part_io, parted
from store.sources.json_text import Flaws
from store.sources.otel import SPAN_ID_BYTES, hex_id, nanoseconds, status_of
from store.sources.payload import Object, decoded, list_of, object_of
from store.sources.sanitise import parse_json
from store.sources.usage import either

KINDS: dict[str, SpanKind] = {
    "LLM": "llm",
    "CHAT_MODEL": "llm",
    "CHAIN": "chain",
    "WORKFLOW": "chain",
    "TASK": "chain",
    "AGENT": "agent",
    "TOOL": "tool",
    "RETRIEVER": "retrieval",
    "RERANKER": "retrieval",
    "MEMORY": "memory",
    "EMBEDDING": "embedding",
    "GUARDRAIL": "guardrail",
    "EVALUATOR": "evaluator",
}
_MODELS = ("mlflow.llm.model", "gen_ai.response.model", "gen_ai.request.model")
_TAKEN = (
    *("mlflow.traceRequestId", "mlflow.spanType", "mlflow.spanInputs", "mlflow.spanOutputs", "mlflow.spanLogLevel"),
    *("mlflow.spanFunctionName", "mlflow.llm.model", "mlflow.chat.tokenUsage", "mlflow.llm.cost"),
)


def span_draft(span: Object, trace_id: str, apart: Object) -> Draft:
    """A span's fields; evaluation data in it goes to `apart`. Raises BadRecord where it has no id."""
    context = object_of(span.get("context"))
    external_id = hex_id(span.get("span_id") or context.get("span_id"), SPAN_ID_BYTES)
    if external_id is None:
        raise BadRecord("span_id: missing")
    raw = object_of(span.get("attributes"))
    flaws = Flaws()
    read = plain_value(raw.get("mlflow.spanInputs"), "input", flaws)
    written = plain_value(raw.get("mlflow.spanOutputs"), "output", flaws)
    attributes = {key: plain_value(value) for key, value in raw.items() if key not in _TAKEN}
    tokens = either(plain_value(raw.get("mlflow.chat.tokenUsage")))
    model = next((text for key in _MODELS if (text := as_text(plain_value(raw.get(key))))), None)
    start, end = (span.get(f"{side}_time_unix_nano", span.get(f"{side}_time")) for side in ("start", "end"))
    return {
        "trace_external_id": trace_id,
        "external_id": external_id,
        "parent_external_id": hex_id(span.get("parent_span_id") or span.get("parent_id"), SPAN_ID_BYTES),
        "kind": KINDS.get(str(plain_value(raw.get("mlflow.spanType"))), "other"),
        "name": as_text(span.get("name")),
        "input": part_io(read, apart),
        "output": written,
        "model": model,
        "cost_usd": as_number(object_of(plain_value(raw.get("mlflow.llm.cost"))).get("total_cost")),
        **timed(nanoseconds(start), nanoseconds(end)),
        **_status(span),
        **tokens.counts,
        "attributes": beside(parted(attributes, apart)) | tokens.attributes | flaws.marks,
    }


def plain_value(value: JsonValue, side: str = "value", flaws: Flaws | None = None) -> JsonValue:
    """What an attribute holds: JSON in a text, also where it is a plain text or number, or was encoded twice.

    >>> plain_value('"AGENT"'), plain_value('"{\\\\"a\\\\": 1}"'), plain_value("20"), plain_value("AGENT")
    ('AGENT', {'a': 1}, 20, 'AGENT')
    """
    found = json_text.decoded(value, side, flaws or Flaws())
    if not isinstance(found, str) or found is not value:
        return found
    try:
        return parse_json(found.encode("utf-8", "surrogatepass"))
    except BadRecord:
        return decoded(found)


def _status(span: Object) -> Draft:
    status = object_of(span.get("status"))
    state = status_of(status.get("code") or span.get("status_code"))
    if state != "error":
        return {"status": state}
    message = as_text(status.get("message") or span.get("status_message")) or None
    said = _exception(span)
    kind = as_text(said.get("exception.type"))
    if message is None and said:
        message = ": ".join(text for text in (kind, as_text(said.get("exception.message"))) if text) or None
    return {"status": "error", "error": message, "error_type": kind or error_type_of(message)}


def _exception(span: Object) -> Object:
    """The attributes of the last exception; empty where none was recorded."""
    events = [object_of(event) for event in list_of(span.get("events"))]
    said = [object_of(event.get("attributes")) for event in events if event.get("name") == "exception"]
    return said[-1] if said else {}
