"""Tool calls as spans: a step that is one becomes known as one, and a call that has no step gets one."""

from typing import Any

from store.sources.fields import as_text
from store.sources.tool_calls import Call, Result, calls_in, current_turn, results_in

Draft = dict[str, Any]


def with_tool_spans(steps: list[Draft]) -> list[Draft]:
    """The steps, with the tool calls that models asked for as `tool` spans, arguments and result in them.

    A step of the tool's name is the call's step, matched by arguments, else in order. Where a trace has no step of that
    name, the call gets one of its own, below the model's, with the result that a later input carries. Calls of earlier
    requests that an input repeats count only where they belong to the same turn of the user.
    """
    models = sorted((step for step in steps if step.get("kind") == "llm"), key=lambda s: s.get("started_us") or 0)
    asked = _asked(models)
    if not asked:
        return steps
    named = {call.name for _, call, _ in asked}
    for step in steps:
        if step.get("kind", "other") in ("other", "chain") and step.get("name") in named:
            step["kind"] = "tool"
    free = [step for step in steps if step.get("kind") == "tool"]
    names = {step.get("name") for step in free}
    results = [result for model in models for result in results_in(current_turn(model.get("input")))]
    made: list[Draft] = []
    for place, (model, call, moment) in enumerate(asked):
        match = _step_of(call, free)
        if match is not None:
            free.remove(match)
            match["tool_call_id"] = match.get("tool_call_id") or call.id
        elif call.name not in names:
            made.append(_made(model, call, place, moment) | _answered(_result_of(call, results)))
    return steps + made


def _asked(models: list[Draft]) -> list[tuple[Draft, Call, str]]:
    """The calls in order, each once, with the model's step and whether it was made at its start or at its end."""
    found: dict[object, tuple[Draft, Call, str]] = {}
    for model in models:
        for call in calls_in(current_turn(model.get("input"))):
            if call.id:
                found.setdefault(call.id, (model, call, "started_us"))
        for number, call in enumerate(calls_in(model.get("output"))):
            found.setdefault(call.id or (model["external_id"], number), (model, call, "ended_us"))
    return list(found.values())


def _step_of(call: Call, free: list[Draft]) -> Draft | None:
    same = [step for step in free if step.get("name") == call.name]
    by_id = [step for step in same if call.id and step.get("tool_call_id") == call.id]
    waiting = [step for step in same if not step.get("tool_call_id")]
    by_input = [step for step in waiting if step.get("input") == call.arguments]
    return next(iter(by_id or by_input or waiting), None)


def _result_of(call: Call, results: list[Result]) -> Result | None:
    """The result with the call's id, else the first of its name; it is taken out of `results`."""
    for place, result in enumerate(results):
        if result.id == call.id if call.id and result.id else result.name == call.name:
            return results.pop(place)
    return None


def _made(model: Draft, call: Call, place: int, moment: str) -> Draft:
    started = model.get(moment, model.get("started_us"))
    return {
        "trace_external_id": model["trace_external_id"],
        "external_id": call.id or f"{model['external_id']}:call-{place}",
        "parent_external_id": model["external_id"],
        "kind": "tool",
        "name": call.name,
        "input": call.arguments,
        "tool_call_id": call.id,
        **({} if started is None else {"started_us": started}),
    }


def _answered(result: Result | None) -> Draft:
    if result is None:
        return {}
    if not result.failed:
        return {"output": result.output, "status": "ok"}
    return {"output": result.output, "status": "error", "error": as_text(result.output)}
