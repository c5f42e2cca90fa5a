"""When may a decision go without a person? A threshold with a certificate, or the reason why there is none."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from scipy.stats import beta

from store.records import Record, Target


class Sent(NamedTuple):
    """One calibration cluster: the score of the decision, whether it was right, and what kind of cluster it is."""

    score: float
    right: bool
    kind: str = ""
    """As `kind_of` names it."""


class Certificate(Record):
    """A threshold above which at most `risk` of the decisions are wrong, with probability `confidence`."""

    threshold: float
    """Decisions of at least this score may go without a person."""
    clusters: int
    """Calibration clusters at or above it."""
    wrong: int
    """Those of them whose fix did not hold."""
    bound: float
    """Clopper-Pearson upper bound of the share of wrong ones, at `confidence`."""
    coverage: float
    """Share of all calibration clusters at or above the threshold."""
    risk: float
    confidence: float
    together: tuple[str, ...] = ()
    """Places that the certificate is of together, their calibration clusters taken as one; empty: of one place."""
    without: tuple[str, ...] = ()
    """Kinds of cluster of this place that are wrong too often, and are not certified."""

    @property
    def statement(self) -> str:
        """What is certified, and under which condition."""
        over = f" over {', '.join(self.together)} together" if self.together else ""
        over += f", without {', '.join(self.without)}" if self.without else ""
        return (
            f"with probability at least {self.confidence:.0%} over the calibration draw, at most {self.risk:.0%} of"
            " auto-routed clusters are in a place where the fix would not hold, while clusters stay exchangeable"
            f" ({self.wrong} of {self.clusters} calibration clusters wrong, bound {self.bound:.1%}{over})"
        )


class NotCertified(Record):
    """No threshold is certified: everything goes to a person."""

    clusters: int
    """Calibration clusters with a score."""
    wrong: int
    """Wrong ones among those at or above the strictest threshold tested; 0 where none was."""
    bound: float
    """The bound reached there; 1.0 where none was tested."""
    needed: int
    """More calibration clusters until the first test could pass, if no further one is wrong."""
    risk: float
    confidence: float

    @property
    def statement(self) -> str:
        """Why there is no certificate."""
        if self.bound == 1.0 and self.wrong == 0:
            return (
                f"not certified: {self.clusters} calibration clusters, {self.needed} more are needed for the first test"
            )
        return (
            f"not certified: {self.wrong} wrong among the surest calibration clusters, so that up to {self.bound:.1%}"
            f" may be wrong and {self.risk:.0%} is allowed; about {self.needed} more clusters without a wrong one are needed"
        )


def upper_bound(wrong: int, total: int, *, confidence: float) -> float:
    """Clopper-Pearson one-sided upper bound of a share, 0 to 1 (Clopper & Pearson 1934); 1.0 where nothing was seen.

    >>> round(upper_bound(0, 22, confidence=0.9), 4)
    0.0994
    """
    if wrong >= total:
        return 1.0
    return float(beta.ppf(confidence, wrong + 1, total - wrong))


def lower_bound(wrong: int, total: int, *, confidence: float) -> float:
    """Clopper-Pearson one-sided lower bound of a share, 0 to 1; 0.0 where nothing wrong was seen.

    >>> round(lower_bound(22, 22, confidence=0.9), 2)
    0.9
    """
    return float(beta.ppf(1 - confidence, wrong, total - wrong + 1)) if wrong else 0.0


def kind_of(evidence: Mapping[str, float | None]) -> str:
    """What failed in most of a cluster: a model's `prediction`, a step with an error of a class, or the whole `answer`.

    >>> kind_of({"model_step": 1.0}), kind_of({"error_auth": 0.8, "error_none": 0.2}), kind_of({})
    ('prediction', 'auth error', 'answer')
    """
    if (evidence.get("model_step") or 0.0) >= 0.5:
        return "prediction"
    errors = {
        name.removeprefix("error_"): value or 0.0 for name, value in evidence.items() if name.startswith("error_")
    }
    most = max(sorted(errors), key=lambda name: errors[name], default="none")
    return "answer" if most == "none" else f"{most} error"


def minimum_for(risk: float, confidence: float) -> int:
    """Calibration clusters, none of them wrong, that a certificate needs at least.

    >>> minimum_for(0.10, 0.90), minimum_for(0.05, 0.90)
    (22, 45)
    """
    return math.ceil(math.log(1 - confidence) / math.log(1 - risk))


def threshold(
    scores: Sequence[float], held: Sequence[bool], *, risk: float, confidence: float, minimum: int
) -> Certificate | NotCertified:
    """The loosest threshold certified by fixed-sequence testing from strict to loose.

    `scores` and `held` are aligned, one a calibration cluster: the score of the decision and whether its fix held.
    Testing starts at the strictest threshold that leaves `minimum` clusters and stops at the first whose bound exceeds
    `risk`: each is tested only after all stricter ones passed, so that the level needs no correction (Bauer 1991).
    Equal scores stand or fall together. A score that is not a number is never above a threshold.

    Raises ValueError where the lengths differ, or where risk or confidence is not between 0 and 1.
    """
    if not (0 < risk < 1 and 0 < confidence < 1):
        raise ValueError(f"risk {risk} and confidence {confidence}: both must be above 0 and below 1")
    if len(scores) != len(held):
        raise ValueError(f"{len(scores)} scores and {len(held)} outcomes: give one outcome a score")
    ranked = sorted(((s, h) for s, h in zip(scores, held, strict=True) if not math.isnan(s)), key=lambda pair: -pair[0])
    best: Certificate | None = None
    for score, count, wrong in _steps(ranked):
        if count < minimum:
            continue
        bound = upper_bound(wrong, count, confidence=confidence)
        if bound > risk:
            return best or _refused(len(ranked), wrong, bound, risk=risk, confidence=confidence, seen=count)
        best = Certificate(
            threshold=score,
            clusters=count,
            wrong=wrong,
            bound=bound,
            coverage=count / len(scores),
            risk=risk,
            confidence=confidence,
        )
    if best is not None:
        return best
    needed = max(minimum, minimum_for(risk, confidence)) - len(ranked)
    return NotCertified(clusters=len(ranked), wrong=0, bound=1.0, needed=needed, risk=risk, confidence=confidence)


def certify(
    sent: Mapping[Target, Sequence[Sent]], *, risks: Mapping[Target, float], confidence: float
) -> dict[Target, Certificate | NotCertified]:
    """The certificate of each place, from every calibration cluster that was sent there.

    Places of the same risk are also tested together, as one sequence of scores: few clusters of each add up. Kinds of
    cluster that are clearly wrong too often in a place, by the lower bound of their share, are left out of it. That
    certificate counts where it lets more calibration clusters pass than those of the places alone, but for a place in which
    more than twice the risk of what passes is wrong. What it bounds is the share over all of them, not in each.
    """
    own = {target: _threshold(found, risks[target], confidence) for target, found in sent.items()}
    found = dict(own)
    for risk in sorted(set(risks.values())):
        group = tuple(target for target in sent if risks[target] == risk)
        worst = {target: _worst_kinds(sent[target], risk, confidence) for target in group}
        pool = {target: [each for each in sent[target] if each.kind not in worst[target]] for target in group}
        given = _threshold([each for target in group for each in pool[target]], risk, confidence)
        if not isinstance(given, Certificate) or (len(group) < 2 and not any(worst.values())):
            continue
        if given.clusters <= sum(each.clusters for target in group if isinstance(each := own[target], Certificate)):
            continue
        together = tuple(target for target in group if pool[target] or not sent[target])
        share = given.clusters / sum(len(sent[target]) for target in group)
        for target in together:
            passing = [each.right for each in pool[target] if each.score >= given.threshold]
            if len(passing) - sum(passing) <= 2 * risk * max(len(passing), 1):
                found[target] = given.model_copy(
                    update={"together": together, "without": worst[target], "coverage": share}
                )
    return found


def _worst_kinds(sent: Sequence[Sent], risk: float, confidence: float) -> tuple[str, ...]:
    wrong: dict[str, list[bool]] = defaultdict(list)
    for each in sent:
        wrong[each.kind].append(not each.right)
    bounds = {kind: lower_bound(sum(seen), len(seen), confidence=confidence) for kind, seen in wrong.items()}
    return tuple(sorted(kind for kind, bound in bounds.items() if bound > risk))


def _threshold(sent: Sequence[Sent], risk: float, confidence: float) -> Certificate | NotCertified:
    scores, held = [each.score for each in sent], [each.right for each in sent]
    return threshold(scores, held, risk=risk, confidence=confidence, minimum=minimum_for(risk, confidence))


def _steps(ranked: Sequence[tuple[float, bool]]) -> Iterator[tuple[float, int, int]]:
    """Each distinct score from high to low, with the clusters at or above it and the wrong ones among them."""
    wrong = 0
    for place, (score, held) in enumerate(ranked, start=1):
        wrong += not held
        if place == len(ranked) or ranked[place][0] != score:
            yield score, place, wrong


def _refused(clusters: int, wrong: int, bound: float, *, risk: float, confidence: float, seen: int) -> NotCertified:
    total = seen
    while upper_bound(wrong, total, confidence=confidence) > risk:
        total += 1
    needed = total - seen
    return NotCertified(clusters=clusters, wrong=wrong, bound=bound, needed=needed, risk=risk, confidence=confidence)
