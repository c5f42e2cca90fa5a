"""Retraining: the rows it learns from, the gate's stages, every evaluation of the trigger, and the hold afterwards."""

from typing import Literal

from pydantic import Field, JsonValue

from store.records.identity import derived_id
from store.records.production import Record

RetrainDecision = Literal["skipped", "refused", "promoted", "rolled_back"]


class DatasetRow(Record):
    """One labelled example of a model's training data."""

    input: JsonValue
    label: str
    source: str = "unknown"
    """The principal it comes from; `base` for the rows the model was first trained on."""
    authority: bool = False
    trace_id: str | None = None
    """None: a row of the base set."""
    correction_id: str | None = None
    at_us: int | None = None
    weight: float = 1.0


class GateStage(Record):
    """One test of the gate, with the numbers that decided it."""

    stage: Literal["integrity", "target", "global", "slices", "flips", "calibration", "poison", "golden", "sealed"]
    verdict: Literal["passed", "failed", "not measured"]
    """`not measured` refuses, as `failed` does."""
    numbers: dict[str, float | None] = Field(default_factory=dict)
    sentence: str
    """What was compared and found, in words."""


class ChangedAnswer(Record):
    """A row on which champion and challenger differ, one of them right. It names the trace and holds no text of it."""

    change: Literal["newly right", "newly wrong"]
    trace_id: str | None = None
    """None: a row of the base set."""
    row: str
    """Digest of the input."""
    truth: str | None
    """The right label; None: out of scope."""
    champion: str | None
    challenger: str | None


class Retrain(Record):
    """One evaluation of the trigger: skipped, refused, promoted or rolled back, always with its reason and numbers."""

    project: str = "default"
    id: str
    model: str
    at_us: int
    decision: RetrainDecision
    reason: str
    to_yes: str = ""
    """The shortest way to a training or a promotion; empty where it was promoted."""
    numbers: dict[str, float | None] = Field(default_factory=dict)
    """What the trigger weighed: avoidable loss, cost, evidence."""
    arm: str | None = None
    """The arm that reached the gate, or `patch`; None: none was trained."""
    arms: tuple[dict[str, JsonValue], ...] = ()
    """Every arm tried: name, selection score, seconds, error, and `curve`: what it had learnt and answered after
    each fold."""
    version: str | None = None
    """The version promoted."""
    parent: str | None = None
    """The version that was live."""
    data_digest: str | None = None
    """SHA-256 of the training rows."""
    trace_ids: tuple[str, ...] = ()
    """Traces whose labels the candidate learnt from; empty where none was trained."""
    metrics: dict[str, float | None] = Field(default_factory=dict)
    gate: tuple[GateStage, ...] = ()
    examples: tuple[ChangedAnswer, ...] = ()
    """Some of the judged rows on which the candidate and the champion differ, those newly wrong first."""
    seconds: float = 0.0
    estimator_fits: int = 0
    """Every call of an estimator's `fit`."""


class Hold(Record):
    """The watch on a change: does its failure stop recurring?"""

    project: str = "default"
    change_id: str
    cluster_id: str
    state: Literal["holding", "held", "failed"] = "holding"
    baseline: float | None
    """Failure rate of the cluster's exposures before the change; None: not measured."""
    exposures: int = 0
    recurrences: int = 0
    needed: int | None = None
    """Clean exposures until it is held; None: not known without a baseline."""
    since_us: int
    """When the change went live; only traces after it are exposures."""
    updated_us: int

    @property
    def id(self) -> str:
        return derived_id("hld", self.change_id)
