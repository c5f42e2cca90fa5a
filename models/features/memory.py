"""Evidence for memory: it is about one user, or was said before."""

import re
from collections import Counter

import numpy as np

from models.features.context import HABIT
from models.features.material import Feature, Material, added_words, mean, served_by, share, shared_words, values_in
from models.similarity import cosines
from models.steps import answer_text, input_text, step_name, text_of, time_of
from store.records import Case, Episode, Span

NEIGHBOURS = 10
"""Nearest inputs of other users that are looked at."""
ALIKE = 0.5
"""Cosine from which an input counts as a neighbour ..."""
SAME = 0.8
"""... and for a prediction: there a like input may well mean another class."""
FEWEST = 3
"""Neighbours below which nothing is said of their content."""
MOST = 500
"""At most so many cases and so many satisfied traces are compared; the earliest by trace id, so that it is repeatable."""

FIRST_PERSON = re.compile(
    r"\b(?:my|mine|i prefer|i(?:['’]d| would) (?:rather|prefer|like)|i always|i never|from now on|as i (?:told|said)"
    r"|i (?:already )?told you|call me|i am|i['’]m|mein(?:e|en|em)?|ich|ab jetzt|mon|ma|mes|je préfère|mi|mis|prefiero)\b",
    re.IGNORECASE,
)
"""Words of a preference, in English, German, French and Spanish; other languages are not recognised, and count as none."""


def user_concentration(material: Material) -> float | None:
    """The top user's share of the cases minus their share of the traffic; -1 to 1.

    Cases of unknown users are left out. None below two cases with a user (one case is always one user), or where no
    satisfied trace has a user: then the traffic is not known. Example: 8 of 10 cases and 5 of 100 traces: 0.75.
    """
    failing = [case.episode.trace.user for case in material.cases if case.episode.trace.user]
    cases = {case.episode.trace.id for case in material.cases}
    satisfied = [episode.trace.user for episode in material.satisfied if episode.trace.id not in cases]
    if len(failing) < 2 or not any(satisfied):
        return None
    traffic = Counter(user for user in [*failing, *satisfied] if user)
    user, count = min(Counter(failing).items(), key=lambda item: (-item[1], item[0]))
    return count / len(failing) - traffic[user] / traffic.total()


def same_user(material: Material) -> float | None:
    """Probability that two cases are one user's, minus that of two satisfied traces; -1 to 1.

    Unlike `user_concentration` it does not grow by chance in a small cluster: the share of pairs that match, without
    replacement (Simpson's index). None as there. Example: 3 cases of ann and 3 of bob, among traces of a hundred users: 0.4.
    """
    cases = {case.episode.trace.id for case in material.cases}
    failing = Counter(case.episode.trace.user for case in material.cases if case.episode.trace.user)
    traffic = Counter(e.trace.user for e in material.satisfied if e.trace.user and e.trace.id not in cases)
    if failing.total() < 2 or not traffic:
        return None
    return _matching(failing) - _matching(traffic)


def cross_user_conflict(material: Material) -> float | None:
    """Among the 10 nearest inputs of other users with a satisfied trace, share served the very answer; mean, 0 to 1.

    High: others are content with what this user corrects. Near: cosine of at least 0.5, of a prediction 0.8. None
    where no case has a user with three such neighbours. Example: ten others ask the same and are content with the
    same answer: 1.
    """
    cases = [
        (case, step) for case, step in zip(material.cases, material.steps, strict=True) if case.episode.trace.user
    ][:MOST]
    others = sorted((item for item in material.satisfied if item.trace.user), key=lambda item: item.trace.id)[:MOST]
    if not cases or not others:
        return None
    near = cosines([input_text(case.episode) for case, _ in cases], [input_text(item) for item in others])
    return mean(_agreement(case, step, others, near[row]) for row, (case, step) in enumerate(cases))


def users_differ(material: Material) -> float | None:
    """Mean share of other users' corrections of like answers that want something else altogether; 0 to 1.

    Like: an input with a cosine of at least 0.5. Something else: no word in common among those each correction adds, but for
    those that more than half of the other users add. None below three users with a correction in words. Example: asked where
    to pick up, each of eight users names another shop, whether or not in the same sentence: 1.
    """
    said = [
        (case, case.episode.trace.user, added_words(items[-1], case.episode))
        for case, items in zip(material.cases, material.corrections, strict=True)
        if items and not items[-1].is_label and case.episode.trace.user
    ][:MOST]
    common = shared_words([(user, words) for _, user, words in said])
    wanted = [(case, words - (both or set())) for (case, _, words), both in zip(said, common, strict=True) if words]
    if len({case.episode.trace.user for case, _ in wanted}) < FEWEST:
        return None
    asked = [input_text(case.episode) for case, _ in wanted]
    near = cosines(asked, asked) >= ALIKE
    return mean(
        share(
            bool(words and theirs) and not words & theirs
            for at, (other, theirs) in enumerate(wanted)
            if near[row, at] and _is_other(other.episode, case)
        )
        for row, (case, words) in enumerate(wanted)
    )


def said_before(material: Material) -> float | None:
    """Share of cases whose corrected value stands in an earlier trace of that user and not in this one's input; 0 to 1.

    The label of a prediction is no value.
    None where no case has a user, a time, a corrected value of 3 characters or more, and an earlier trace.
    Example: the user wrote "size 42" last week, was offered 44 today and corrects it to "size 42": 1.
    """
    earlier: dict[str, list[tuple[int, str]]] = {}
    for episode in material.episodes:
        time = time_of(episode)
        if episode.trace.user and time is not None:
            earlier.setdefault(episode.trace.user, []).append((time, _words_of(episode)))
    return share(_said(case, value, earlier) for case, value in _corrected(material))


def stale_read(material: Material) -> float | None:
    """Share of cases with a memory read in which some record holds what was wrongly served and none the correction; 0 to 1.

    None where no case has both a memory read and a correction. Example: memory says "Berlin", the user "Hamburg": 1.
    """
    return share(_stale(material.cases[place], place, material) for place in range(len(material.cases)))


def first_person(material: Material) -> float | None:
    """Share of the cases with words whose words speak of the user's own (my, I prefer, always for me); 0 to 1.

    None where nobody said anything in words. Example: "I prefer the aisle": 1.
    """
    return share(speaks_of_self(words) for words in material.said if words)


def speaks_of_self(words: str) -> bool:
    """Whether somebody says what holds for themselves.

    >>> speaks_of_self("the aisle as always for me"), speaks_of_self("always ask for the order number")
    (True, False)
    """
    return FIRST_PERSON.search(words) is not None or HABIT.search(words) is not None


def _agreement(
    case: Case, step: Span | None, others: list[Episode], near: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> float | None:
    component = step_name(step) if step else None
    served = served_by(case.episode, component) if component else answer_text(case.episode)
    order = np.argsort(-near, kind="stable")
    alike = SAME if step is not None and step.kind == "predict" else ALIKE
    found = [others[place] for place in order if near[place] >= alike and _is_other(others[place], case)][:NEIGHBOURS]
    answers = [served_by(item, component) if component else answer_text(item) for item in found]
    said = [answer for answer in answers if answer is not None]
    return share(_folded(answer) == _folded(served) for answer in said) if len(said) >= FEWEST else None


def _matching(counts: Counter[str]) -> float:
    n = counts.total()
    return sum(k * (k - 1) for k in counts.values()) / (n * (n - 1)) if n > 1 else 0.0


def _is_other(episode: Episode, case: Case) -> bool:
    return episode.trace.user != case.episode.trace.user


def _corrected(material: Material) -> list[tuple[Case, str]]:
    pairs = zip(material.cases, material.corrections, strict=True)
    return [(case, items[-1].corrected) for case, items in pairs if items and not items[-1].is_label]


def _said(case: Case, value: str, earlier: dict[str, list[tuple[int, str]]]) -> bool | None:
    time = time_of(case.episode)
    if time is None or len(value) < 3:
        return None
    texts = [text for when, text in earlier.get(case.episode.trace.user or "", ()) if when < time]
    if not texts:
        return None
    sought = _folded(value)
    return any(sought in text for text in texts) and sought not in _folded(input_text(case.episode))


def _stale(case: Case, place: int, material: Material) -> bool | None:
    reads = [text_of(record) for span in case.episode.spans for record in span.memories]
    corrections = material.corrections[place]
    if not reads or not corrections or not corrections[-1].served or corrections[-1].is_label:
        return None
    served, corrected = _folded(corrections[-1].served), _folded(corrections[-1].corrected)
    whole = [_folded(text) for text in reads]
    values = [value for span in case.episode.spans for record in span.memories for value in values_in(record)]
    wrong = any(served in text or text in served for text in whole) or any(value in served for value in values)
    right = any(corrected in text for text in whole) or any(value in corrected for value in values)
    return wrong and not right


def _words_of(episode: Episode) -> str:
    turns = [text_of(span.input) for span in episode.spans if span.kind == "user"]
    return _folded("\n".join([text_of(episode.trace.input), *turns]))


def _folded(text: str | None) -> str:
    return " ".join((text or "").split()).casefold()


FEATURES: dict[str, Feature] = {
    "user_concentration": user_concentration,
    "same_user": same_user,
    "cross_user_conflict": cross_user_conflict,
    "users_differ": users_differ,
    "said_before": said_before,
    "stale_read": stale_read,
    "first_person": first_person,
}
