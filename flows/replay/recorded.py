"""What the log holds of a case, as the hook gets it: the input, the answers of its tools, what was right."""

from collections.abc import Iterable, Sequence
from typing import Any

from models.steps import arguments, error_text, tool_calls
from store.records import Episode, Span
from store.records.identity import canonical_json


def recorded_calls(episode: Episode, others: Iterable[Episode] = ()) -> list[dict[str, Any]]:
    """The tool calls of a trace with their answers in order; a call that it does not hold is answered from `others`, where
    the very same call was made there."""
    found: dict[str, dict[str, Any]] = {}
    for span in tool_calls(episode.spans):
        _add(found, span)
    own = set(found)
    for other in others:
        for span in tool_calls(other.spans):
            if _key(span) not in own:
                _add(found, span)
    return list(found.values())


def case_for_check(episode: Episode) -> dict[str, Any]:
    """What the user's check may compare an answer with."""
    corrected = [said.corrected_output for said in episode.feedback if said.corrected_output is not None]
    return {
        "output": episode.trace.output,
        "corrected_output": corrected[-1] if corrected else None,
        "feedback": [
            {"name": said.name, "score": said.score, "label": said.label, "comment": said.comment}
            for said in episode.feedback
        ],
    }


def replayed_calls(calls: Sequence[dict[str, Any]], episode: Episode) -> list[Span]:
    """The calls of a replay as spans."""
    key = {"source": episode.trace.source, "trace_external_id": episode.trace.external_id}
    spans = []
    for at, call in enumerate(calls):
        given = call.get("arguments")
        text = str(call["error"]) if call.get("error") else None
        span = Span(**key, external_id=f"replay-{at}", position=at, kind="tool", name=str(call["name"]),
                    input=given, output=call.get("output"), error=text, status="error" if text else "ok")  # fmt: skip
        spans.append(span.model_copy(update={"error": error_text(span)}))
    return spans


def _add(found: dict[str, dict[str, Any]], span: Span) -> None:
    answer = {"error": span.error} if span.error and span.output is None else {"output": span.output}
    if span.output is None and span.error is None and span.status != "ok":
        return
    entry = found.setdefault(_key(span), {"name": span.name or "", "arguments": arguments(span), "answers": []})
    entry["answers"].append(answer)


def _key(span: Span) -> str:
    return f"{span.name}\0{canonical_json(arguments(span))}"
