"""How much evidence there is, from how many, and whether it agrees with itself."""

from collections import Counter, defaultdict

from pydantic import JsonValue

from models.conflicts import other_number
from models.corrections import Comparison, comparisons
from models.features.material import Feature, Material, share
from models.steps import text_of, time_of
from models.write_gate import contradict
from store.records import Case, Episode
from store.records.identity import canonical_json

UNKNOWN = "unknown"
SHORT = 4
"""Words of an answer up to which it names a thing: two without a common word are two things."""
DAY_US = 86_400_000_000


def n_eff(material: Material) -> float | None:
    """Effective number of failures: the sum over sources of min(failures, `cap_per_source`); from 0.

    All failures of an unknown source count as one source's. Example: 9 failures of one user and 2 of another: 5 + 2 = 7.
    """
    counts = Counter(case.failure.source for case in material.cases)
    return float(sum(min(count, material.policy.cap_per_source) for count in counts.values()))


def sources(material: Material) -> float | None:
    """Distinct known sources; 1 where all are unknown, since somebody said it; from 0.

    Example: alice, bob and two unknown: 2.
    """
    known = {case.failure.source for case in material.cases} - {UNKNOWN}
    return float(len(known) or min(1, len(material.cases)))


def authorities(material: Material) -> float | None:
    """Distinct sources that are an authority; from 0. Example: a logged-in reviewer and ten users: 1."""
    return float(len({case.failure.source for case in material.cases if case.failure.authority}))


def days(material: Material) -> float | None:
    """Distinct days, in UTC, on which the failing traces happened; from 1. None where no trace has a time.

    Example: Monday 23:00 and Tuesday 01:00: 2.
    """
    times = [time for case in material.cases if (time := time_of(case.episode)) is not None]
    return float(len({time // DAY_US for time in times})) if times else None


def answered(material: Material) -> float | None:
    """Share of the cases with a correction that says what would have been right; 0 to 1.

    None for a cluster without cases. Example: 3 of 4 users wrote the right answer, one only a thumb: 0.75.
    """
    return share(bool(items) for items in material.corrections)


def contradiction(material: Material) -> float | None:
    """Share of the corrected cases whose corrections contradict each other: one question, two right answers; 0 to 1.

    Within a trace, and between traces of one user (or of unknown ones) with the same input; what two users want
    differently for themselves is no contradiction, and neither is a step's label beside the right words of the answer.
    What others than its user say of a trace, such as reviewers, holds for everybody: it is compared over all users, in
    this cluster and in what failed beside it, and contradicts where labels differ, one text denies the other or names
    another number, or two short answers share no word. None where nothing was corrected. Example: one reviewer says
    `refund` of a trace, another `exchange`: 1.
    """
    disputed = {case.failure.trace_id for case in contradicting(material)}
    corrected = [case for case, items in zip(material.cases, material.corrections, strict=True) if items]
    return share(case.failure.trace_id in disputed for case in corrected)


def contradicting(material: Material) -> list[Case]:
    """The corrected cases whose corrections contradict each other, those of one question side by side."""
    answers: dict[tuple[str, bool], set[str]] = defaultdict(set)
    asked: dict[str, list[Case]] = defaultdict(list)
    for case, differing in zip(material.cases, material.corrections, strict=True):
        if differing:
            key = _question(case, differing[-1])
            asked[key].append(case)
            for is_label, answer in _answers(case, material):
                answers[key, is_label].add(answer)
    reviewed = _reviewed(material)
    return [
        case for key, cases in asked.items() for case in cases
        if any(len(answers[key, is_label]) > 1 for is_label in (False, True)) or case.failure.trace_id in reviewed
    ]  # fmt: skip


def _question(case: Case, item: Comparison) -> str:
    trace, asked = case.episode.trace, _asked(case.episode, item)
    return canonical_json([trace.user, asked]) if asked else trace.id


def _asked(episode: Episode, item: Comparison) -> JsonValue:
    return item.span.input if item.span and item.span.kind == "predict" else episode.trace.input


def _reviewed(material: Material) -> set[str]:
    """Traces whose correction, by somebody else than their user, is contradicted by another of that kind to the same question."""
    said: dict[tuple[str, bool], list[tuple[str, str]]] = defaultdict(list)
    known = {case.episode.trace.id for case in material.cases}
    beside = [each for each in material.batch if each.trace.id not in known]
    for episode in (*(case.episode for case in material.cases), *beside):
        for item in comparisons(episode, meanings={}, out_of_scope=material.deployment.models):
            question = _folded(text_of(_asked(episode, item)))
            if question and item.feedback.principal not in (None, episode.trace.user):
                said[question, item.is_label].append((episode.trace.id, item.corrected))
    found = set()
    for (_, is_label), answers in said.items():
        different = {_folded(text): text for _, text in answers}
        against = {
            one
            for one, text in different.items()
            if any(one != other and (is_label or _denies(text, words)) for other, words in different.items())
        }
        found |= {id_ for id_, text in answers if _folded(text) in against}
    return found


def _denies(one: str, other: str) -> bool:
    if contradict(one, other) or other_number(one, other):
        return True
    mine, theirs = set(_folded(one).split()), set(_folded(other).split())
    return max(len(mine), len(theirs)) <= SHORT and not mine & theirs


def _folded(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .!?,;")


def _answers(case: Case, material: Material) -> set[tuple[bool, str]]:
    """Each right answer, and whether it is a label."""
    found = comparisons(case.episode, meanings={}, out_of_scope=material.deployment.models)
    return {(item.is_label, " ".join(item.corrected.split()).casefold()) for item in found}


def attempts(material: Material) -> float | None:
    """Earlier corrections of this cluster, over all targets, that failed to hold; from 0. Example: a rule, then a retrain: 2."""
    return float(sum(material.deployment.attempts.values()))


FEATURES: dict[str, Feature] = {
    "n_eff": n_eff,
    "sources": sources,
    "authorities": authorities,
    "days": days,
    "answered": answered,
    "contradiction": contradiction,
    "attempts": attempts,
}
