"""Judging a replay: was an answer right, and did the change repair more than it broke, against a control without it."""

import math
from collections.abc import Sequence

from pydantic import JsonValue
from scipy.stats import binom, binomtest

from models.router import HELD_IF_RIGHT
from models.schema import argument_schema, violations
from models.steps import text_of
from store.records.decisions import Fingerprint
from store.records.production import Episode, Record, Span
from store.records.replays import Outcome, ReplayResult, ReplayVerdict

ALPHA = 0.05
"""Of the one-sided tests on pairs."""
FEWEST = 3
"""Measured cases below which nothing is said of a change that repairs none."""


class ReplayJudgement(Record):
    """What a replay shows."""

    verdict: ReplayVerdict
    sentence: str
    numbers: dict[str, float | None]


def judge_answer(
    fingerprint: Fingerprint, episode: Episode, *, output: JsonValue, calls: Sequence[Span], is_case: bool,
    schema: JsonValue = None,
) -> Outcome:  # fmt: skip
    """Whether a replayed answer is right, as far as the cluster's own detector can tell.

    A neighbour is right where it is answered as before. A case that failed in a tool: where that tool is called without an
    error and in its schema. A case with a corrected output: where the answer holds it. Else it is not measured.
    """
    if not is_case:
        return "right" if _folded(output) == _folded(episode.trace.output) else "wrong"
    if fingerprint.kind == "tool":
        mine = [call for call in calls if call.name == fingerprint.component]
        return _tool_outcome(mine, schema) if mine else "not_measured"
    wanted = [said.corrected_output for said in episode.feedback if said.corrected_output is not None]
    if not wanted:
        return "not_measured"
    return "right" if _holds(output, wanted[-1]) else "wrong"


def judge_replay(results: Sequence[ReplayResult]) -> ReplayJudgement:
    """The verdict over both arms, each case by the majority of its repeats.

    `repairs`: exact McNemar one-sided, p <= .05 on the cases, and no significant harm on the neighbours. `harms`: p <= .05
    that neighbours break. `no_effect`: at least three cases measured, and none repaired that the control does not. In
    between it is not measured enough: the change goes by probation.
    """
    fixed, undone, both, cases = _pairs(results, "case")
    mended, broken, _, neighbours = _pairs(results, "neighbour")
    p_fix, p_harm = _mcnemar(fixed, undone), _mcnemar(broken, mended)
    ratio = _likelihood_ratio(fixed + both, cases, undone + both)
    missing = sum(1 for each in results if each.outcome == "not_measured")
    numbers: dict[str, float | None] = {
        "cases": cases, "fixed": fixed + both, "control_fixed": undone + both, "neighbours": neighbours, "broken": broken,
        "mended": mended, "not_measured": missing, "p_fix": p_fix, "p_harm": p_harm, "likelihood_ratio": ratio,
    }  # fmt: skip
    said = f"{fixed + both} of {cases} cases right ({undone + both} without the change)"
    said += f", {broken} of {neighbours} satisfied ones answered worse" if neighbours else ", no satisfied one measured"
    said += f"; {missing} answers not measured" if missing else ""
    verdict = _verdict(cases, fixed, p_fix, p_harm, broken)
    return ReplayJudgement(verdict=verdict, sentence=f"{_WORDS[verdict]}: {said}", numbers=numbers)


_WORDS: dict[ReplayVerdict, str] = {
    "repairs": "it repairs",
    "harms": "it does harm",
    "no_effect": "it repairs nothing",
    "not_measured": "not measured enough to tell",
}


def _verdict(cases: int, fixed: int, p_fix: float | None, p_harm: float | None, broken: int) -> ReplayVerdict:
    if p_harm is not None and p_harm <= ALPHA and broken:
        return "harms"
    if p_fix is not None and p_fix <= ALPHA:
        return "repairs"
    return "no_effect" if cases >= FEWEST and fixed == 0 else "not_measured"


def _pairs(results: Sequence[ReplayResult], role: str) -> tuple[int, int, int, int]:
    """Right only with the change, right only without it, right both times, and how many were measured both times."""
    votes: dict[str, dict[str, list[bool]]] = {}
    for each in results:
        if each.role == role and each.outcome != "not_measured":
            arms = votes.setdefault(each.trace_id, {})
            arms.setdefault(each.arm, []).append(each.outcome == "right")
    pairs = [(_most(arms["fix"]), _most(arms["control"])) for arms in votes.values() if len(arms) == 2]
    return pairs.count((True, False)), pairs.count((False, True)), pairs.count((True, True)), len(pairs)


def _most(votes: Sequence[bool]) -> bool:
    return 2 * sum(votes) > len(votes)


def _mcnemar(better: int, worse: int) -> float | None:
    """Exact, one-sided; None: no pair differs.

    >>> round(_mcnemar(5, 0), 3), round(_mcnemar(7, 1), 3)
    (0.031, 0.035)
    """
    if better + worse == 0:
        return None
    return float(binomtest(better, better + worse, 0.5, alternative="greater").pvalue)


def _likelihood_ratio(right: int, cases: int, control: int) -> float | None:
    """How much likelier these successes are for a fix in the right place than for no change at all; None: no case."""
    if cases == 0:
        return None
    idle = (control + 0.5) / (cases + 1)
    return math.exp(float(binom.logpmf(right, cases, HELD_IF_RIGHT) - binom.logpmf(right, cases, idle)))


def _tool_outcome(calls: Sequence[Span], schema: JsonValue) -> Outcome:
    declared = argument_schema(schema)
    for call in calls:
        given: JsonValue = call.input
        if call.error or (declared is not None and isinstance(given, dict) and violations(given, declared)):
            return "wrong"
    return "right"


def _holds(output: JsonValue, wanted: JsonValue) -> bool:
    """Whether the answer is, or holds, what it should be."""
    if isinstance(wanted, dict):
        return all(_folded(value) in _folded(output) for value in wanted.values())
    return _folded(wanted) in _folded(output) and bool(_folded(wanted))


def _folded(value: JsonValue) -> str:
    return " ".join(text_of(value).casefold().split()).strip(" .!?")
