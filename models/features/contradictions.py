"""Corrections that contradict each other: one question, two right answers for everybody."""

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from models.conflicts import other_number
from models.corrections import Comparison, comparisons
from models.features.material import Material, share
from models.features.memory import speaks_of_self
from models.steps import step_name, text_of
from models.write_gate import contradict, denies_part
from store.records import Case, Episode
from store.records.identity import canonical_json

SHORT = 4
"""Words of an answer up to which it names a thing: two without a common word are two things."""
FEWEST = 2
"""Users who say one thing of everybody's answer before what other users say contradicts it: a single one may err."""

_YOURS = re.compile(
    r"\b(?:your|yours|dein\w*|ihr(?:e|en|em|er|es)?|votre|vos|ton|tes|su|sus|tu|tus)\b|\d{4}", re.IGNORECASE
)
"""Words and numbers of an answer that is about what its user alone has."""


@dataclass(frozen=True)
class _Said:
    """A right answer to a question, and by whom."""

    trace_id: str
    text: str
    user: str | None
    """Who said it of a trace of their own; None: somebody else, such as a reviewer."""


def contradiction(material: Material) -> float | None:
    """Share of the corrected cases whose corrections contradict each other: one question, two right answers; 0 to 1.

    Only what is said of one step, or of the answer as a whole, is compared. Within a trace, and between traces of one user
    (or of unknown ones) with the same input; what two users want differently for themselves is no contradiction.
    What others than its user say of a trace, such as reviewers, holds for everybody: it is compared over all users, in
    this cluster and in what failed beside it, and contradicts where labels differ, one text denies the other or names
    another number, or two short answers share no word. So is what users say of the same answer to the same question, if
    two users or more stand on each side, it is about nothing of their own, and one side denies the other or names another
    number. None where nothing was corrected. Example: of "can I return a sale item" six users say "within 30 days", six
    "never": 1.
    """
    disputed = {case.failure.trace_id for case in contradicting(material)}
    corrected = [case for case, items in zip(material.cases, material.corrections, strict=True) if items]
    return share(case.failure.trace_id in disputed for case in corrected)


def contradicting(material: Material) -> list[Case]:
    """The corrected cases whose corrections contradict each other, those of one question side by side."""
    answers: dict[tuple[str, str], set[str]] = defaultdict(set)
    about: dict[str, set[tuple[str, str]]] = {}
    asked: dict[str, list[Case]] = defaultdict(list)
    for case, differing in zip(material.cases, material.corrections, strict=True):
        if not differing:
            continue
        asked[_question(case, differing[-1])].append(case)
        for item in comparisons(case.episode, meanings={}, out_of_scope=material.deployment.models):
            thing = (_question(case, item), _place(case.episode, item))
            answers[thing].add(" ".join(item.corrected.split()).casefold())
            about.setdefault(case.failure.trace_id, set()).add(thing)
    disputed = _disputed(material)
    return [
        case for cases in asked.values() for case in cases
        if case.failure.trace_id in disputed
        or any(len(answers[thing]) > 1 for thing in about.get(case.failure.trace_id, ()))
    ]  # fmt: skip


def _question(case: Case, item: Comparison) -> str:
    trace, asked = case.episode.trace, _asked(case.episode, item)
    return canonical_json([trace.user, asked]) if asked else trace.id


def _asked(episode: Episode, item: Comparison) -> JsonValue:
    return item.span.input if item.span and item.span.kind == "predict" else episode.trace.input


def _place(episode: Episode, item: Comparison) -> str:
    """What a correction is about: the answer as a whole, or a step by its name and turn among those of that name."""
    if item.span is None:
        return ""
    name = step_name(item.span)
    turns = [span.external_id for span in episode.spans if step_name(span) == name]
    return f"{name} {turns.index(item.span.external_id)}"


def _disputed(material: Material) -> set[str]:
    """Traces whose correction is contradicted by another one of that kind to the same question, over all users."""
    reviewed: dict[tuple[str, str, bool], list[_Said]] = defaultdict(list)
    wanted: dict[tuple[str, str], list[_Said]] = defaultdict(list)
    for episode, item in _said(material):
        question, place = _folded(text_of(_asked(episode, item))), _place(episode, item)
        principal, user = item.feedback.principal, episode.trace.user
        if not question:
            continue
        if principal not in (None, user):
            reviewed[question, place, item.is_label].append(_Said(episode.trace.id, item.corrected, None))
        elif user is not None and not item.is_label and _is_general(item.corrected):
            wanted[question, _folded(item.served)].append(_Said(episode.trace.id, item.corrected, user))
    found: set[str] = set()
    for (_, _, is_label), answers in reviewed.items():
        found |= _against_each_other(answers, is_label=is_label)
    for answers in wanted.values():
        found |= _users_against_each_other(answers)
    return found


def _said(material: Material) -> Iterator[tuple[Episode, Comparison]]:
    known = {case.episode.trace.id for case in material.cases}
    beside = [each for each in material.batch if each.trace.id not in known]
    for episode in (*(case.episode for case in material.cases), *beside):
        for item in comparisons(episode, meanings={}, out_of_scope=material.deployment.models):
            yield episode, item


def _against_each_other(answers: list[_Said], *, is_label: bool) -> set[str]:
    different = {_folded(each.text): each.text for each in answers}
    against = {
        one
        for one, text in different.items()
        if any(one != other and (is_label or _denies(text, words)) for other, words in different.items())
    }
    return {each.trace_id for each in answers if _folded(each.text) in against}


def _users_against_each_other(answers: list[_Said]) -> set[str]:
    users: dict[str, set[str | None]] = defaultdict(set)
    for each in answers:
        users[_folded(each.text)].add(each.user)
    texts = sorted(users)
    denied = {one: [other for other in texts if one != other and _excludes(one, other)] for one in texts}
    against = set()
    for one, others in denied.items():
        theirs = set().union(*(users[other] for other in others))
        mine = set().union(*(users[same] for same in texts if set(others) & set(denied[same])))
        if len(mine - theirs) >= FEWEST and len(theirs - mine) >= FEWEST:
            against.add(one)
    return {each.trace_id for each in answers if _folded(each.text) in against}


def _is_general(text: str) -> bool:
    """Whether a right answer is about nothing that its user alone has or wants."""
    return _YOURS.search(text) is None and not speaks_of_self(text)


def _excludes(one: str, other: str) -> bool:
    return denies_part(one, other) or other_number(one, other) is not None


def _denies(one: str, other: str) -> bool:
    if contradict(one, other) or other_number(one, other):
        return True
    mine, theirs = set(_folded(one).split()), set(_folded(other).split())
    return max(len(mine), len(theirs)) <= SHORT and not mine & theirs


def _folded(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .!?,;")
