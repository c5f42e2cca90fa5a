"""The gate of a learned router: against the router that decides, on decided clusters that neither was fitted to."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from models.cost_order import cheapest_order, expected_cost
from models.deployment import Deployment
from models.gate import growth, more
from models.learned_router import Fit, TrainingRow, fit_router, teaches_nothing
from models.router import PRIOR, RulePrior
from models.router_version import within
from models.sequential import mcnemar_one_sided, spent_alpha, wins_needed
from models.shadow import Shadowed
from store.records import Record, RouterGate

LEARNS_FROM = 100
"""Decided clusters before the rules have a rival."""
MORE = 10
"""Newly decided clusters after which the next candidate is fitted."""
MARGIN = 0.02
"""What a candidate must be better by: within two points the router that decides stays."""
ALPHA = 0.05
"""Of the exact one-sided McNemar test at the first look; later looks spend less."""


class ScoredRow(Record):
    """One decided cluster, with what two routers say of it that did not learn from it."""

    valid: frozenset[str]
    """Every right outcome."""
    champion: dict[str, float]
    challenger: dict[str, float]
    fresh: bool = False
    """Whether no version has learnt from it yet."""

    @property
    def was_right(self) -> bool:
        return _first(self.champion) in self.valid

    @property
    def is_right(self) -> bool:
        return _first(self.challenger) in self.valid


@dataclass(frozen=True)
class Candidate:
    """What the decided clusters teach, and whether it may decide."""

    fit: Fit
    gate: RouterGate


def too_few(rows: Sequence[TrainingRow]) -> str:
    """Why nothing can be learnt from these rows yet; empty: it can."""
    if len(rows) < LEARNS_FROM:
        return f"{len(rows)} decided clusters, a learned router needs {LEARNS_FROM}"
    return teaches_nothing(rows)


def candidate(
    rows: Sequence[TrainingRow],
    said: Sequence[Mapping[str, float] | None],
    *,
    champion: str,
    deployment: Deployment,
    look: int = 1,
    fresh: Sequence[bool] = (),
    prior: RulePrior = PRIOR,
) -> Candidate:
    """A router fitted to the rows and judged against what the champion `said` of each, None where it says nothing fair.

    Raises ValueError where the rows teach nothing.
    """
    fit = fit_router(rows, prior=prior)
    scored = [
        ScoredRow(valid=row.valid, champion=dict(was), challenger=within(now, deployment), fresh=is_fresh)
        for row, was, now, is_fresh in zip(rows, said, fit.out_of_fold, fresh or [False] * len(rows), strict=True)
        if was is not None
    ]
    return Candidate(fit, judge_router(scored, champion=champion, look=look))


def judge_router(rows: Sequence[ScoredRow], *, champion: str, look: int) -> RouterGate:
    """Whether the challenger decides from now on: right more often by over two points and not by chance, no more needless
    retrains, less expected cost, and no loss on the rows that are new.

    `look`: 1 for the first candidate against this champion and one more for each further one, which spends the error.
    """
    newly_right, newly_wrong = _flips(rows)
    fresh_right, fresh_wrong = _flips([row for row in rows if row.fresh])
    found = RouterGate(
        champion=champion,
        passed=False,
        reason="",
        rows=len(rows),
        right=sum(row.is_right for row in rows),
        champion_right=sum(row.was_right for row in rows),
        newly_right=newly_right,
        newly_wrong=newly_wrong,
        p=mcnemar_one_sided(newly_right, newly_wrong),
        alpha=spent_alpha(ALPHA, look),
        look=look,
        needless=sum(_is_needless(row.challenger, row.valid) for row in rows),
        champion_needless=sum(_is_needless(row.champion, row.valid) for row in rows),
        cost_min=_mean([_cost(row.challenger, row.valid) for row in rows]),
        champion_cost_min=_mean([_cost(row.champion, row.valid) for row in rows]),
        fresh_newly_right=fresh_right,
        fresh_newly_wrong=fresh_wrong,
    )
    missed = _missed(found)
    needed = f": it must {', '.join(missed)}" if missed else ""
    return found.model_copy(
        update={"passed": not missed, "reason": _compared(found) + needed, "to_yes": _to_yes(found) if missed else ""}
    )


def shadowed(rows: Sequence[ScoredRow]) -> Shadowed:
    """The champion is the router before, the challenger the version that decides."""
    newly_right, newly_wrong = _flips(rows)
    return Shadowed(judged=len(rows), lost=newly_wrong, won=newly_right)


def _missed(found: RouterGate) -> list[str]:
    """What it must do and does not."""
    conditions = (
        (found.newly_right - found.newly_wrong > MARGIN * found.rows, f"be better by over {MARGIN:.0%}"),
        (found.p <= found.alpha, f"reach p of at most {found.alpha:.4f} at look {found.look}"),
        (found.needless <= found.champion_needless, "retrain needlessly no more often"),
        (found.cost_min < found.champion_cost_min, "cost less"),
        (found.fresh_newly_wrong <= found.fresh_newly_right, "not lose on the clusters that are new"),
    )
    return [said for holds, said in conditions if not holds]


def _compared(found: RouterGate) -> str:
    p = f"p {found.p:.4f}" if found.p >= 0.0001 else "p < 0.0001"
    return (
        f"right out of fold on {found.right} of {found.rows} decided clusters, {found.champion} on {found.champion_right} "
        f"({found.newly_right} won, {found.newly_wrong} lost, {p} at look {found.look}); needless retrains "
        f"{found.needless} to {found.champion_needless}, {found.cost_min:.1f} to {found.champion_cost_min:.1f} minutes a cluster"
    )


def _to_yes(found: RouterGate) -> str:
    ways = []
    alpha, c, b = spent_alpha(ALPHA, found.look + 1), found.newly_right, found.newly_wrong
    missing = max(wins_needed(b, alpha), b + math.floor(MARGIN * found.rows) + 1) - c
    if missing > 0:
        ways.append(f"{missing} more decided clusters that only the learned router gets right")
        if c - b > MARGIN * found.rows:
            factor = growth(lambda k: wins_needed(round(b * k), alpha) <= int(c * k))
            ways[-1] += f", or decide {more(found.rows, factor)} at this rate"
    if found.needless > found.champion_needless:
        ways.append(
            f"decide more of what looks like weights: it retrains needlessly {found.needless} times, not {found.champion_needless}"
        )
    if found.cost_min >= found.champion_cost_min:
        ways.append("decide more clusters in the places where its mistakes are dear (memory, tooling, weights)")
    if found.fresh_newly_wrong > found.fresh_newly_right:
        ways.append(
            f"{found.fresh_newly_wrong - found.fresh_newly_right} more new clusters that only the learned router gets right"
        )
    return "; ".join(ways) or f"the next look, {MORE} decided clusters from now"


def _flips(rows: Sequence[ScoredRow]) -> tuple[int, int]:
    """Newly right and newly wrong."""
    return (
        sum(row.is_right and not row.was_right for row in rows),
        sum(row.was_right and not row.is_right for row in rows),
    )


def _is_needless(found: Mapping[str, float], valid: frozenset[str]) -> bool:
    return _first(found) == "weights" and "weights" not in valid


def _cost(found: Mapping[str, float], valid: frozenset[str]) -> float:
    """Minutes, where each right outcome is as likely to be the one that would hold."""
    return expected_cost(cheapest_order(found), dict.fromkeys(sorted(valid), 1 / len(valid)))


def _first(found: Mapping[str, float]) -> str:
    return max(found, key=lambda name: found[name])


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0
