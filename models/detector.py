"""Did this trace fail? Every signal in it, and the belief they add up to.

The single signals are in `models.signals` (what was said of it) and `models.behaviour` (how it went).
"""

import math
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
)

BEHAVIOURAL = frozenset(
    {"tool_error", "step_error", "trace_error", "repeated_call", "escalation", "refusal", "truncation"}
    | {"user_retry", "objection", "abandoned"}
)
"""Signals in how the trace went: recorded, and not counted, where an evaluation passed."""

PRIOR_LOG_ODDS = -1.5
"""Belief without any signal: probability 0.18."""

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


def judge(signals: Iterable[Signal]) -> float:
    """Probability, 0 to 1, that the trace failed: the logistic of the prior and the weights.

    Of each detector its strongest word on either side counts once: what repeats itself is not new evidence.
    Where an evaluation passed, behavioural signals do not count.

    >>> round(judge(()), 2)
    0.18
    """
    known = tuple(signals)
    passed = any(signal.detector == "evaluation" and signal.weight < 0 for signal in known)
    counted = [signal for signal in known if not (passed and signal.detector in BEHAVIOURAL)]
    strongest: dict[tuple[str, bool], float] = {}
    for signal in counted:
        key = (signal.detector, signal.weight > 0)
        strongest[key] = max(strongest.get(key, 0.0), signal.weight, key=abs)
    log_odds = PRIOR_LOG_ODDS + math.fsum(strongest.values())
    return 1.0 / (1.0 + math.exp(-min(max(log_odds, -500.0), 500.0)))


def is_failure(signals: Iterable[Signal]) -> bool:
    """Whether the trace is picked up: its probability of having failed is at least `THRESHOLD`."""
    return judge(signals) >= THRESHOLD
