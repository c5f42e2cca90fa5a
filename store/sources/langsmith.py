"""LangSmith: runs as the SDK sends them (batches of posts and patches, multipart bodies), as lists, and feedback.

The runs of a trace are put together, wherever in the file they stand. A correction in feedback is the corrected output.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from store.addresses import of_span
from store.records import Feedback, Rejected
from store.records.production import SourceKind
from store.sources.assembly import Draft, out_of_spans
from store.sources.context_fields import beside, sounds_human
from store.sources.contract import BadRecord, Item, Sample, SourceOptions
from store.sources.fields import as_id, as_number, as_text, make
from store.sources.files import read_head, reject
from store.sources.grouping import Grouping, read_grouped
from store.sources.json_records import JsonRecord, json_records
from store.sources.langsmith_multipart import is_multipart, multipart_records
from store.sources.langsmith_runs import claims_of, merged, moment, place_of, run_draft
from store.sources.media import may_hold_media, shortened
from store.sources.payload import Object, decoded, object_of, packed

name = "langsmith"

_BODIES = ("post", "patch")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_KINDS: dict[str, SourceKind] = {"app": "human", "model": "judge", "auto_eval": "judge"}
_SAID = (
    *("id", "run_id", "trace_id", "key", "score", "value", "comment", "correction", "feedback_source"),
    *("created_at", "modified_at", "session_id", "start_time", "extend_trace_retention", "is_root", "extra"),
)


def recognise(sample: Sample) -> str | None:
    """Recognises runs by their type and order, batches of them, feedback with a key, and multipart bodies."""
    if is_multipart(sample.head):
        return "a multipart body of LangSmith runs"
    for value in sample.objects:
        if _is_headers(value):
            return "the headers of a LangSmith request"
        if any(_is_run(run) for run in _batch(value)):
            return "batches of LangSmith runs"
        if _is_run(value):
            return "LangSmith runs"
        if _is_feedback(value):
            return "LangSmith feedback"
    return None


def read(path: Path, options: SourceOptions) -> Iterator[Item]:
    """The traces, spans and feedback of a file; a patch changes the run that was posted, before or after it."""
    reading = _Reading(path, options)
    yield from read_grouped(path, _records(path), Grouping(reading.alone, _key_of, reading.together))


def _records(path: Path) -> Iterator[JsonRecord | Rejected]:
    """Runs and feedback one by one, batches taken apart."""
    multipart = is_multipart(read_head(path, 1000))
    for record in multipart_records(path) if multipart else json_records(path):
        batch = [] if isinstance(record, Rejected) else _batch(record.value)
        if isinstance(record, Rejected) or not batch:
            yield record
            continue
        for run in batch:
            yield JsonRecord(record.line, run, packed(run))


def _batch(value: Object) -> list[Object]:
    """The runs of a body, posts before patches, or of a page; empty where it is neither."""
    lists = [value[key] for key in (*_BODIES, "runs") if isinstance(value.get(key), list)]
    return [run for runs in lists if isinstance(runs, list) for run in runs if isinstance(run, dict)]


def _is_run(value: Object) -> bool:
    if "run_type" in value and "id" in value:
        return bool({"dotted_order", "trace_id", "parent_run_id", "session_name"} & value.keys())
    return "dotted_order" in value and "trace_id" in value


def _is_feedback(value: Object) -> bool:
    known = {"run_id", "trace_id", "session_id"} & value.keys() and {"score", "value", "correction"} & value.keys()
    return "key" in value and bool(known) and ("feedback_source" in value or "run_id" in value)


def _is_headers(value: Object) -> bool:
    return str(value.get("path")).startswith("/runs/") and isinstance(value.get("headers"), dict)


def _key_of(record: JsonRecord) -> str:
    return place_of(record.value).trace


class _Reading:
    """Makes our records of the runs and the feedback of one file."""

    def __init__(self, path: Path, options: SourceOptions) -> None:
        self._path = path
        self._owner: Draft = {"project": options.project, "source": options.source or name}

    def alone(self, record: JsonRecord) -> Iterable[Item] | None:
        if _is_headers(record.value):
            return ()
        if _is_run(record.value):
            return None
        if _is_feedback(record.value):
            return (self._feedback(record.value),)
        raise BadRecord("neither a run nor feedback of LangSmith")

    def together(self, records: list[JsonRecord]) -> list[Item]:
        def refuse(reason: str) -> Rejected:
            return reject(self._path, records[0].line, reason, b"\n".join(record.data for record in records))

        apart: Object = {}
        runs = merged([_light(record) for record in records])
        steps = [run_draft(run, apart) for run in runs]
        return out_of_spans(claims_of(runs, apart), steps, self._owner, refuse, apart)

    def _feedback(self, value: Object) -> Feedback:
        run, trace = as_id(value.get("run_id")), as_id(value.get("trace_id"))
        if run is None and trace is None:
            raise BadRecord("run_id: missing; only feedback on a run is read")
        name = as_text(value.get("key")) or "feedback"
        source = object_of(value.get("feedback_source"))
        given = moment(value, "created_at") or moment(value, "modified_at")
        correction = decoded(value.get("correction"))
        values: dict[str, Any] = {
            **_target(run, trace),
            "external_id": as_id(value.get("id")) or f"{name}:{run or trace}",
            "name": name,
            "comment": as_text(value.get("comment")) or None,
            "corrected_output": None if correction in ("", {}) else correction,
            "source_kind": _source_kind(source, name, correction),
            "principal": as_id(source.get("user_id") or object_of(source.get("metadata")).get("user_id")),
            "given_us": given.us if given else None,
        }
        return make(Feedback, self._owner | values | _verdict(value, source))


def _target(run: str | None, trace: str | None) -> Draft:
    """The trace and the run in it. A trace id that is no UUID is not LangSmith's: the run alone says what is meant."""
    if trace is not None and (run is None or run == trace):
        return {"trace_external_id": trace}
    if run is not None and (trace is None or not _UUID.fullmatch(trace)):
        return {"trace_external_id": of_span(run), "span_external_id": run}
    return {"trace_external_id": trace, "span_external_id": run}


def _source_kind(source: Object, name: str, correction: JsonValue) -> SourceKind:
    """Who gave it; feedback through the API is a person's where it corrects something or its name says so."""
    known = _KINDS.get(str(source.get("type")))
    return known or ("human" if correction or sounds_human(name) else "program")


def _verdict(value: Object, source: Object) -> Draft:
    """The score; a value as label where it is a word, as score where there is no other, else beside them."""
    score, said = as_number(value.get("score")), value.get("value")
    attributes = beside(value, *_SAID) | beside({"source": source.get("metadata")})
    if isinstance(said, str):
        return {"score": score, "label": said or None, "attributes": attributes}
    if isinstance(said, (bool, int, float)) and score is None:
        return {"score": float(said), "attributes": attributes}
    return {"score": score, "attributes": attributes | beside({"value": said})}


def _light(record: JsonRecord) -> Object:
    if not may_hold_media(record.data):
        return record.value
    value = shortened(record.value)
    return value if isinstance(value, dict) else record.value
