"""Weave's feedback: reactions, notes, annotations, scores of runnables, and what a program adds by its own type."""

from collections.abc import Mapping
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import JsonValue

from store.addresses import of_span
from store.records import Feedback
from store.records.production import SourceKind
from store.sources.assembly import Draft
from store.sources.context_fields import beside
from store.sources.contract import BadRecord
from store.sources.fields import as_id, as_text, make
from store.sources.payload import Object, object_of
from store.sources.times import parse_time

_CALL = "/call/"
_PREFIXES = ("wandb.annotation.", "wandb.runnable.", "wandb.")
_THUMBS = {"👍": 1.0, "👎": 0.0}
_CORRECTED = ("corrected_output", "expected_output", "correction", "expected", "expected_response")
_VALUES = ("value", "score", "rating")
_WORDS = ("note", "comment", "reason", "explanation")
_ZONE = ZoneInfo("UTC")


def call_feedback(value: Object, owner: Draft, traces: Mapping[str, str]) -> Feedback:
    """The feedback on a call; `traces` has the trace of each call that is known, any other waits for its call."""
    ref = as_text(value.get("weave_ref")) or ""
    if _CALL not in ref:
        raise BadRecord(f"weave_ref: {ref!r} is not a call; only feedback on calls is read")
    call = ref.rsplit(_CALL, 1)[1].split("/", 1)[0]
    kind = as_text(value.get("feedback_type")) or "feedback"
    given = parse_time(value.get("created_at"), _ZONE)
    payload = object_of(value.get("payload"))
    values: dict[str, Any] = {
        "trace_external_id": traces.get(call) or of_span(call),
        "span_external_id": call,
        "external_id": as_id(value.get("id")) or f"{kind}:{call}",
        "name": _name(kind),
        "source_kind": _source_kind(kind),
        "principal": as_id(value.get("creator")) or as_id(value.get("wb_user_id")),
        "given_us": given.us if given else None,
    }
    return make(Feedback, owner | values | _verdict(payload))


def _name(kind: str) -> str:
    """The type without Weave's prefix and version.

    >>> _name("wandb.reaction.1"), _name("wandb.annotation.tone"), _name("expected")
    ('reaction', 'tone', 'expected')
    """
    for prefix in _PREFIXES:
        if kind.startswith(prefix):
            name = kind.removeprefix(prefix)
            return name.rsplit(".", 1)[0] if name.rsplit(".", 1)[-1].isdigit() else name
    return kind


def _source_kind(kind: str) -> SourceKind:
    return "judge" if kind.startswith("wandb.runnable.") else "human"


def _verdict(payload: Object) -> Draft:
    """A thumb is a score, another emoji a label; a number, a word, a note and a correction go to their fields."""
    said: Draft = {}
    emoji = as_text(payload.get("emoji"))
    if emoji:
        said |= {"label": emoji, "score": _THUMBS.get(emoji[:1])}
    value: JsonValue = next((payload[key] for key in _VALUES if payload.get(key) is not None), payload.get("output"))
    if isinstance(value, (bool, int, float)):
        said["score"] = float(value)
    elif isinstance(value, str):
        said["label"] = value
    words = [text for key in _WORDS if (text := as_text(payload.get(key)))]
    if words:
        said["comment"] = "\n".join(words)
    said["corrected_output"] = next((payload[key] for key in _CORRECTED if payload.get(key) is not None), None)
    taken = ("emoji", "alias", "detoned", "detoned_alias", *_VALUES, *_WORDS, *_CORRECTED)
    return said | {"attributes": beside(payload, *taken)}
