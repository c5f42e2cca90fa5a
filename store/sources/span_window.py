"""Spans of one trace stand scattered through a log: they are held a while, so that most traces come whole.

What is held is bounded; the rest of a trace that comes later makes another `AssembledTrace`, and the store puts it
together again from all of its spans.
"""

from typing import Any

from store.assembled import assemble, in_order
from store.records import Feedback, Span
from store.sources.contract import Item
from store.sources.otel import Flat, RawSpan
from store.sources.span_records import made_of

MAX_SPANS = 4_000
MAX_BYTES = 32 * 1024 * 1024
"""Of the records that the held spans were read from, about."""


class SpanWindow:
    """The spans that are held, by trace."""

    def __init__(self, owner: dict[str, Any]) -> None:
        self._owner = owner
        self._spans: dict[str, dict[str, Span]] = {}
        self._feedback: dict[str, list[Feedback]] = {}
        self._apart: dict[str, Flat] = {}
        self._count = 0
        self._bytes = 0

    def add(self, raw: RawSpan, size: int = 0) -> None:
        """Hold a span that was read from `size` bytes. Raises BadRecord where it cannot be one of ours."""
        span, feedback, apart = made_of(raw, self._owner)
        held = self._spans.setdefault(raw.trace_id, {})
        known = held.get(span.external_id)
        if known is None:
            self._count += 1
            self._bytes += size
        if known is None or (known.ended_us or 0) <= (span.ended_us or 0):
            held[span.external_id] = span
        self._feedback.setdefault(raw.trace_id, []).extend(feedback)
        if apart:
            self._apart.setdefault(raw.trace_id, {}).update(apart)

    def overflow(self) -> list[Item]:
        """The older half of the traces once too much is held; nothing before."""
        if self._count <= MAX_SPANS and self._bytes <= MAX_BYTES:
            return []
        items: list[Item] = []
        for trace_id in list(self._spans)[: max(1, len(self._spans) // 2)]:
            items += self._release(trace_id)
        self._bytes = self._bytes * self._count // max(1, self._count + len(items))
        return items

    def flush(self) -> list[Item]:
        """All that is held, the spans of a trace before the trace."""
        return [item for trace_id in list(self._spans) for item in self._release(trace_id)]

    def _release(self, trace_id: str) -> list[Item]:
        spans = in_order(self._spans.pop(trace_id).values())
        self._count -= len(spans)
        said = {item.external_id: item for item in self._feedback.pop(trace_id)}
        return [*spans, assemble(spans, self._apart.pop(trace_id, {})), *said.values()]
