"""A trace and its spans out of loose steps: their order, the root, the tool calls, and what the trace itself left out.

Logs give steps unsorted, without a root, with the tool calls only inside the messages, or with input and output only on
the root; every reader of a tracing system hands its steps to `assembled`.
"""

from collections.abc import Callable
from typing import Any

from store.assembled import CLAIMS, assemble
from store.records import Rejected, Span, Trace
from store.sources.contract import BadRecord, Item
from store.sources.fields import make
from store.sources.retrieved import records_in
from store.sources.times import Moment
from store.sources.tool_spans import with_tool_spans

Draft = dict[str, Any]
"""The fields of a span or a trace, before it is one."""
Refuse = Callable[[str], Rejected]
"""A rejected piece with this reason, at the place that is being read."""


def timed(started: Moment | None, ended: Moment | None) -> Draft:
    """The fields of a start and an end; the end of a step that ended before it began is not believed."""
    fields: Draft = {}
    if started:
        fields |= {"started_us": started.us, "started_ns": started.ns}
    if ended and not (started and ended.us < started.us):
        fields["ended_us"] = ended.us
    return fields


def assembled(trace: Draft | None, steps: list[Draft], owner: Draft, refuse: Refuse) -> list[Item]:
    """The trace, then its spans in order. `owner` is their project and source; without `trace` there are spans alone.

    A step that does not fit is rejected alone. Raises BadRecord where the trace does not fit.
    """
    steps = ordered(with_tool_spans(_latest(steps)))
    items: list[Item] = []
    if trace is not None:
        items.append(make(Trace, owner | completed(trace, steps)))
    for position, step in enumerate(steps):
        try:
            items.append(make(Span, owner | _with_records(step) | {"position": position}))
        except BadRecord as error:
            items.append(refuse(f"span {step.get('external_id')!r}: {error}"))
    return items


def out_of_spans(claims: Draft, steps: list[Draft], owner: Draft, refuse: Refuse, apart: Draft) -> list[Item]:
    """The spans in order, then the trace they are so far, for logs that may give a trace's spans in several pieces.

    `claims` is what they say of the whole, kept with the first of them, so that the trace can be put together again.
    """
    prompt = _said(*(step.get("prompt_version") for step in reversed(steps)))
    claims = {key: value for key, value in ({"prompt_version": prompt} | claims).items() if value not in (None, {}, "")}
    items = assembled(None, steps, owner, refuse)
    spans = [item for item in items if isinstance(item, Span)]
    if not spans:
        return items
    if claims:
        top = _root_span(spans)
        marked = top.model_copy(update={"attributes": top.attributes | {CLAIMS: claims}})
        items = [marked if item is top else item for item in items]
        spans = [item for item in items if isinstance(item, Span)]
    return [*items, assemble(spans, apart)]


def _root_span(spans: list[Span]) -> Span:
    ids = {span.external_id for span in spans}
    return next((span for span in spans if span.parent_external_id not in ids), spans[0])


def _latest(steps: list[Draft]) -> list[Draft]:
    """One step an id: of two, what the later one says, and what only the earlier one says."""
    by_id: dict[str, Draft] = {}
    for step in steps:
        known = by_id.get(step["external_id"])
        if known is None:
            by_id[step["external_id"]] = step
            continue
        first, last = sorted((known, step), key=lambda draft: draft.get("ended_us") or 0)
        by_id[step["external_id"]] = first | {key: value for key, value in last.items() if value not in (None, {}, ())}
    return list(by_id.values())


def ordered(steps: list[Draft]) -> list[Draft]:
    """By start, then depth, then as they came; a step that does not say when it started comes last."""
    parents = {step["external_id"]: step.get("parent_external_id") for step in steps}

    def key(numbered: tuple[int, Draft]) -> tuple[bool, int, int, int, int]:
        number, step = numbered
        started = step.get("started_us")
        return (started is None, started or 0, step.get("started_ns", 0), _depth(step["external_id"], parents), number)

    return [step for _, step in sorted(enumerate(steps), key=key)]


def _depth(id_: str, parents: dict[str, str | None]) -> int:
    depth, seen = 0, {id_}
    while (above := parents.get(id_)) is not None and above in parents and above not in seen:
        seen.add(above)
        id_, depth = above, depth + 1
    return depth


def root_of(steps: list[Draft]) -> Draft | None:
    """The step that stands for the whole: of those whose parent is not there the earliest, one without any parent first."""
    ids = {step["external_id"] for step in steps}
    tops = [step for step in ordered(steps) if step.get("parent_external_id") not in ids]
    return next((step for step in tops if not step.get("parent_external_id")), tops[0] if tops else None)


def completed(trace: Draft, steps: list[Draft]) -> Draft:
    """The trace with what it does not say itself taken from its steps: the root, then the model's first and last.

    A step that only stands for a root that is missing gives neither its name nor its success; a trace that is `open`,
    still running, gets no end and no status.
    """
    root = root_of(steps) or {}
    is_whole = bool(root) and not root.get("parent_external_id")
    answers = [step for step in steps if step.get("kind") in ("llm", "predict")]
    first, last = (answers[0], answers[-1]) if answers else ({}, {})
    found: Draft = {
        "input": _said(root.get("input"), first.get("input")),
        "output": _said(root.get("output"), last.get("output")),
        "name": root.get("name") if is_whole else None,
        "model": _said(*(step.get("model") for step in reversed(answers)), root.get("model")),
        "prompt_version": _said(*(step.get("prompt_version") for step in reversed(answers))),
        "started_us": min((step["started_us"] for step in steps if "started_us" in step), default=None),
        "ended_us": root.get("ended_us"),
        "input_tokens": _total(steps, "input_tokens"),
        "output_tokens": _total(steps, "output_tokens"),
        "cost_usd": _total(steps, "cost_usd"),
    }
    if trace.get("status", "unset") == "unset" and root.get("status") in (("error", "ok") if is_whole else ("error",)):
        found |= {"status": root["status"], "error": root.get("error")}
    if trace.get("open"):
        found |= {"status": "unset", "error": None, "ended_us": None}
    if trace.get("started_us") is None and root.get("started_us") == found["started_us"]:
        found["started_ns"] = root.get("started_ns", 0)
    unsaid = (None, "unset")
    stated = {
        key: value for key, value in trace.items() if key != "open" and (key == "attributes" or value not in unsaid)
    }
    return {key: value for key, value in found.items() if value is not None} | stated


def _said(*values: Any) -> Any:
    return next((value for value in values if value not in (None, "", [], {})), None)


def _total(steps: list[Draft], field: str) -> Any:
    """The sum over the steps that no other step with the same count encloses: a chain may repeat what its calls used."""
    counted = {step["external_id"]: step for step in steps if step.get(field) is not None}
    outer = {step.get("parent_external_id") for step in counted.values()}
    values = [step[field] for id_, step in counted.items() if id_ not in outer]
    if not values:
        return None
    return round(sum(values), 12) if field == "cost_usd" else sum(values)


def _with_records(step: Draft) -> Draft:
    step = {key: value for key, value in step.items() if key != "prompt_version"}
    kind = step.get("kind")
    if kind == "retrieval" and not step.get("documents"):
        step["documents"] = records_in(step.get("output"))
    if kind == "memory" and not step.get("memories"):
        step["memories"] = records_in(step.get("output"))
    return step
