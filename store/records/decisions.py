"""From a failing trace to a decision: signal, failure, cluster, correction, route, review."""

from typing import Literal

from pydantic import Field, JsonValue

from store.records.identity import derived_id
from store.records.production import Episode, Record
from store.records.ways import Way

Target = Literal["context", "memory", "tooling", "weights"]
TARGETS: tuple[Target, ...] = ("context", "memory", "tooling", "weights")

Verdict = Literal["approve", "reroute", "reject", "defer"]

CorrectionState = Literal["proposed", "approved", "applied", "rejected", "deferred", "reverted"]
"""`approved`: accepted, and not yet live (a row of training data waits for its retrain)."""


class Signal(Record):
    """One dated reason to believe that a trace failed."""

    trace_id: str
    detector: str
    """Name of the detector, for example `tool_error`."""
    detector_version: int
    weight: float
    """Log-odds it adds to the belief that the trace failed; negative: it speaks for success."""
    at_us: int | None
    span_id: str | None = None
    feedback_id: str | None = None
    detail: str = ""
    """A short phrase without personal text."""

    @property
    def id(self) -> str:
        return derived_id(
            "sig", self.trace_id, self.detector, str(self.detector_version), self.span_id or "", self.feedback_id or ""
        )


class Fingerprint(Record):
    """What failures of one cluster have in common, word for word; free text enters only as an edit class."""

    version: int
    component: str
    """The failing step: a tool's or model's name, or `answer` where the whole answer was wrong."""
    kind: str
    """The failing step's span kind."""
    error_class: str
    """`transient`, `validation`, `not_found`, `auth`, `other`, or `none`."""
    schema_path: str = ""
    """Of a schema violation or a bad argument: its path, for example `address.zip`."""
    served: str = ""
    corrected: str = ""
    """Of a prediction: label served and corrected; of free text: an edit class."""
    intent: str = ""
    scope: str = ""
    topic: str = ""
    """Of a cluster of texts: what tells it from others of this fingerprint, a digest; empty: the fingerprint alone does."""

    @property
    def key(self) -> str:
        """All fields but the version, as one string."""
        return self._fields + (f"|{self.topic}" if self.topic else "")

    @property
    def _fields(self) -> str:
        return "|".join(
            (
                self.component,
                self.kind,
                self.error_class,
                self.schema_path,
                self.served,
                self.corrected,
                self.intent,
                self.scope,
            )
        )


class Failure(Record):
    """A trace that was picked up; at most one per trace."""

    project: str = "default"
    trace_id: str
    picked_us: int
    probability: float = Field(ge=0, le=1)
    """Belief that the trace failed, from its signals."""
    q: float = Field(default=1.0, gt=0, le=1)
    """Probability with which this trace was seen by a labeller; 1 where all are."""
    span_id: str | None = None
    """The failing step; None: the trace as a whole."""
    source: str = "unknown"
    """The principal whose feedback it rests on, else the user, else `unknown`."""
    authority: bool = False
    """Whether that source is an authority."""
    fingerprint: Fingerprint | None = None
    cluster_id: str | None = None

    @property
    def id(self) -> str:
        return derived_id("fail", self.trace_id)


class Case(Record):
    """A failure with everything that is known of its trace: what evidence is computed from."""

    failure: Failure
    episode: Episode
    signals: tuple[Signal, ...] = ()


class Cluster(Record):
    """Failures with the same fingerprint: the unit of decision."""

    project: str = "default"
    id: str
    """Surrogate: it stays when the cluster grows or its fingerprint gets a new version."""
    name: str
    """What a person understands: `update_order fails: address missing`."""
    fingerprint: Fingerprint
    created_us: int
    failures: int = 0
    no_single_place: bool = False
    """Two targets or three attempts failed: a person decides."""


class Operation(Record):
    """One delta on the state of a target: never a rewrite of the whole."""

    target: Target
    verb: Literal[
        "add", "edit", "retire", "supersede", "forget", "ticket_open", "ticket_resolve", "dataset_add", "dataset_remove"
    ]
    key: str
    """What it acts on, unique within the target (a rule id, a tool name, a dataset row id)."""
    value: dict[str, JsonValue] = Field(default_factory=dict)
    """The typed record of the target (Rule, Fact, ToolPolicy, Ticket, DatasetRow) as JSON; empty for a removal."""
    signed_by: str | None = None
    """The reviewer who wrote this very value; None: it was read from what the log says."""


class Proposal(Record):
    """The change proposed for a correction in one target."""

    target: Target
    summary: str
    """One sentence a reviewer can say yes or no to."""
    operations: tuple[Operation, ...] = ()
    needs_answer: str | None = None
    """What a person must write before it can be applied; None: nothing is missing."""


class Correction(Record):
    """What should have happened, and the change proposed for it."""

    project: str = "default"
    cluster_id: str
    attempt: int = Field(default=1, ge=1)
    """1 for the first correction of a cluster; one more after each that failed to hold or was undone."""
    state: CorrectionState = "proposed"
    created_us: int
    proposal: Proposal | None = None

    @property
    def id(self) -> str:
        return derived_id("cor", self.cluster_id, str(self.attempt))


class Route(Record):
    """The decision: where the correction belongs, and how sure that is."""

    project: str = "default"
    correction_id: str
    cluster_id: str
    decided_us: int
    probabilities: dict[str, float]
    """Per target and for `none`; sums to 1."""
    target: Target | None
    """The most probable; None: no target, `none` is the most probable."""
    runner_up: str | None
    certified: bool
    """Whether it may be applied without a person at the certified risk."""
    reason: str
    """Why this target, or why a person is asked."""
    to_yes: str
    """The shortest way to a certificate or to a decision."""
    ways: tuple[Way, ...] = ()
    """The same, with the traces that matter most; empty: it is certified, or was decided before they were named."""
    evidence: dict[str, float | None]
    """Feature name to value; None: not measured, which is never zero."""
    failures: int
    """Failures in the cluster when it was decided."""
    router: str
    """Router version."""
    order: tuple[Target, ...] = ()
    """Places in the order of least expected cost; empty: decided before that was computed."""
    audited: bool = False
    """Certified, and drawn for the blind audit: a person decides as on any other."""
    policy: JsonValue = None
    """The thresholds in force."""
    settings_digest: str = ""
    seed: int = 0

    @property
    def id(self) -> str:
        return derived_id("rte", self.correction_id, self.router, str(self.failures), str(self.decided_us))


class Review(Record):
    """A person's verdict on a route."""

    project: str = "default"
    correction_id: str
    verdict: Verdict
    target: Target | None = None
    """Where a reroute sends it."""
    reason: str = ""
    answer: JsonValue = None
    """What the reviewer wrote where the correction needed an answer: signed by `reviewer`."""
    reviewer: str
    authority: bool
    at_us: int

    @property
    def id(self) -> str:
        return derived_id("rev", self.correction_id, self.verdict, self.reviewer, str(self.at_us))
