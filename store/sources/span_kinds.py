"""What kind of step an OpenTelemetry span is, by whichever convention says it."""

from typing import get_args

from pydantic import JsonValue

from store.records import SpanKind
from store.sources.attribute_set import AttributeSet

_OURS = frozenset(get_args(SpanKind))

_OPERATIONS: dict[str, SpanKind] = {
    **dict.fromkeys(("chat", "generate_content", "text_completion", "completion"), "llm"),
    **dict.fromkeys(("embeddings", "embedding"), "embedding"),
    **dict.fromkeys(("retrieval", "rerank"), "retrieval"),
    "execute_tool": "tool",
    **dict.fromkeys(("invoke_agent", "create_agent"), "agent"),
    **dict.fromkeys(("invoke_workflow", "plan"), "chain"),
    **dict.fromkeys(("evaluate", "evaluation"), "evaluator"),
}
"""`gen_ai.operation.name`; whatever speaks of memory is a memory."""

_OPENINFERENCE: dict[str, SpanKind] = {
    **{name: name for name in ("llm", "embedding", "chain", "tool", "agent", "guardrail", "evaluator")},
    **dict.fromkeys(("retriever", "reranker"), "retrieval"),
}
_TRACELOOP: dict[str, SpanKind] = {"workflow": "chain", "task": "chain", "agent": "agent", "tool": "tool"}
_LANGFUSE: dict[str, SpanKind] = _OPENINFERENCE | {"generation": "llm"}
_REQUESTS: dict[str, SpanKind] = {
    **dict.fromkeys(("chat", "completion", "text_completion"), "llm"),
    "embedding": "embedding",
    "rerank": "retrieval",
}


def kind_of(attributes: AttributeSet) -> SpanKind:
    """The kind that the attributes name, the newest convention first; `other` where none does."""
    ours = attributes.take("filmroom.span.kind")
    if isinstance(ours, str) and ours in _OURS:
        return ours  # type: ignore[return-value]  # checked against the very list
    named = (
        _named(_OPERATIONS, attributes.peek("gen_ai.operation.name")),
        _named(_OPENINFERENCE, attributes.take("openinference.span.kind")),
        _named(_TRACELOOP, attributes.take("traceloop.span.kind")),
        _named(_LANGFUSE, attributes.take("langfuse.observation.type")),
        _named(_REQUESTS, attributes.take("llm.request.type")),
    )
    return next((kind for kind in named if kind), None) or _implied(attributes)


def _named(kinds: dict[str, SpanKind], name: JsonValue) -> SpanKind | None:
    if not isinstance(name, str):
        return None
    if "memory" in name:
        return "memory"
    return kinds.get(name.lower())


def _implied(attributes: AttributeSet) -> SpanKind:
    if attributes.peek("gen_ai.tool.name", "gen_ai.tool.call.arguments", "tool.name") is not None:
        return "tool"
    said = attributes.peek("gen_ai.request.model", "gen_ai.response.model", "gen_ai.system", "llm.model_name")
    return "llm" if said is not None or _speaks(attributes) else "other"


def _speaks(attributes: AttributeSet) -> bool:
    return any(
        name.startswith(("llm.input_messages.", "gen_ai.prompt.", "gen_ai.completion.")) for name in attributes.rest
    )
