"""What happened when a change was tried on cases of the log before it went live."""

from typing import Literal

from pydantic import JsonValue

from store.records.identity import derived_id
from store.records.production import Record

ReplayVerdict = Literal["repairs", "no_effect", "harms", "not_measured"]
Outcome = Literal["right", "wrong", "not_measured"]


class ReplayResult(Record):
    """One case, answered once by one release."""

    trace_id: str
    role: Literal["case", "neighbour"]
    """A failure of the cluster, or a trace that its user was content with."""
    arm: Literal["fix", "control"]
    """With the change, or with what is live: what varies without any change."""
    repeat: int = 0
    outcome: Outcome
    why: str = ""
    """Of what was not measured: the reason. A failure of the hook is one, and never a failure of the fix."""
    cost_usd: float | None = None
    seconds: float = 0.0
    output: JsonValue = None
    """What it answered; kept apart, as text of people."""


class Replay(Record):
    """One trial of a correction's change."""

    project: str = "default"
    correction_id: str
    digest: str
    """Of the deltas that were tried: another change of the same correction is another trial."""
    release_id: str
    """What was live then: the control."""
    at_us: int
    hook: str
    """What answered."""
    verdict: ReplayVerdict
    sentence: str
    numbers: dict[str, float | None]
    """`cases, fixed, control_fixed, neighbours, broken, mended, not_measured, p_fix, p_harm, likelihood_ratio`."""
    cost_usd: float = 0.0
    seconds: float = 0.0

    @property
    def id(self) -> str:
        return derived_id("rpl", self.correction_id, self.digest, self.release_id, str(self.at_us))
