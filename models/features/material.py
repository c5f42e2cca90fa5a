"""A cluster's cases, read once for all features."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

from pydantic import JsonValue

from models.corrections import Comparison, differing
from models.deployment import Deployment
from models.error_class import error_class
from models.fingerprint import failing_step, fingerprint
from models.steps import error_text, input_text, label_in, step_name, text_of, tool_calls
from store.records import Case, Episode, Failure, Fingerprint, Policy, Span

_SENTENCE = re.compile(r"[.!?;:|]\s+|\n+")
_WORD = re.compile(r"\w+")
_IDENTIFIER = 4
"""Digits of a word from which it is an identifier."""
_NAMES = frozenset({"id", "predicate", "subject", "key", "name", "type", "scope", "source", "user"})
"""Fields of a record that say what it is about, not what it says."""
SIBLINGS = 100
"""Failures beside a cluster that are looked at."""
_READ_LIMIT = 20_000
"""Characters of a text that are split into sentences."""


@dataclass(frozen=True)
class Material:
    """What every feature reads: the cluster's cases, satisfied traces beside them, what there is and what is allowed."""

    cases: tuple[Case, ...]
    satisfied: tuple[Episode, ...]
    deployment: Deployment
    policy: Policy
    batch: tuple[Episode, ...] = ()
    """What else failed in the same time, in whatever cluster."""

    @cached_property
    def steps(self) -> tuple[Span | None, ...]:
        """The failing step of each case; None: the trace as a whole."""
        return tuple(failing_step(case.episode, case.signals) for case in self.cases)

    @cached_property
    def failing_calls(self) -> tuple[tuple[Case, Span], ...]:
        """The cases whose failing step is a tool call, with that call."""
        pairs = zip(self.cases, self.steps, strict=True)
        return tuple((case, step) for case, step in pairs if step is not None and step.kind == "tool")

    @cached_property
    def error_classes(self) -> tuple[str, ...]:
        """The error class of each case's failing step, else of its trace."""
        return tuple(
            error_class(error_text(step), step.error_type) if step else error_class(case.episode.trace.error)
            for case, step in zip(self.cases, self.steps, strict=True)
        )

    @cached_property
    def corrections(self) -> tuple[tuple[Comparison, ...], ...]:
        """Of each case: the corrections that differ from what was served, earliest first."""
        return tuple(differing(case.episode, case.signals) for case in self.cases)

    @cached_property
    def said(self) -> tuple[str, ...]:
        """Of each case: the words people gave it, comments and corrected free text; empty: none."""
        found = []
        for case, corrections in zip(self.cases, self.corrections, strict=True):
            comments = [feedback.comment for feedback in case.episode.feedback if feedback.comment]
            found.append("\n".join([*comments, *(item.corrected for item in corrections if not item.is_label)]))
        return tuple(found)

    @cached_property
    def episodes(self) -> tuple[Episode, ...]:
        """The cases' episodes and the satisfied ones, each trace once."""
        known = {episode.trace.id: episode for episode in self.satisfied}
        known |= {case.episode.trace.id: case.episode for case in self.cases}
        return tuple(known.values())

    @cached_property
    def calls(self) -> tuple[Span, ...]:
        """Every tool call that is known, of cases and satisfied traces."""
        return tuple(span for episode in self.episodes for span in tool_calls(episode.spans))

    def with_siblings(self) -> "Material":
        """This cluster, or, where nobody said what would have been right, with the failures beside it where somebody did.

        Beside it: the same last act or none, the same intent, a channel of its own, and no step failed there either.
        """
        if not self.cases or len(self.cases) > SIBLINGS or any(self.corrections):
            return self
        mine = fingerprint(self.cases[0])
        if mine.kind != "agent" or mine.error_class != "none":
            return self
        channels = {case.episode.trace.channel or "" for case in self.cases}
        known = {case.episode.trace.id for case in self.cases}
        beside = [_as_case(each) for each in self.batch if each.trace.id not in known and differing(each)]
        alike = [case for case in beside if _is_beside(fingerprint(case), mine, channels)]
        return replace(self, cases=(*self.cases, *alike[:SIBLINGS])) if alike else self


class Feature(Protocol):
    """One feature: a number in the range its docstring gives; None: not measured, which is never zero."""

    def __call__(self, material: Material) -> float | None: ...


def _as_case(episode: Episode) -> Case:
    source = episode.trace.user or "unknown"
    return Case(
        failure=Failure(trace_id=episode.trace.id, picked_us=0, probability=1.0, source=source), episode=episode
    )


def _is_beside(other: Fingerprint, mine: Fingerprint, channels: Collection[str]) -> bool:
    return (other.kind, other.error_class, other.intent) == ("agent", "none", mine.intent) and other.scope in channels


def share(values: Iterable[bool | None]) -> float | None:
    """Share of True among what was measured; None where nothing was.

    >>> share([True, False, None]), share([None])
    (0.5, None)
    """
    return mean(None if value is None else float(value) for value in values)


def mean(values: Iterable[float | None]) -> float | None:
    """Mean of what was measured; None where nothing was.

    >>> mean([1.0, None, 0.5]), mean([])
    (0.75, None)
    """
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def sentences(text: str) -> list[str]:
    """The sentences of a text, and its lines; empty ones are left out.

    >>> sentences("Wrong. Always ask first!")
    ['Wrong', 'Always ask first!']
    """
    return [part for part in _SENTENCE.split(text[:_READ_LIMIT]) if part.strip()]


def values_in(record: JsonValue) -> list[str]:
    """The texts of three characters and more that a record holds, folded; of an object its values, not their names.

    >>> values_in({"predicate": "size", "value": "EU 42"}), values_in("In Paris.")
    (['eu 42'], ['in paris.'])
    """
    if isinstance(record, dict):
        named = [value for name, value in record.items() if name not in _NAMES]
        return [text for value in named for text in values_in(value)]
    if isinstance(record, list):
        return [text for value in record for text in values_in(value)]
    text = " ".join(text_of(record).split()).casefold()
    return [text] if len(text) >= 3 else []


def added_words(item: Comparison, episode: Episode) -> frozenset[str]:
    """The words, folded, that a correction has and neither what was served nor what was asked.

    Words with four digits and more are left out: an identifier is of one case, and nobody's wish.
    """
    added = _words(item.corrected) - _words(item.served) - _words(input_text(episode))
    return frozenset(word for word in added if sum(letter.isdigit() for letter in word) < _IDENTIFIER)


def shared_words(added: Sequence[tuple[str, frozenset[str]]]) -> list[frozenset[str] | None]:
    """Of each user's words those that more than half of the other users' have too; None: nobody else said anything.

    >>> each = [("ann", frozenset({"want", "fish"})), ("bob", frozenset({"want", "tofu"})), ("cy", frozenset({"want"}))]
    >>> [sorted(words or ()) for words in shared_words(each)]
    [['want'], ['want'], ['want']]
    """
    every = Counter(word for _, words in added for word in words)
    own: dict[str, Counter[str]] = defaultdict(Counter)
    count = Counter(user for user, _ in added)
    for user, words in added:
        own[user].update(words)
    found: list[frozenset[str] | None] = []
    for user, words in added:
        others = len(added) - count[user]
        both = (word for word in words if 2 * (every[word] - own[user][word]) > others)
        found.append(frozenset(both) if others else None)
    return found


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))


def served_by(episode: Episode, component: str) -> str | None:
    """What the step of that name answered in this episode, a label for a prediction; None: it has no such step."""
    for span in reversed(episode.spans):
        if step_name(span) == component:
            return label_in(span.output) if span.kind == "predict" else text_of(span.output)
    return None
