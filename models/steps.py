"""What a step of a trace says of itself: its arguments, its label, its error, what kind of act it was.

Reading only; whether that makes a failure is `models.detector`'s to judge.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from pydantic import JsonValue

from store.records import Episode, Span
from store.records.identity import canonical_json

STEP_KINDS = frozenset({"predict", "llm", "tool", "retrieval", "memory", "embedding", "agent", "chain", "other"})
"""Kinds whose error is an error of the program: not a user's turn, a guardrail's block or an evaluator's crash."""

_LEAVES = ("tool", "predict", "retrieval", "memory", "llm", "embedding")
_LABEL_KEYS = ("label", "intent", "class", "category", "prediction")
_PARSE_LIMIT = 200_000
"""Longer texts are not parsed as JSON: characters."""

_ERROR_TEXT = re.compile(
    r"\s*(?:[\w.]*(?:error|exception)(?:\s*:|\s+(?:executing|calling|running|in|from|while)\b)"
    r"|traceback \(most recent call last\))",
    re.IGNORECASE,
)
_READING = re.compile(
    r"(?:get|find|list|search|look|fetch|read|calculate|check|think|query|describe|retrieve|show|validate|count|view)(?:_|\b|[A-Z])"
)
_ESCALATION = re.compile(r"transfer|escalat|human|hand_?off|live_?agent", re.IGNORECASE)


def text_of(value: JsonValue) -> str:
    """The value as one text: a text as it is, nothing as the empty text, everything else as canonical JSON.

    >>> text_of(None), text_of("a"), text_of({"b": 1})
    ('', 'a', '{"b":1}')
    """
    if value is None:
        return ""
    return value if isinstance(value, str) else canonical_json(value)


def parsed(value: JsonValue) -> JsonValue:
    """The JSON inside a text that holds an object or a list, else the value itself.

    >>> parsed('{"a": 1}'), parsed("a")
    ({'a': 1}, 'a')
    """
    if not isinstance(value, str) or len(value) > _PARSE_LIMIT or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        found: JsonValue = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return found


def arguments(span: Span) -> dict[str, JsonValue]:
    """A tool call's arguments by name; empty where the log has none or they are not named."""
    found = parsed(span.input)
    return found if isinstance(found, dict) else {}


def step_name(span: Span) -> str:
    """What a person calls this step: for a prediction its model, else its name, else its kind."""
    if span.kind == "predict":
        return span.model or span.name or "model"
    return span.name or span.model or span.kind


def label_in(value: JsonValue) -> str:
    """The label in a prediction's output, or in a correction of it; empty: none was given.

    >>> label_in(" refund "), label_in({"intent": "refund", "score": 0.4}), label_in(None), label_in(True)
    ('refund', 'refund', '', 'true')
    """
    found = parsed(value)
    if isinstance(found, dict):
        found = next((found[key] for key in _LABEL_KEYS if key in found), found)
    return text_of(found).strip()


def error_text(span: Span) -> str | None:
    """The error of a step, also where the log says it only in the result ("Error: ..."); None: no error."""
    if span.error:
        return span.error
    if span.status == "error":
        return text_of(span.output) or span.error_type or "error"
    if span.error_type:
        return span.error_type
    return _error_in_result(span.output) if span.kind == "tool" else None


def _error_in_result(output: JsonValue) -> str | None:
    if isinstance(output, str) and _ERROR_TEXT.match(output):
        return output
    found = parsed(output)
    if not isinstance(found, dict):
        return None
    if error := found.get("error"):
        return text_of(error)
    if found.get("is_error") is True or found.get("isError") is True:
        return text_of(found.get("content")) or "error"
    status = found.get("status_code")
    return f"HTTP {status}" if isinstance(status, int) and 400 <= status < 600 else None


def failed_steps(spans: Sequence[Span]) -> tuple[tuple[Span, bool], ...]:
    """Steps with an error, in order, each with whether it was recovered: a later step of that kind and name succeeded."""
    succeeded: set[tuple[str, str]] = set()
    found: list[tuple[Span, bool]] = []
    for span in reversed(spans):
        if span.kind not in STEP_KINDS:
            continue
        key = (span.kind, step_name(span))
        if error_text(span) is None:
            succeeded.add(key)
        else:
            found.append((span, key in succeeded))
    return tuple(reversed(found))


def tool_calls(spans: Iterable[Span]) -> tuple[Span, ...]:
    return tuple(span for span in spans if span.kind == "tool")


def is_escalation(span: Span) -> bool:
    """Whether this call hands the conversation to a person."""
    return span.kind == "tool" and _ESCALATION.search(span.name or "") is not None


def is_consequential(span: Span) -> bool:
    """Whether this call changes something, by its name: neither a reading verb nor an escalation.

    >>> call = Span(source="s", trace_external_id="t", external_id="1", kind="tool", name="cancel_order")
    >>> is_consequential(call), is_consequential(call.model_copy(update={"name": "get_order"}))
    (True, False)
    """
    return span.kind == "tool" and not is_escalation(span) and _READING.match(span.name or "get_") is None


def leaf_first(spans: Iterable[Span]) -> list[Span]:
    """The spans ordered by how close they are to the cause: a tool before the chain that called it; else as they were."""
    rank = {kind: place for place, kind in enumerate(_LEAVES)}
    return sorted(spans, key=lambda span: rank.get(span.kind, len(_LEAVES)))


def finish_reasons(span: Span) -> frozenset[str]:
    """Why the model stopped, lower case, from the attributes and the output; empty: not said."""
    found: set[str] = set()
    for place in (span.attributes, parsed(span.output)):
        if isinstance(place, dict):
            found |= _reasons(place)
    return frozenset(found)


def _reasons(place: Mapping[str, JsonValue]) -> set[str]:
    found: set[str] = set()
    for key in ("finish_reason", "stop_reason", "finish_reasons", "gen_ai.response.finish_reasons"):
        value = parsed(place.get(key))
        values = value if isinstance(value, list) else [value]
        found |= {item.lower() for item in values if isinstance(item, str)}
    return found


def answer_text(episode: Episode) -> str:
    """What the user was told at the end: the trace's output, else the last model's output; empty: not said."""
    if episode.trace.output is not None:
        return text_of(episode.trace.output)
    last = next((span for span in reversed(episode.spans) if span.kind == "llm" and span.output is not None), None)
    return text_of(last.output) if last else ""


def input_text(episode: Episode) -> str:
    """What the user asked: the trace's input, else the first input of a model or a user's turn; empty: not said."""
    if episode.trace.input is not None:
        return text_of(episode.trace.input)
    kinds = ("user", "predict", "llm")
    first = next((span for span in episode.spans if span.kind in kinds and span.input is not None), None)
    return text_of(first.input) if first else ""


def time_of(episode: Episode) -> int | None:
    """When it happened, microseconds since 1970 UTC: the trace's time, else its first dated step's; None: not said."""
    trace = episode.trace
    times = (trace.started_us, trace.ended_us, *(span.started_us for span in episode.spans))
    return next((time for time in times if time is not None), None)
