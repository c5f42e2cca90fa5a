"""Signals in how a trace went: errors, repeated calls, escalation, refusal, truncation.

They are hints. A passed evaluation outranks all of them: of 73 successful runs of one logged agent 18 contain a tool
error, a transfer or a call made three times.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from models.signals import signal
from models.steps import (
    answer_text,
    failed_steps,
    finish_reasons,
    is_escalation,
    step_name,
    tool_calls,
)
from store.records import Episode, Meaning, Signal, Span
from store.records.identity import canonical_json

_REFUSAL = re.compile(
    r"\W*(?:i['’]?m (?:very |so |really )?sorry|i am sorry|sorry|unfortunately|i apologi[sz]e)?[\s,.;:]*(?:but )?"
    r"(?:i|we)(?: am|['’]m| are)?\s*(?:can(?:no|['’])t|can not|won['’]t|will not|unable to|not able to|must decline to)\s+"
    r"(?:help|assist|do|answer|provide|comply|fulfil|support|process|discuss)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class StepError:
    """A step ended in an error; one the program recovered from (the same step succeeded later) is not enough by itself.

    One signal per step name and outcome, on the last such step.
    """

    name: str
    tools: bool
    """Tool calls; else every other kind of step."""
    version: int = 1
    unrecovered: float = 2.5
    recovered: float = 0.4

    def detect(
        self, episode: Episode, *, meanings: Mapping[str, Meaning], out_of_scope: Mapping[str, str | None]
    ) -> tuple[Signal, ...]:
        last: dict[tuple[str, bool], Span] = {}
        for span, recovered in failed_steps(episode.spans):
            if (span.kind == "tool") == self.tools:
                last[step_name(span), recovered] = span
        return tuple(
            signal(
                self,
                episode,
                self.recovered if recovered else self.unrecovered,
                detail=f"`{step}` failed{', and succeeded later' if recovered else ''}",
                span=span,
            )
            for (step, recovered), span in last.items()
        )


@dataclass(frozen=True)
class TraceError:
    """The interaction as a whole ended in an error."""

    name: str = "trace_error"
    version: int = 1
    weight: float = 3.0

    def detect(
        self, episode: Episode, *, meanings: Mapping[str, Meaning], out_of_scope: Mapping[str, str | None]
    ) -> tuple[Signal, ...]:
        if episode.trace.status != "error" and not episode.trace.error:
            return ()
        return (signal(self, episode, self.weight, detail="the interaction ended in an error"),)


@dataclass(frozen=True)
class RepeatedCall:
    """The same tool was called with the same arguments three times or more."""

    name: str = "repeated_call"
    version: int = 1
    weight: float = 0.9
    times: int = 3

    def detect(
        self, episode: Episode, *, meanings: Mapping[str, Meaning], out_of_scope: Mapping[str, str | None]
    ) -> tuple[Signal, ...]:
        calls = tool_calls(episode.spans)
        keys = [(step_name(span), canonical_json(span.input)) for span in calls]
        last = dict(zip(keys, calls, strict=True))
        return tuple(
            signal(self, episode, self.weight, detail=f"`{key[0]}` called {count} times alike", span=last[key])
            for key, count in Counter(keys).items()
            if count >= self.times
        )


@dataclass(frozen=True)
class Escalation:
    """The conversation was handed to a person."""

    name: str = "escalation"
    version: int = 1
    weight: float = 1.0

    def detect(
        self, episode: Episode, *, meanings: Mapping[str, Meaning], out_of_scope: Mapping[str, str | None]
    ) -> tuple[Signal, ...]:
        last = next((span for span in reversed(episode.spans) if is_escalation(span)), None)
        if last is None:
            return ()
        return (signal(self, episode, self.weight, detail=f"handed over by `{step_name(last)}`", span=last),)


@dataclass(frozen=True)
class Refusal:
    """The model declined: its finish reason says so, or its last answer begins as an English refusal does."""

    name: str = "refusal"
    version: int = 1
    weight: float = 1.0

    def detect(
        self, episode: Episode, *, meanings: Mapping[str, Meaning], out_of_scope: Mapping[str, str | None]
    ) -> tuple[Signal, ...]:
        reasons = {"refusal", "content_filter", "safety"}
        span = next((span for span in reversed(episode.spans) if reasons & finish_reasons(span)), None)
        if span is None and not _REFUSAL.match(answer_text(episode)[:400]):
            return ()
        return (signal(self, episode, self.weight, detail="the model declined", span=span),)


@dataclass(frozen=True)
class Truncation:
    """The last answer of a model was cut off at its length limit."""

    name: str = "truncation"
    version: int = 1
    weight: float = 2.0

    def detect(
        self, episode: Episode, *, meanings: Mapping[str, Meaning], out_of_scope: Mapping[str, str | None]
    ) -> tuple[Signal, ...]:
        last = next((span for span in reversed(episode.spans) if span.kind == "llm"), None)
        if last is None or not {"length", "max_tokens", "model_length"} & finish_reasons(last):
            return ()
        return (signal(self, episode, self.weight, detail="the answer was cut off at its length limit", span=last),)
