"""A trace as people read it: what was asked, each step with what went in and came out, what was answered, what was said."""

from typing import Any

from store.records import Case, Episode, Feedback, Span

MOST_STEPS = 40
"""Steps shown; around the failing one where there are more."""


def timeline(case: Case) -> dict[str, Any]:
    """A failing trace, with the failing step marked."""
    return {**episode_view(case.episode, failing=case.failure.span_id), "failure": case.failure.id,
            "signals": [{"detector": each.detector, "detail": each.detail} for each in case.signals]}  # fmt: skip


def episode_view(episode: Episode, *, failing: str | None = None) -> dict[str, Any]:
    """Any trace: `trace, user, session, started_us, seconds, input, output, error, steps, left_out, feedback`."""
    trace = episode.trace
    depths = _depths(episode.spans)
    shown = _around(episode.spans, failing)
    return {
        "trace": trace.id,
        "user": trace.user,
        "session": trace.session,
        "tenant": trace.tenant,
        "channel": trace.channel,
        "name": trace.name,
        "status": trace.status,
        "release": trace.release,
        "model": trace.model,
        "external_id": trace.external_id,
        "source": trace.source,
        "started_us": trace.started_us,
        "seconds": _seconds(trace.started_us, trace.ended_us),
        "cost_usd": trace.cost_usd,
        "input_tokens": trace.input_tokens,
        "output_tokens": trace.output_tokens,
        "input": trace.input,
        "output": trace.output,
        "error": trace.error,
        "attributes": trace.attributes,
        "whole_failed": failing is None,
        "steps": [_step(span, depths[span.external_id], failing, trace.started_us) for span in shown],
        "left_out": len(episode.spans) - len(shown),
        "feedback": [_said(each) for each in episode.feedback],
    }


def _step(span: Span, depth: int, failing: str | None, began_us: int | None) -> dict[str, Any]:
    after = None if span.started_us is None or began_us is None else (span.started_us - began_us) / 1_000_000
    return {
        "span": span.id,
        "kind": span.kind,
        "name": span.name or "",
        "depth": min(depth, 6),
        "failing": span.id == failing,
        "status": span.status,
        "after_s": after,
        "seconds": _seconds(span.started_us, span.ended_us),
        "input": span.input,
        "output": span.output,
        "error": span.error,
        "error_type": span.error_type,
        "confidence": span.confidence,
        "documents": list(span.documents),
        "memories": list(span.memories),
    }


def _said(feedback: Feedback) -> dict[str, Any]:
    return {
        "feedback": feedback.id,
        "name": feedback.name,
        "score": feedback.score,
        "label": feedback.label,
        "comment": feedback.comment,
        "corrected_output": feedback.corrected_output,
        "source_kind": feedback.source_kind,
        "principal": feedback.principal,
        "given_us": feedback.given_us,
    }


def _around(spans: tuple[Span, ...], failing: str | None) -> tuple[Span, ...]:
    if len(spans) <= MOST_STEPS:
        return spans
    at = next((i for i, span in enumerate(spans) if span.id == failing), 0)
    start = max(0, min(at - MOST_STEPS // 2, len(spans) - MOST_STEPS))
    return spans[start : start + MOST_STEPS]


def _depths(spans: tuple[Span, ...]) -> dict[str, int]:
    parents = {span.external_id: span.parent_external_id for span in spans}
    found: dict[str, int] = {}
    for name in parents:
        depth, at, seen = 0, parents[name], {name}
        while at in parents and at not in seen:
            seen.add(at)
            depth, at = depth + 1, parents[at]
        found[name] = depth
    return found


def _seconds(began_us: int | None, ended_us: int | None) -> float | None:
    return None if began_us is None or ended_us is None else (ended_us - began_us) / 1_000_000
