"""Are certified decisions still right? A part of them goes to a person unseen, and a bet is kept against the certificate."""

import math
from collections.abc import Sequence

from models.abstention import Certificate, NotCertified
from models.sequential import binomial_e_value
from store.records import Record
from store.records.identity import short_hash

AUDITED = 0.10
"""Share of the certified decisions that a person judges without knowing that they are certified."""
ALARM = 20.0
"""Evidence at which the threshold is tightened: while the certificate holds, reached in at most 1 of 20 deployments, ever."""


class Audit(Record):
    """What the blind audit of one place shows."""

    audited: int
    wrong: int
    evidence: float
    """For "more than the certified risk is wrong"; at most 1 in expectation while that is not so."""

    @property
    def alarms(self) -> bool:
        return self.evidence >= ALARM

    @property
    def statement(self) -> str:
        said = f"{self.wrong} of {self.audited} certified decisions in the blind audit were wrong (E = {self.evidence:.1f})"
        return f"{said}: the threshold is tightened" if self.alarms else said


def is_audited(correction_id: str, *, seed: int) -> bool:
    """Whether this decision is drawn for the audit: always the same answer for the same correction and seed."""
    return int(short_hash("audit", str(seed), correction_id), 16) / 16**20 < AUDITED


def audit(right: Sequence[bool], *, risk: float) -> Audit:
    """The bet over the audited decisions in force, in any order. `risk` in (0, 1)."""
    wrong = len(right) - sum(right)
    return Audit(audited=len(right), wrong=wrong, evidence=binomial_e_value(wrong, len(right), risk))


def tightened(
    given: Certificate | NotCertified, found: Audit, wrong_scores: Sequence[float]
) -> Certificate | NotCertified:
    """The certificate after the audit: where it alarms, only what is surer than every audited decision that was wrong.

    Nothing is certified any more where such a decision was as sure as can be.
    """
    if not found.alarms or isinstance(given, NotCertified):
        return given
    worst = max(wrong_scores, default=1.0)
    if worst >= 1.0:
        return NotCertified(clusters=given.clusters, wrong=found.wrong, bound=1.0, needed=given.clusters,
                            risk=given.risk, confidence=given.confidence)  # fmt: skip
    return given.model_copy(update={"threshold": max(given.threshold, math.nextafter(worst, 2.0))})
