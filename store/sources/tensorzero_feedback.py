"""TensorZero's feedback: metrics, comments and demonstrations."""

from typing import Any

from pydantic import JsonValue

from store.addresses import of_session
from store.records import Feedback
from store.sources.assembly import Draft
from store.sources.context_fields import beside, sounds_human
from store.sources.contract import BadRecord
from store.sources.fields import as_id, as_number, as_text, make
from store.sources.payload import Object, decoded, object_of
from store.sources.tensorzero_rows import answer_in, time_of

_PEOPLE = ("human", "author", "user", "annotator", "reviewer")


def feedback_kind(row: Object) -> str | None:
    """`metric`, `comment` or `demonstration`; None: it is no feedback."""
    if "value" not in row:
        return None
    if "metric_name" in row and "target_id" in row:
        return "metric"
    if "target_type" in row and "target_id" in row:
        return "comment"
    if "inference_id" in row and "id" in row and "model_name" not in row and "variant_name" not in row:
        return "demonstration"
    return None


def row_feedback(row: Object, owner: Draft) -> Feedback:
    """The feedback that a row is. A metric does not say whether its target is an inference or an episode."""
    kind = feedback_kind(row)
    trace = as_id(row.get("target_id")) or as_id(row.get("inference_id"))
    if trace is None:
        raise BadRecord("target_id: missing")
    if row.get("target_type") == "episode":
        trace = of_session(trace)
    tags = object_of(row.get("tags"))
    name = as_text(row.get("metric_name")) or str(kind)
    author = next((found for key in _PEOPLE if (found := as_id(tags.get(key)))), None)
    said_by_person = kind != "metric" or author is not None or sounds_human(name)
    values: dict[str, Any] = {
        "trace_external_id": trace,
        "external_id": as_id(row.get("id")) or f"{name}:{trace}",
        "name": name,
        "source_kind": "human" if said_by_person else "program",
        "principal": author,
        "given_us": time_of(row.get("id")),
        "attributes": beside({"tags": tags}),
    }
    return make(Feedback, owner | values | _verdict(kind, row.get("value")))


def _verdict(kind: str | None, value: JsonValue) -> Draft:
    if kind == "comment":
        return {"comment": as_text(value)}
    if kind == "demonstration":
        return {"corrected_output": answer_in(decoded(value))}
    return {"score": as_number(value)}
