"""What past decisions allow: the router in force, and per target the score from which a decision goes without a person."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from flows.router_versions import InForce, in_force
from flows.workspace import Workspace
from models.abstention import Certificate, NotCertified, Sent, certify, kind_of
from models.audit_monitor import Audit, audit, tightened
from models.router import NONE, Router
from store.records import TARGETS, Target
from store.verdicts import DecidedCluster

BINS = 5


@dataclass(frozen=True)
class Calibration:
    """The router in force and its certificates, computed from the clusters whose right place is known."""

    in_force: InForce
    """The router that decides, and why."""
    certificates: dict[Target, Certificate | NotCertified]
    audits: dict[Target, Audit]
    """What the blind audit shows of what was certified."""
    counts: dict[Target, int]
    """Decided clusters that the router in force sends there."""
    decided: tuple[DecidedCluster, ...]
    passing: int = 0
    """Decided clusters at or above the threshold of their place."""
    error: float | None = None
    """Expected calibration error over the decided clusters, 0 to 1: how far said and seen are apart; None: none is decided."""

    @property
    def router(self) -> Router:
        return self.in_force.router

    @property
    def reason(self) -> str:
        """Why this router."""
        return self.in_force.reason

    def coverage(self) -> float:
        """Share of the decided clusters at or above the threshold of their target; 0 to 1."""
        return self.passing / len(self.decided) if self.decided else 0.0


def calibrate(workspace: Workspace, connection: Connection) -> Calibration:
    """From every verdict and every ended hold so far; with none, the rules, and nothing is certified.

    A decision is right where a hold that ended says so, else where a reviewer's verdict names the same place. The score
    of a cluster comes from a router that did not learn from it.
    """
    now = in_force(workspace, connection)
    fair = now.said(now.version, now.decided)
    scores = {
        each.correction_id: said or now.router.probabilities(each.evidence, now.deployment)
        for each, said in zip(now.decided, fair, strict=True)
    }
    return _certified(workspace, now, scores)


def _certified(workspace: Workspace, now: InForce, scores: Mapping[str, Mapping[str, float]]) -> Calibration:
    decided = now.decided
    certificates: dict[Target, Certificate | NotCertified] = {}
    counts: dict[Target, int] = {}
    audits: dict[Target, Audit] = {}
    policy = workspace.policy
    sent = {target: [each for each in decided if _first(scores[each.correction_id]) == target] for target in TARGETS}
    judged = {
        target: [
            Sent(
                scores[each.correction_id][target],
                each.place == target and each.held is not False,
                kind_of(each.evidence),
            )
            for each in sent[target]
        ]
        for target in TARGETS
    }
    risks = {target: policy.risk_weights if target == "weights" else policy.risk for target in TARGETS}
    given = certify(judged, risks=risks, confidence=policy.confidence)
    for target in TARGETS:
        counts[target] = len(sent[target])
        blind = [pair for each, pair in zip(sent[target], judged[target], strict=True) if each.audited]
        audits[target] = audit([seen.right for seen in blind], risk=risks[target])
        wrong = [seen.score for seen in blind if not seen.right]
        certificates[target] = tightened(given[target], audits[target], wrong)
    passing = sum(
        seen.score >= certificate.threshold and seen.kind not in certificate.without
        for target, certificate in certificates.items()
        if isinstance(certificate, Certificate)
        for seen in judged[target]
    )
    return Calibration(
        in_force=now,
        certificates=certificates,
        audits=audits,
        counts=counts,
        decided=decided,
        passing=passing,
        error=expected_calibration_error([_said(each, scores[each.correction_id]) for each in decided]),
    )


def expected_calibration_error(said: Sequence[tuple[float, bool]]) -> float | None:
    """Mean over five equal bins, weighted by size, of the distance between the mean probability and the share that was right.

    None without a decision. Guo et al. 2017.

    >>> expected_calibration_error([(0.9, True), (0.9, False)])
    0.4
    """
    if not said:
        return None
    bins: dict[int, list[tuple[float, bool]]] = {}
    for probability, right in said:
        bins.setdefault(min(int(probability * BINS), BINS - 1), []).append((probability, right))
    gaps = [abs(sum(p for p, _ in each) - sum(right for _, right in each)) for each in bins.values()]
    return round(sum(gaps) / len(said), 12)


def _said(each: DecidedCluster, found: Mapping[str, float]) -> tuple[float, bool]:
    first = _first(found)
    return found[first], first == (each.place or NONE) and each.held is not False


def _first(probabilities: Mapping[str, float]) -> str:
    return max(probabilities, key=lambda name: probabilities[name])
