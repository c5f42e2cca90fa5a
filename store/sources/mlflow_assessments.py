"""MLflow's assessments as feedback: verdicts of people, judges and code, and what people expected.

An assessment that another one overrides is no longer valid and is left out. What was expected by a person is the corrected
output; what a program or a judge expected is held apart.
"""

from collections.abc import Callable
from zoneinfo import ZoneInfo

from pydantic import JsonValue

from store.records import Feedback, Rejected
from store.records.production import SourceKind
from store.sources.assembly import Draft
from store.sources.context_fields import beside
from store.sources.contract import BadRecord, Item
from store.sources.fields import as_id, as_text, make
from store.sources.held_apart import put
from store.sources.otel import SPAN_ID_BYTES, hex_id
from store.sources.payload import Object, decoded, object_of
from store.sources.times import parse_time

_SOURCES: dict[str, SourceKind] = {"HUMAN": "human", "LLM_JUDGE": "judge", "AI_JUDGE": "judge", "CODE": "program"}
_TIMES = ("last_update_time", "create_time", "last_update_time_ms", "create_time_ms")
_UTC = ZoneInfo("UTC")


def assessment_items(
    assessments: list[Object], trace: str | None, owner: Draft, apart: Object, refuse: Callable[[str], Rejected]
) -> list[Item]:
    """The feedback among the assessments of a trace; expectations that no person gave are added to `apart`."""
    overridden = {as_text(item.get("overrides")) for item in assessments if item.get("overrides")}
    items: list[Item] = []
    for item in assessments:
        if item.get("valid") is False or as_text(item.get("assessment_id")) in overridden:
            continue
        try:
            made = _feedback(item, trace, owner, apart)
        except BadRecord as error:
            items.append(refuse(f"assessment {item.get('assessment_id')!r}: {error}"))
            continue
        items += [made] if made is not None else []
    return items


def _feedback(item: Object, trace: str | None, owner: Draft, apart: Object) -> Feedback | None:
    source = object_of(item.get("source"))
    kind = _SOURCES.get(str(source.get("source_type")).upper(), "program")
    name = as_text(item.get("assessment_name") or item.get("name")) or "assessment"
    trace_id = trace or as_id(item.get("trace_id"))
    if trace_id is None:
        raise BadRecord("trace_id: missing; it is the trace that the assessment is of")
    expectation = object_of(item.get("expectation"))
    if expectation and kind != "human":
        put(apart, name, _expected(expectation))
        return None
    given = next((found for key in _TIMES if (found := parse_time(item.get(key), _UTC))), None)
    values: Draft = {
        "trace_external_id": trace_id,
        "span_external_id": hex_id(item.get("span_id"), SPAN_ID_BYTES),
        "external_id": as_id(item.get("assessment_id")) or name,
        "name": name,
        "comment": as_text(item.get("rationale")) or None,
        "source_kind": kind,
        "principal": as_id(source.get("source_id")) if source.get("source_id") != "default" else None,
        "given_us": given.us if given else None,
        "attributes": beside({"metadata": object_of(item.get("metadata"))}),
    }
    if expectation:
        return make(Feedback, owner | values | {"corrected_output": _expected(expectation)})
    return make(Feedback, owner | values | _verdict(object_of(item.get("feedback")), values["attributes"]))


def _expected(expectation: Object) -> JsonValue:
    """The value, which is JSON in a text where it is no plain one."""
    serialized = object_of(expectation.get("serialized_value"))
    if serialized:
        return decoded(serialized.get("value"))
    return expectation.get("value")


def _verdict(feedback: Object, attributes: Object) -> Draft:
    """A number or a truth as score, a word as label; anything else, and why a judge failed, beside them."""
    value = feedback.get("value")
    error = feedback.get("error") or (feedback if "error_code" in feedback else None)
    if error:
        return {"attributes": {**attributes, "error": error}}
    if isinstance(value, (bool, int, float)):
        return {"score": float(value)}
    if isinstance(value, str):
        return {"label": value}
    return {"attributes": attributes | beside({"value": value})}
