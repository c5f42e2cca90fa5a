"""What a signal is made of, and the signals in what people and programs said of a trace.

A weight is the log-odds a signal adds to the belief that the trace failed; negative speaks for success. The weights
are set by hand until there are audits to fit them to. Signals in how the trace went are in `models.behaviour`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from models.corrections import TRUTH_NAMES, Comparison, comparisons, meaning_of, right_answer, verdict_label
from store.records import Episode, Feedback, Meaning, Signal, Span

DAY_US = 86_400_000_000


class Detector(Protocol):
    """One reason to believe that a trace failed, or did not: named, versioned, deterministic, never raising."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> int: ...

    def detect(
        self, episode: Episode, *, meanings: Mapping[str, Meaning], out_of_scope: Mapping[str, str | None]
    ) -> tuple[Signal, ...]: ...


def signal(
    detector: Detector,
    episode: Episode,
    weight: float,
    *,
    detail: str,
    span: Span | None = None,
    feedback: Feedback | None = None,
) -> Signal:
    """A signal of `detector`, dated by the feedback, else by the step, else by the trace."""
    trace = episode.trace
    times = (
        feedback.given_us if feedback else None,
        *((span.ended_us, span.started_us) if span else ()),
        trace.ended_us,
        trace.started_us,
    )
    return Signal(
        trace_id=trace.id,
        detector=detector.name,
        detector_version=detector.version,
        weight=weight,
        at_us=next((time for time in times if time is not None), None),
        span_id=span.id if span else None,
        feedback_id=feedback.id if feedback else None,
        detail=detail,
    )


def opinion(feedback: Feedback, meaning: Meaning, *, declared: bool) -> bool | None:
    """Whether the feedback calls the trace good (True) or bad (False); None: it does not say, or cannot be read.

    A label outranks a score: some systems give every label the score 0. Without a declared meaning a score above 1
    has no known scale, and is not guessed at.
    """
    said = verdict_label(feedback, meaning)
    if said is not None:
        return said
    score = feedback.score
    if score is None or not math.isfinite(score) or (not declared and score > 1):
        return None
    return score >= meaning.threshold if meaning.good == "high" else score <= meaning.threshold


def _opinions(episode: Episode, meanings: Mapping[str, Meaning]) -> list[tuple[Feedback, Meaning, bool]]:
    found = []
    for feedback in episode.feedback:
        meaning = meaning_of(feedback, meanings)
        good = opinion(feedback, meaning, declared=feedback.name in meanings)
        if good is not None:
            found.append((feedback, meaning, good))
    return found


@dataclass(frozen=True)
class ExplicitFeedback:
    """A person said that the answer was good or bad."""

    name: str = "feedback"
    version: int = 1
    bad: float = 5.0
    good: float = -3.0

    def detect(
        self, episode: Episode, *, meanings: Mapping[str, Meaning], out_of_scope: Mapping[str, str | None]
    ) -> tuple[Signal, ...]:
        return tuple(
            signal(
                self,
                episode,
                self.good if good else self.bad,
                detail=f"`{feedback.name}` is {'good' if good else 'bad'}",
                feedback=feedback,
            )
            for feedback, meaning, good in _opinions(episode, meanings)
            if meaning.kind == "person" and (feedback.source_kind != "judge" or feedback.name in meanings)
        )


@dataclass(frozen=True)
class MachineJudge:
    """A judging model said that the answer was good or bad: weaker than a person, and it does not outrank behaviour."""

    name: str = "judge"
    version: int = 1
    bad: float = 2.5
    good: float = -1.0

    def detect(
        self, episode: Episode, *, meanings: Mapping[str, Meaning], out_of_scope: Mapping[str, str | None]
    ) -> tuple[Signal, ...]:
        return tuple(
            signal(
                self,
                episode,
                self.good if good else self.bad,
                detail=f"judged {'good' if good else 'bad'} by `{feedback.name}`",
                feedback=feedback,
            )
            for feedback, meaning, good in _opinions(episode, meanings)
            if feedback.source_kind == "judge" and meaning.kind == "person" and feedback.name not in meanings
        )


@dataclass(frozen=True)
class Evaluation:
    """A check of the result failed or passed; a passed one outranks every signal in how the trace went."""

    name: str = "evaluation"
    version: int = 1
    failed: float = 5.0
    passed: float = -3.0

    def detect(
        self, episode: Episode, *, meanings: Mapping[str, Meaning], out_of_scope: Mapping[str, str | None]
    ) -> tuple[Signal, ...]:
        return tuple(
            signal(
                self,
                episode,
                self.passed if good else self.failed,
                detail=f"evaluation `{feedback.name}` {'passed' if good else 'failed'}",
                feedback=feedback,
            )
            for feedback, meaning, good in _opinions(episode, meanings)
            if meaning.kind == "evaluation"
        )


@dataclass(frozen=True)
class CorrectedOutput:
    """Somebody wrote what should have been answered; where it is what was answered, that speaks for success."""

    name: str = "correction"
    version: int = 1
    differs: float = 8.0
    equal: float = -4.0

    def detect(
        self, episode: Episode, *, meanings: Mapping[str, Meaning], out_of_scope: Mapping[str, str | None]
    ) -> tuple[Signal, ...]:
        return tuple(
            _compared(self, episode, item, self.differs if item.differs else self.equal)
            for item in comparisons(episode, meanings=meanings, out_of_scope=out_of_scope)
            if not is_late_label(episode, item)
        )


@dataclass(frozen=True)
class LateLabel:
    """The true label of a prediction arrived, more than a day after it or as a column of its own."""

    name: str = "late_label"
    version: int = 1
    differs: float = 8.0
    equal: float = -4.0

    def detect(
        self, episode: Episode, *, meanings: Mapping[str, Meaning], out_of_scope: Mapping[str, str | None]
    ) -> tuple[Signal, ...]:
        return tuple(
            _compared(self, episode, item, self.differs if item.differs else self.equal)
            for item in comparisons(episode, meanings=meanings, out_of_scope=out_of_scope)
            if is_late_label(episode, item)
        )


@dataclass(frozen=True)
class UnreadFeedback:
    """Feedback whose scale or words are not declared: weight 0, so that it is seen and nothing is guessed."""

    name: str = "unread_feedback"
    version: int = 1

    def detect(
        self, episode: Episode, *, meanings: Mapping[str, Meaning], out_of_scope: Mapping[str, str | None]
    ) -> tuple[Signal, ...]:
        read = {feedback.id for feedback, _, _ in _opinions(episode, meanings)}
        return tuple(
            signal(self, episode, 0.0, detail=f"set [feedback.{feedback.name}] to have it read", feedback=feedback)
            for feedback in episode.feedback
            if feedback.id not in read
            and (feedback.score is not None or feedback.label)
            and right_answer(feedback, meaning_of(feedback, meanings)) is None
        )


def is_late_label(episode: Episode, item: Comparison) -> bool:
    """Whether a correction is the true label of a prediction that came by itself, not somebody's edit of an answer."""
    if not item.is_label:
        return False
    given, started = item.feedback.given_us, episode.trace.started_us
    late = given is not None and started is not None and given - started > DAY_US
    return late or item.feedback.name.casefold() in TRUTH_NAMES


def _compared(detector: Detector, episode: Episode, item: Comparison, weight: float) -> Signal:
    detail = "differs from what was served" if item.differs else "is what was served"
    return signal(detector, episode, weight, detail=detail, span=item.span, feedback=item.feedback)
