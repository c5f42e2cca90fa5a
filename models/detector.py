"""Did this trace fail? Every signal in it, and the belief they add up to.

The single signals are in `models.signals` (what was said of it) and `models.behaviour` (how it went).
"""

from collections.abc import Iterable, Mapping

from models.behaviour import (
    Abandoned,
    Escalation,
    Objection,
    Refusal,
    RepeatedCall,
    StepError,
    TraceError,
    Truncation,
    UserRetry,
)
from models.combination import HAND, Combination, probability, strongest
from models.retry import RETRIES
from models.signals import (
    CorrectedOutput,
    Detector,
    Evaluation,
    ExplicitFeedback,
    LateLabel,
    MachineJudge,
    UnreadFeedback,
)
from store.records import Episode, Meaning, Signal

__all__ = ["BEHAVIOURAL", "DETECTORS", "Detector", "detect", "is_failure", "judge"]

DETECTORS: tuple[Detector, ...] = (
    ExplicitFeedback(),
    CorrectedOutput(),
    LateLabel(),
    Evaluation(),
    MachineJudge(),
    UnreadFeedback(),
    StepError("tool_error", tools=True),
    StepError("step_error", tools=False),
    TraceError(),
    RepeatedCall(),
    Escalation(),
    Refusal(),
    Truncation(),
    UserRetry(),
    Objection(),
    Abandoned(),
    *RETRIES,
)

BEHAVIOURAL = frozenset(
    {"tool_error", "step_error", "trace_error", "repeated_call", "escalation", "refusal", "truncation"}
    | {"user_retry", "objection", "abandoned", "asked_again", "asked_twice"}
)
"""Signals in how the trace went: recorded, and not counted, where an evaluation passed."""

THRESHOLD = 0.5
"""A trace at least so probably failed is picked up."""


def detect(
    episode: Episode, *, meanings: Mapping[str, Meaning], out_of_scope: Mapping[str, str | None] | None = None
) -> tuple[Signal, ...]:
    """Every signal in the episode, in the order of `DETECTORS`; empty: nothing speaks for or against it.

    `meanings`: feedback name to what it means. `out_of_scope`: model name to the label that means none of its classes.
    """
    labels = out_of_scope or {}
    return tuple(
        signal for detector in DETECTORS for signal in detector.detect(episode, meanings=meanings, out_of_scope=labels)
    )


def judge(signals: Iterable[Signal], combination: Combination = HAND) -> float:
    """Probability, 0 to 1, that the trace failed: the logistic of the prior and the weights.

    Of each detector its strongest word on either side counts once: what repeats itself is not new evidence.
    Where an evaluation passed, behavioural signals do not count.

    >>> round(judge(()), 2)
    0.18
    """
    return probability(strongest(tuple(signals), behavioural=BEHAVIOURAL), combination)


def is_failure(signals: Iterable[Signal], combination: Combination = HAND) -> bool:
    """Whether the trace is picked up: its probability of having failed is at least `THRESHOLD`."""
    return judge(signals, combination) >= THRESHOLD
