"""A trace out of its spans, for logs that have spans alone: which is the root, and what the whole says.

It depends on nothing but the set of spans, so that any order of arrival ends in the same trace. What a span says of its
whole trace stands in its attributes under `trace` (`CLAIMS`), as the readers put it there.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import JsonValue

from store.records import AssembledTrace, Span

CLAIMS = "trace"
"""The attribute of a span with what it says of its trace: any of `TEXTS`, `input`, `output`, and `attributes`."""
TEXTS = ("name", "session", "user", "tenant", "channel", "release", "app_version", "prompt_version")

_ANSWERS = ("llm", "predict")
_ASKERS = ("user", "human")


def assemble(spans: Sequence[Span], held_apart: Mapping[str, JsonValue] | None = None) -> AssembledTrace:
    """The trace of these spans, of which there is at least one.

    Input and output are the root's; where it has none, what the user last said in the first input of a model, and the
    last answer of one. Tokens and costs are summed over the innermost spans that say any.
    """
    ordered = in_order(spans)
    root = root_of(ordered)
    claims = [_claims(span) for span in (root, *(span for span in ordered if span is not root))]
    answers = [span for span in ordered if span.kind in _ANSWERS]
    first = next((span for span in ordered if span.started_us is not None), root)
    values: dict[str, Any] = {name: _first(claim.get(name) for claim in claims) for name in TEXTS}
    values["name"] = values["name"] or root.name
    asked = _first((*_said(claims, "input"), root.input, *(span.input for span in answers)))
    answered = _first((*_said(claims, "output"), root.output, *(span.output for span in reversed(answers))))
    return AssembledTrace(
        **values,
        source=root.source,
        project=root.project,
        external_id=root.trace_external_id,
        span_count=len(spans),
        started_us=first.started_us,
        started_ns=first.started_ns,
        ended_us=root.ended_us,
        status=root.status,
        error=root.error,
        input=last_question(asked),
        output=answered,
        model=_first(span.model for span in (*reversed(answers), root)),
        input_tokens=total(ordered, "input_tokens"),
        output_tokens=total(ordered, "output_tokens"),
        cost_usd=total(ordered, "cost_usd"),
        attributes=_attributes(claims),
        held_apart=dict(held_apart or {}),
    )


def in_order(spans: Iterable[Span]) -> list[Span]:
    """By start, then place; a span that does not say when it started comes last."""
    return sorted(
        spans,
        key=lambda span: (
            span.started_us is None,
            span.started_us or 0,
            span.started_ns,
            span.parent_external_id is not None,
            span.position,
            span.external_id,
        ),
    )


def root_of(ordered: Sequence[Span]) -> Span:
    """The first of those whose parent is not there; where each has one (a ring), the first."""
    ids = {span.external_id for span in ordered}
    return next((span for span in ordered if span.parent_external_id not in ids), ordered[0])


def total(spans: Iterable[Span], field: str) -> Any:
    """The sum over the innermost spans that say it, since an agent may repeat what its calls used; None: none says it."""
    spans = list(spans)
    parents = {span.external_id: span.parent_external_id for span in spans}
    counted = {span.external_id: value for span in spans if (value := getattr(span, field)) is not None}
    outer = {above for id_ in counted for above in _above(id_, parents)}
    values = [value for id_, value in counted.items() if id_ not in outer]
    if not values:
        return None
    return round(sum(values), 12) if field == "cost_usd" else sum(values)


def last_question(value: JsonValue) -> JsonValue:
    """What the user last said in a list of messages; any other value as it is.

    >>> last_question([{"role": "user", "content": "a"}, {"role": "tool", "content": "b"}])
    'a'
    """
    if not isinstance(value, list):
        return value
    asked = (item.get("content") for item in reversed(value) if isinstance(item, dict) and item.get("role") in _ASKERS)
    return next((content for content in asked if content), value)


def _above(id_: str, parents: dict[str, str | None]) -> Iterator[str]:
    seen = {id_}
    above = parents.get(id_)
    while above is not None and above not in seen:
        yield above
        seen.add(above)
        above = parents.get(above)


def _claims(span: Span) -> dict[str, Any]:
    found = span.attributes.get(CLAIMS)
    return found if isinstance(found, dict) else {}


def _said(claims: list[dict[str, Any]], field: str) -> list[JsonValue]:
    return [claim[field] for claim in claims if field in claim]


def _attributes(claims: list[dict[str, Any]]) -> dict[str, JsonValue]:
    """What the spans say, the root first; counts of dropped attributes add up."""
    merged: dict[str, JsonValue] = {}
    dropped = 0
    for claim in claims:
        dropped += claim.get("dropped_attributes", 0)
        for name, value in (claim.get("attributes") or {}).items():
            merged.setdefault(name, value)
    return merged | ({"dropped_attributes": dropped} if dropped else {})


def _first(values: Iterable[Any]) -> Any:
    return next((value for value in values if value not in (None, "", [], {})), None)
