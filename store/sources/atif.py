"""ATIF, the agent trajectory format that Harbor writes and Phoenix imports: one object a run, with its steps.

A run is one trace, known by its session id; turns of the user, answers of the agent and its tool calls are spans.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from store.records import Span, Trace
from store.sources.contract import BadRecord, Item, Sample, SourceOptions
from store.sources.fields import Occurrences, as_count, as_number, as_text, make, short, unwrapped
from store.sources.json_records import JsonRecord, read_objects
from store.sources.media import shortened
from store.sources.payload import list_of, object_of
from store.sources.times import parse_time

name = "atif"

Values = dict[str, Any]
Object = dict[str, JsonValue]

_KINDS = {"user": "user", "agent": "llm"}
_READ = ("step_id", "timestamp", "source", "message", "model_name", "tool_calls", "observation", "metrics")


def recognise(sample: Sample) -> str | None:
    """Recognises objects that name the schema."""
    versions = [value.get("schema_version") for value in sample.objects if isinstance(value.get("steps"), list)]
    return next((version for version in versions if isinstance(version, str) and version.startswith("ATIF")), None)


def read(path: Path, options: SourceOptions) -> Iterator[Item]:
    """The runs of a file, each a trace and its spans."""
    owner = {"project": options.project, "source": options.source or name}
    occurrences = Occurrences()
    return read_objects(path, lambda record: _run(record, owner, occurrences, options))


def _run(record: JsonRecord, owner: Values, occurrences: Occurrences, options: SourceOptions) -> list[Item]:
    run = object_of(shortened(record.value))
    steps = [object_of(step) for step in list_of(run.get("steps"))]
    if not steps:
        raise BadRecord("no `steps`")
    session = as_text(run.get("session_id"))
    external_id = as_text(run.get("trajectory_id")) or session or occurrences.id_of(record.value)
    drafts: list[Values] = []
    for step in steps:
        _add(step, drafts, options)
    agent, totals = object_of(run.get("agent")), object_of(run.get("final_metrics"))
    said = [draft for draft in drafts if draft["kind"] in ("user", "llm")]
    times = [draft["started_us"] for draft in drafts if "started_us" in draft]
    trace: Values = {
        **owner,
        "external_id": external_id,
        "session": session,
        "name": as_text(agent.get("name")),
        "app_version": as_text(agent.get("version")),
        "model": as_text(agent.get("model_name")),
        "input": next((draft["input"] for draft in said if draft["kind"] == "user"), None),
        "output": next((draft["message"] for draft in reversed(said) if draft["kind"] == "llm"), None),
        "input_tokens": as_count(totals.get("total_prompt_tokens")),
        "output_tokens": as_count(totals.get("total_completion_tokens")),
        "cost_usd": as_number(totals.get("total_cost_usd")),
        "started_us": min(times, default=None),
        "ended_us": max(times, default=None),
        "attributes": {key: run[key] for key in ("schema_version", "notes", "extra") if run.get(key)},
    }
    spans = [
        make(Span, {**owner, "trace_external_id": external_id, "position": place, "external_id": str(place),
                    **{key: value for key, value in draft.items() if key != "message"}})
        for place, draft in enumerate(drafts)
    ]  # fmt: skip
    return [make(Trace, trace), *spans]


def _add(step: Object, drafts: list[Values], options: SourceOptions) -> None:
    """The spans of one step: what was said, then the calls with their results."""
    metrics, message = object_of(step.get("metrics")), step.get("message")
    calls = [object_of(call) for call in list_of(step.get("tool_calls"))]
    kind = _KINDS.get(str(step.get("source")), "other")
    draft: Values = {
        "kind": kind,
        "name": as_text(step.get("model_name")),
        "model": as_text(step.get("model_name")),
        "message": message,
        "input_tokens": as_count(metrics.get("prompt_tokens")),
        "output_tokens": as_count(metrics.get("completion_tokens")),
        "cost_usd": as_number(metrics.get("cost_usd")),
        "attributes": {key: value for key, value in step.items() if key not in _READ and value is not None},
    }
    draft["input" if kind == "user" else "output"] = message
    if calls:
        asked: list[JsonValue] = [{"name": c.get("function_name"), "arguments": c.get("arguments")} for c in calls]
        draft["output"] = {"content": message, "tool_calls": asked}
    moment = parse_time(step.get("timestamp"), options.zone)
    started = {"started_us": moment.us, "started_ns": moment.ns} if moment else {}
    parent = str(len(drafts))
    drafts.append(draft | started)
    results = [object_of(result) for result in list_of(object_of(step.get("observation")).get("results"))]
    for place, call in enumerate(calls):
        drafts.append(_call(call, parent, _result_of(call, place, results)) | started)
    if not calls and results:
        drafts[-1]["attributes"]["observation"] = [result.get("content") for result in results]


def _result_of(call: Object, place: int, results: list[Object]) -> Object:
    """The result that names the call; where results name none, the one in its place."""
    named = [result for result in results if result.get("source_call_id")]
    if not named:
        return results[place] if place < len(results) else {}
    return next((result for result in named if result["source_call_id"] == call.get("tool_call_id")), {})


def _call(call: Object, parent: str, result: Object) -> Values:
    tool = as_text(call.get("function_name"))
    if tool is None:
        raise BadRecord(f"a tool call without `function_name`: {short(call)}")
    output = result.get("content")
    draft: Values = {
        "kind": "tool",
        "name": tool,
        "parent_external_id": parent,
        "tool_call_id": as_text(call.get("tool_call_id")),
        "input": unwrapped(call.get("arguments")),
        "output": unwrapped(output),
    }
    if isinstance(output, str) and output.lstrip().startswith("Error"):
        return draft | {"status": "error", "error": output}
    return draft | ({"status": "ok"} if output is not None else {})
