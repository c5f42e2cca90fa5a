"""The state of the four targets, the releases that serve them and the changes that made them."""

from typing import Literal

from pydantic import Field, FiniteFloat, JsonValue, field_validator

from store.records.decisions import Operation, Target
from store.records.identity import content_hash, derived_id
from store.records.production import Record

Action = Literal[
    "say",
    "never_say",
    "ask_first",
    "confirm_before",
    "prefer",
    "cite",
    "format_as",
    "use_tool",
    "do_not_use_tool",
    "escalate",
    "decline",
    "instruct",
]
ACTIONS: tuple[Action, ...] = (
    "say",
    "never_say",
    "ask_first",
    "confirm_before",
    "prefer",
    "cite",
    "format_as",
    "use_tool",
    "do_not_use_tool",
    "escalate",
    "decline",
    "instruct",
)


NORMALISER_NAMES: tuple[str, ...] = ("trim", "lower", "upper", "digits", "date_iso", "enum", "number")
"""Names that a policy may list, beside `prefix:` with a text and `unit:` with a unit."""
UNIT_NAMES: tuple[str, ...] = (
    "mg", "g", "kg", "oz", "lb", "mm", "cm", "m", "km", "in", "ft", "mi", "ml", "l", "ms", "s", "min", "h", "d",
)  # fmt: skip
MOST_RETRIES = 10


class Rule(Record):
    """One context rule: a filled template, or a sentence that a reviewer wrote and signed."""

    id: str
    """`rule_...`; it stays through edits."""
    scope: dict[str, str] = Field(default_factory=dict)
    """What a trace must match: `intent`, `channel`, `tool`, ...; empty: everywhere."""
    action: Action
    argument: str
    """What the action is about: the thing to say, the tool to use, the sentence of an `instruct`."""
    author: str
    """Who signed it; a correction's words never become a rule without one."""


class Example(Record):
    """A few-shot example: an input and the answer that is right for it, chosen by likeness to what comes in."""

    id: str
    """`ex_...`."""
    scope: dict[str, str] = Field(default_factory=dict)
    input: str
    output: str
    author: str
    """Who wrote it; a user's words never become an example without one."""


class Note(Record):
    """A piece of knowledge that the prompt gets."""

    id: str
    """`note_...`."""
    scope: dict[str, str] = Field(default_factory=dict)
    text: str
    author: str


class Fact(Record):
    """One memory: scoped, sourced, dated; superseded by name, never overwritten."""

    id: str
    """`fact_...`."""
    scope: Literal["user", "tenant", "global"] = "user"
    scope_id: str
    """The user or tenant; `*` for a global fact."""
    subject: str
    predicate: str
    value: JsonValue
    source: str
    """Who said it."""
    authority: bool = False
    valid_from_us: int | None = None
    ttl_s: int | None = None
    """None: it does not expire."""
    supersedes: str | None = None
    depends_on: tuple[str, ...] = ()
    """Facts it was concluded from; it is stale, and not served, once one of them is no longer in force."""


class ToolPolicy(Record):
    """What filmroom changes about one tool, in the program's process."""

    tool: str
    normalisers: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """Argument path to the normalisers applied to it, in order, as `models.normalise.NORMALISERS` lists them."""
    schema_patch: dict[str, JsonValue] = Field(default_factory=dict)
    """Schema tightening, laid over the declared JSON schema."""
    retries: int | None = Field(default=None, ge=0, le=MOST_RETRIES)
    timeout_s: FiniteFloat | None = Field(default=None, gt=0)
    freshness_s: FiniteFloat | None = Field(default=None, gt=0)
    """Oldest output of the tool that may be used."""
    disabled: bool = False
    expected: dict[str, str] = Field(default_factory=dict)
    """Argument path to what is expected there, in the reviewer's words; it ends the sentence that names a bad value."""

    @field_validator("normalisers")
    @classmethod
    def _known(cls, value: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        for path, names in value.items():
            wrong = next((name for name in names if not _is_normaliser(name)), None)
            if wrong is not None:
                raise ValueError(f"{path}: {wrong!r} is none of {', '.join(NORMALISER_NAMES)}, prefix:TEXT, "
                                 f"unit: with one of {' '.join(UNIT_NAMES)}")  # fmt: skip
        return value


def _is_normaliser(name: str) -> bool:
    kind, _, rest = name.partition(":")
    return name in NORMALISER_NAMES or (kind == "prefix" and rest != "") or (kind == "unit" and rest in UNIT_NAMES)


class Ticket(Record):
    """A defect of a tool that only its owner can mend, with the call that shows it."""

    id: str
    tool: str
    title: str
    trace_ids: tuple[str, ...]
    call: dict[str, JsonValue] = Field(default_factory=dict)
    """Arguments of the failing call, for the regression test."""
    error: str = ""
    resolved: bool = False
    resolved_us: int | None = None
    """When it was called resolved; a failure after it opens the ticket again."""
    cluster_id: str = ""
    """The cluster whose failures it is about."""


class Version(Record):
    """An immutable, content-addressed state of one target."""

    project: str = "default"
    target: Target
    model: str | None = None
    """Weights only: which model."""
    content: JsonValue
    """The state: context `{"rules": [...]}`, tooling `{"policies": {...}, "tickets": {...}}`, memory `{"position": n}`,
    weights `{"artifact": sha256, "training": sha256, ...}`."""
    parent: str | None = None
    created_us: int

    @property
    def id(self) -> str:
        return "ver_" + content_hash([self.project, self.target, self.model, self.content])[:20]


class Release(Record):
    """The four live versions together: immutable; one `live` pointer per project names the one served."""

    project: str = "default"
    context: str
    """Version id."""
    tooling: str
    memory: int = Field(ge=0)
    """Position in the facts' append-only history: facts up to it are served."""
    models: dict[str, str] = Field(default_factory=dict)
    """Model name to version id."""
    parent: str | None = None
    number: int = Field(ge=0)
    """0 for the first of a project, then one more than the parent's successor."""
    actor: str
    reason: str
    created_us: int

    @property
    def id(self) -> str:
        return derived_id(
            "rel",
            self.project,
            self.context,
            self.tooling,
            str(self.memory),
            content_hash(self.models),
            self.parent or "",
            str(self.number),
        )


class Change(Record):
    """An applied correction: target, version before and after, how to revert."""

    project: str = "default"
    correction_id: str
    target: Target
    operations: tuple[Operation, ...] = ()
    before: str
    """Version id (memory: position as text) before."""
    after: str
    release_id: str
    applied_us: int
    actor: str
    probation: bool
    """Applied without having been measured before; the hold test judges it."""
    state: Literal["live", "reverted"] = "live"

    @property
    def id(self) -> str:
        return derived_id("chg", self.correction_id, self.target, self.release_id)
