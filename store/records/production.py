"""What production said: traces, their spans, and what people and programs said of them."""

from functools import lru_cache
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from store.records.identity import derived_id

Status = Literal["ok", "error", "unset"]

SpanKind = Literal[
    "predict",
    "llm",
    "tool",
    "retrieval",
    "memory",
    "agent",
    "chain",
    "embedding",
    "guardrail",
    "evaluator",
    "user",
    "other",
]
"""`predict` is one answer of a small model; `user` is a turn of the user inside a longer conversation."""

SourceKind = Literal["human", "program", "judge"]


class Record(BaseModel):
    """A frozen value with named fields; unknown fields are an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@lru_cache(maxsize=1024)
def _trace_id(project: str, source: str, external_id: str) -> str:
    """Remembered, since a trace, its spans and its feedback mostly come together."""
    return derived_id("trc", project, source, external_id)


class Trace(Record):
    """One production interaction, in OpenTelemetry's sense."""

    source: str
    """The system or log it came from; with `project` and `external_id` the identity."""
    external_id: str
    """Its id there; where there is none, the hash of the canonical record plus its occurrence number in the file."""
    project: str = "default"
    started_us: int | None = None
    """Start, microseconds since 1970 UTC; None: the log does not say. Never invented."""
    started_ns: int = Field(default=0, ge=0, le=999)
    """The rest of the nanoseconds of `started_us`."""
    ended_us: int | None = None
    """End, microseconds since 1970 UTC; None: still open, or not said."""
    name: str | None = None
    """What the program calls this kind of interaction."""
    session: str | None = None
    """The conversation it belongs to."""
    user: str | None = None
    """The end user, as the program names them; None: unknown."""
    tenant: str | None = None
    """The organisation of the user; None: unknown, or there are none."""
    channel: str | None = None
    """Where it came in (web, phone, policy scope): what a context rule may be scoped to."""
    status: Status = "unset"
    error: str | None = None
    """The error message of the whole interaction; None: no error."""
    input: JsonValue = None
    output: JsonValue = None
    model: str | None = None
    release: str | None = None
    """The filmroom release (`rel_...`) that served it; None: not said."""
    app_version: str | None = None
    prompt_version: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    attributes: dict[str, JsonValue] = Field(default_factory=dict)
    held_apart: dict[str, JsonValue] = Field(default_factory=dict)
    """Evaluation data the log carries (expected actions, gold answers): kept, and never shown to a router."""

    @property
    def id(self) -> str:
        """`trc_` and 20 hexadecimal digits, from project, source and external id."""
        return _trace_id(self.project, self.source, self.external_id)


class AssembledTrace(Trace):
    """A trace that its log does not have: put together from the spans that were read with it, which come before it.

    Where the store holds other spans of it too, it is put together again from all of them, so that the order in which
    spans arrive makes no difference.
    """

    span_count: int
    """Of how many spans it was put together."""


class Span(Record):
    """One step of a trace."""

    source: str
    trace_external_id: str
    external_id: str
    """Its id, unique within its trace."""
    project: str = "default"
    parent_external_id: str | None = None
    kind: SpanKind = "other"
    name: str | None = None
    """The tool, model, retriever or function of this step."""
    position: int = 0
    """Order within the trace where times are absent or equal."""
    started_us: int | None = None
    started_ns: int = Field(default=0, ge=0, le=999)
    ended_us: int | None = None
    status: Status = "unset"
    error: str | None = None
    error_type: str | None = None
    input: JsonValue = None
    """For a tool: its arguments. For a prediction: what the model saw."""
    output: JsonValue = None
    tool_call_id: str | None = None
    model: str | None = None
    confidence: float | None = Field(default=None, ge=0, le=1)
    """Of a prediction: its probability; None: not said."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    documents: tuple[JsonValue, ...] = ()
    """Of a retrieval: what was found."""
    memories: tuple[JsonValue, ...] = ()
    """Of a memory read: the records that were read."""
    attributes: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def trace_id(self) -> str:
        return _trace_id(self.project, self.source, self.trace_external_id)

    @property
    def id(self) -> str:
        return derived_id("spn", self.project, self.source, self.trace_external_id, self.external_id)


class Feedback(Record):
    """What a person, a program or a judge said of a trace; may come days late, or before its trace."""

    source: str
    trace_external_id: str
    external_id: str
    """Its id; the same id again revises it (the later `given_us` wins)."""
    project: str = "default"
    span_external_id: str | None = None
    name: str = "feedback"
    """What is judged: `thumb`, `reward`, `correct`, `label`, ..."""
    score: float | None = None
    label: str | None = None
    comment: str | None = None
    corrected_output: JsonValue = None
    """What should have been answered (for a prediction: the right label); None: not said."""
    source_kind: SourceKind = "human"
    principal: str | None = None
    """Who said it, as an authenticated principal; None: unknown."""
    given_us: int | None = None
    """When it was given, microseconds since 1970 UTC; None: the log does not say."""
    attributes: dict[str, JsonValue] = Field(default_factory=dict)
    """What else its log says of it."""

    @property
    def trace_id(self) -> str:
        return _trace_id(self.project, self.source, self.trace_external_id)

    @property
    def id(self) -> str:
        return derived_id("fbk", self.project, self.source, self.trace_external_id, self.external_id)


class Episode(Record):
    """A trace with its spans, in order, and all feedback on it so far."""

    trace: Trace
    spans: tuple[Span, ...] = ()
    feedback: tuple[Feedback, ...] = ()


class Rejected(Record):
    """One piece of input that could not be read: kept in quarantine with its place and the reason."""

    path: str
    line: int | None
    """1-based line, or record number where the format has no lines; None: the whole file."""
    reason: str
    raw: str
    """The rejected piece as text, so that it can be retried."""
    format: str | None = None
    """The format it was read as; None: none was recognised."""
    section: str | None = None
    """The `[sources.NAME]` whose mapping applied; None: none was named."""
    source: str | None = None
    """The system that its traces are from; None: the format's name."""
