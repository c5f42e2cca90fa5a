"""What people, programs and judges said of a span, where it rides in the span itself.

OpenInference: `annotations.N.annotation.*` and `evaluations.N.evaluation.*`, also below `trace.` and `session.`.
OpenTelemetry: events `gen_ai.evaluation.result`. Neither has an expected output.
"""

from collections.abc import Iterator
from typing import Any

from pydantic import JsonValue

from store.records import Feedback
from store.records.production import SourceKind
from store.sources.attribute_set import AttributeSet
from store.sources.contract import BadRecord
from store.sources.fields import as_number, as_text, make
from store.sources.otel import Flat, RawEvent, RawSpan

EVALUATION = "gen_ai.evaluation.result"

_KINDS: dict[str, SourceKind] = {"HUMAN": "human", "LLM": "judge", "CODE": "program"}
_CARRIERS = frozenset(("annotations", "evaluations", "trace", "session"))
_FAMILIES = (("annotations", "annotation"), ("evaluations", "evaluation"))


def feedback_in(raw: RawSpan, attributes: AttributeSet, owner: dict[str, Any]) -> list[Feedback]:
    """The feedback that a span carries; its attributes are taken."""
    if not raw.events and not attributes.follows(_CARRIERS):
        return []
    where = {**owner, "trace_external_id": raw.trace_id, "span_external_id": raw.span_id}
    found = [evaluation(event, where) for event in raw.events if event.name == EVALUATION]
    for scope in ("", "trace.", "session."):
        for family, member in _FAMILIES:
            for said in _members(attributes, scope + family, member):
                found.append(_annotation(said, scope, member, where))
    return found


def annotator(kind: JsonValue, otherwise: SourceKind = "human") -> SourceKind:
    """Who annotated, by Phoenix's and OpenInference's word for it."""
    return _KINDS.get(str(kind).upper(), otherwise)


def score_of(value: JsonValue) -> float | None:
    """A score; None for what is no number."""
    try:
        return as_number(value)
    except BadRecord:
        return None


def evaluation(event: RawEvent, where: dict[str, Any]) -> Feedback:
    """An event `gen_ai.evaluation.result` as feedback of a judge on the span of `where`."""
    said = AttributeSet(event.attributes)
    name = said.text("gen_ai.evaluation.name") or "evaluation"
    moment = f"{event.time.us}{event.time.ns:03}" if event.time else ""
    given = said.take("gen_ai.evaluation.score.value")
    return make(
        Feedback,
        {
            **where,
            "external_id": f"{where['span_external_id']}:evaluation:{name}:{moment}",
            "name": name,
            "score": score_of(given),
            "label": said.text("gen_ai.evaluation.score.label"),
            "comment": said.text("gen_ai.evaluation.explanation"),
            "source_kind": "judge",
            "given_us": event.time.us if event.time else None,
            "attributes": said.rest,
        },
    )


def _members(attributes: AttributeSet, family: str, member: str) -> Iterator[Flat]:
    for item in attributes.items(family):
        said = item.get(member) if isinstance(item, dict) else None
        if isinstance(said, dict):
            yield said


def _annotation(said: Flat, scope: str, member: str, where: dict[str, Any]) -> Feedback:
    name = as_text(said.get("name")) or member
    identifier = as_text(said.get("identifier")) or ""
    rest = {"scope": scope.rstrip("."), "identifier": identifier, "metadata": said.get("metadata")}
    return make(
        Feedback,
        {
            **where,
            "span_external_id": None if scope else where["span_external_id"],
            "external_id": f"{where['span_external_id']}:{scope}{member}:{name}:{identifier}",
            "name": name,
            "score": score_of(said.get("score")),
            "label": as_text(said.get("label")),
            "comment": as_text(said.get("explanation")),
            "source_kind": annotator(said.get("annotator_kind"), "human" if member == "annotation" else "judge"),
            "attributes": {key: value for key, value in rest.items() if value not in (None, "", {})},
        },
    )
