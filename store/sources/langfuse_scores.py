"""Langfuse's scores as feedback: of the API in versions 1 to 3, of exports, of the SDK, and columns of a batch export.

A score of type CORRECTION is what should have been answered.
"""

from typing import Any

from pydantic import JsonValue

from store.addresses import of_session, of_span
from store.records import Feedback
from store.records.production import SourceKind
from store.sources.assembly import Draft
from store.sources.context_fields import beside, sounds_human
from store.sources.contract import BadRecord
from store.sources.fields import as_id, as_number, as_text, make
from store.sources.langfuse_rows import moment
from store.sources.payload import Object, decoded, object_of

TYPES = ("NUMERIC", "BOOLEAN", "CATEGORICAL", "TEXT", "CORRECTION")

_SAID = (
    *("id", "name", "value", "string_value", "long_string_value", "data_type", "source", "comment", "subject"),
    *("trace_id", "observation_id", "session_id", "dataset_run_id", "author_user_id", "timestamp", "project_id"),
    *("created_at", "updated_at", "event_ts", "is_deleted", "metadata", "execution_trace_id", "traceTags", "trace"),
)


def score_feedback(row: Object, owner: Draft) -> Feedback:
    """The feedback that a score in snake_case is, of a trace, an observation or a session; raises BadRecord for any other."""
    trace, span = _target(row)
    name = as_text(row.get("name")) or "score"
    given = moment(row, "timestamp", "created_at", "updated_at")
    values: dict[str, Any] = {
        "trace_external_id": trace,
        "span_external_id": span,
        "external_id": as_id(row.get("id")) or f"{name}:{span or trace}",
        "name": name,
        "comment": as_text(row.get("comment")) or None,
        "source_kind": _source_kind(row, name),
        "principal": as_id(row.get("author_user_id")),
        "given_us": given.us if given else None,
        "attributes": beside(row, *_SAID) | beside({"metadata": object_of(row.get("metadata"))}),
    }
    return make(Feedback, owner | values | _verdict(row, values["comment"]))


def _target(row: Object) -> tuple[str, str | None]:
    subject = object_of(row.get("subject"))
    if subject:
        return _of_subject(subject)
    trace = as_id(row.get("trace_id"))
    if trace is not None:
        return trace, as_id(row.get("observation_id"))
    session = as_id(row.get("session_id"))
    if session is not None:
        return of_session(session), None
    raise BadRecord("trace_id: missing; it is the trace that the score is of")


def _of_subject(subject: Object) -> tuple[str, str | None]:
    kind, id_ = subject.get("kind"), as_id(subject.get("id"))
    if kind == "trace" and id_:
        return id_, None
    if kind == "observation" and id_:
        return as_id(subject.get("traceId") or subject.get("trace_id")) or of_span(id_), id_
    if kind == "session" and id_:
        return of_session(id_), None
    raise BadRecord(f"a score of {kind} {id_!r}; scores of traces, observations and sessions are read")


def _source_kind(row: Object, name: str) -> SourceKind:
    """Who gave it: an annotation and whatever has an author is a person's, an evaluation a judge's.

    A score that came through the API says nothing of it; by its name it is a person's or a program's.
    """
    source = str(row.get("source") or "API").upper()
    if source == "EVAL":
        return "judge"
    if source == "ANNOTATION" or row.get("author_user_id") or row.get("data_type") == "CORRECTION":
        return "human"
    return "human" if sounds_human(name) else "program"


def _verdict(row: Object, comment: str | None) -> Draft:
    """Score, label, comment or corrected output, as the score's type says."""
    value = row.get("value")
    text = next((said for key in ("long_string_value", "string_value") if (said := as_text(row.get(key)))), None)
    kind = str(row.get("data_type") or "").upper()
    said = text or (value if isinstance(value, str) else None)
    if kind == "CORRECTION":
        return {"corrected_output": decoded(said) if said else None}
    if kind == "TEXT":
        return {"comment": "\n".join(part for part in (said, comment) if part) or None}
    if kind == "CATEGORICAL" or (not kind and _no_number(value)):
        return {"label": said, "score": as_number(value) if row.get("config_id") and not _no_number(value) else None}
    return {"score": as_number(_truth(value))}


def _truth(value: JsonValue) -> JsonValue:
    return {"true": 1, "false": 0}.get(value.lower(), value) if isinstance(value, str) else value


def _no_number(value: JsonValue) -> bool:
    try:
        return as_number(value) is None
    except BadRecord:
        return True


def column_scores(row: Object, trace: str, span: str | None, owner: Draft, known: frozenset[str]) -> list[Feedback]:
    """The scores of a batch export: a column named after each score, that holds a list of its values."""
    found = []
    for name, cell in row.items():
        values = decoded(cell)
        if name in known or not isinstance(values, list):
            continue
        for number, value in enumerate(item for item in values if isinstance(item, (str, int, float))):
            said: Draft = {"label": as_text(value)} if _no_number(value) else {"score": as_number(value)}
            said |= {"name": name, "external_id": f"{name}:{span or trace}:{number}", "source_kind": "program"}
            if sounds_human(name):
                said["source_kind"] = "human"
            found.append(make(Feedback, owner | said | {"trace_external_id": trace, "span_external_id": span}))
    return found
