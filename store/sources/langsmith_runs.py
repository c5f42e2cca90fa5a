"""One run of LangSmith as a span, and a root run as a trace.

What LangSmith calls a session is a project; the conversation is in the metadata. A run's place in its trace is in its
`dotted_order` too, which is right where the ids beside it are wrong or missing.
"""

import re
from datetime import UTC, datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

from pydantic import JsonValue

from store.records import SpanKind
from store.sources.assembly import Draft, timed
from store.sources.context_fields import beside, error_type_of, from_metadata
from store.sources.contract import BadRecord
from store.sources.fields import as_id, as_number, as_text
from store.sources.held_apart import part_io, parted
from store.sources.payload import Object, cut_fields, decoded, object_of
from store.sources.times import Moment, parse_time
from store.sources.usage import Tokens, inclusive

KINDS: dict[str, SpanKind] = {
    "llm": "llm",
    "chat_model": "llm",
    "chain": "chain",
    "tool": "tool",
    "retriever": "retrieval",
    "embedding": "embedding",
}
_ZONE = ZoneInfo("UTC")
"""Times of the Python SDK may lack the offset; they are UTC."""
_PART = re.compile(r"(\d{8}T\d{12}Z)([0-9a-fA-F-]{36})")
_TRACEBACK = re.compile(r"\n\s*\n?Traceback \(most recent call last\)")
_KEPT = ("tags", "reference_example_id", "first_token_time", "attachments", "feedback_stats")
_USAGE = ("usage_metadata", "usage", "token_usage")


class Place(NamedTuple):
    """Where a run stands."""

    run: str
    trace: str
    parent: str | None
    started: Moment | None
    """As the dotted order says."""


def place_of(run: Object) -> Place:
    """The run's id, its trace and its parent. Raises BadRecord where neither an id nor a dotted order is there.

    >>> place_of({"dotted_order": "20240531T095804831161Z" + "a" * 36 + ".20240531T100019272195Z" + "b" * 36}).parent[:3]
    'aaa'
    """
    parts = _PART.findall(as_text(run.get("dotted_order")) or "")
    ids = [part[1] for part in parts]
    own = as_id(run.get("id")) or (ids[-1] if ids else None)
    if own is None:
        raise BadRecord("id: missing; it is the id of the run")
    started = _of_order(parts[-1][0]) if parts else None
    trace = ids[0] if ids else as_id(run.get("trace_id")) or own
    parent = as_id(run.get("parent_run_id")) or (ids[-2] if len(ids) > 1 else None)
    return Place(own, trace, parent, started)


def _of_order(text: str) -> Moment | None:
    moment = datetime.strptime(text, "%Y%m%dT%H%M%S%fZ").replace(tzinfo=UTC)
    return parse_time(moment.isoformat())


def merged(runs: list[Object]) -> list[Object]:
    """One object a run: what was posted, and over it what was patched later."""
    by_id: dict[str, Object] = {}
    for run in runs:
        own = place_of(run).run
        said = {key: value for key, value in run.items() if value is not None}
        by_id[own] = {**by_id.get(own, {}), **said, "id": own}
    return list(by_id.values())


def run_draft(run: Object, apart: Object) -> Draft:
    """A span's fields; evaluation data in it goes to `apart`."""
    place = place_of(run)
    metadata = metadata_of(run)
    inputs, outputs = object_of(run.get("inputs")), object_of(run.get("outputs"))
    read = part_io(decoded(run.get("inputs")), apart)
    written = part_io(_unwrapped(decoded(run.get("outputs"))), apart)
    tokens = _tokens(run, outputs, metadata)
    ended = moment(run, "end_time")
    return {
        "trace_external_id": place.trace,
        "external_id": place.run,
        "parent_external_id": place.parent,
        "kind": KINDS.get(str(run.get("run_type")), "other"),
        "name": as_text(run.get("name")),
        "input": read,
        "output": written,
        "model": _model(run, metadata, inputs, outputs),
        "prompt_version": as_text(metadata.get("prompt_version")),
        "cost_usd": as_number(run.get("total_cost")),
        **timed(moment(run, "start_time") or place.started, ended),
        **_status(run, ended),
        **tokens.counts,
        "attributes": _attributes(run, metadata, apart)
        | tokens.attributes
        | cut_fields(input=run.get("inputs"), output=run.get("outputs")),
    }


def claims_of(runs: list[Object], apart: Object) -> Draft:
    """What the runs of a trace say of it as a whole: ids, users and versions from their metadata, the root's first."""
    places = [(place_of(run), run) for run in runs]
    ordered = sorted(places, key=lambda pair: pair[0].parent is not None)
    said: Draft = {}
    for _, run in ordered:
        said = from_metadata(metadata_of(run)) | said
    place, first = ordered[0]
    attributes = beside({"project": first.get("session_name") or first.get("session_id"), "tags": first.get("tags")})
    other = as_text(first.get("trace_id"))
    if other not in (None, place.trace):
        attributes["trace_id"] = other
    metadata = {key: value for key, value in metadata_of(first).items() if not key.startswith(("ls_", "LANGSMITH_"))}
    attributes |= beside({"metadata": parted(metadata, apart)})
    return said | {"attributes": attributes}


def metadata_of(run: Object) -> Object:
    return object_of(object_of(run.get("extra")).get("metadata"))


def moment(record: Object, name: str) -> Moment | None:
    """The time under `name`. Raises BadRecord, naming it, where it is none."""
    try:
        return parse_time(record.get(name), _ZONE)
    except BadRecord as error:
        raise BadRecord(f"{name}: {error}") from error


def _unwrapped(value: JsonValue) -> JsonValue:
    """The value of an output that is no object by itself, which the SDK puts under `output`."""
    return value["output"] if isinstance(value, dict) and list(value) == ["output"] else value


def _status(run: Object, ended: Moment | None) -> Draft:
    error = as_text(run.get("error"))
    if error or run.get("status") == "error":
        message, *rest = _TRACEBACK.split(error or "", maxsplit=1)
        return {
            "status": "error",
            "error": (message.strip() if rest else error) or None,
            "error_type": error_type_of(error),
        }
    return {"status": "ok"} if run.get("status") == "success" or (ended and "status" not in run) else {}


def _tokens(run: Object, outputs: Object, metadata: Object) -> Tokens:
    if run.get("prompt_tokens") or run.get("completion_tokens"):
        return inclusive(run)
    places = (outputs, metadata, object_of(outputs.get("llm_output")), object_of(run.get("extra")))
    usage = next((found for where in places for key in _USAGE if (found := object_of(where.get(key)))), {})
    return inclusive(usage)


def _model(run: Object, metadata: Object, inputs: Object, outputs: Object) -> str | None:
    invocation = object_of(object_of(run.get("extra")).get("invocation_params"))
    if run.get("run_type") not in ("llm", "chat_model", "embedding"):
        return None
    said = (metadata.get("ls_model_name"), outputs.get("model"), invocation.get("model"), inputs.get("model"))
    return next((text for value in said if isinstance(value, str) and (text := value)), None)


def _attributes(run: Object, metadata: Object, apart: Object) -> Object:
    own = {key: value for key, value in metadata.items() if not key.startswith("LANGSMITH_") and key not in _USAGE}
    kept = beside({key: run.get(key) for key in _KEPT}) | beside({"metadata": parted(own, apart)})
    error = as_text(run.get("error")) or ""
    found = _TRACEBACK.search(error)
    return kept | ({"traceback": error[found.start() :].strip()} if found else {})
