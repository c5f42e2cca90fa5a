"""Signals in how a trace went: errors, repeated calls, escalation, refusal, truncation.

They are hints. A passed evaluation outranks all of them: of 73 successful runs of one logged agent 18 contain a tool
error, a transfer or a call made three times.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from models.signals import signal
from models.similarity import cosines
from models.steps import (
    answer_text,
    error_text,
    failed_steps,
    finish_reasons,
    is_escalation,
    step_name,
    text_of,
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

OBJECTION = re.compile(
    r"\W*(?:no[,.! ]+(?:i (?:meant|said|asked|want)|not )|(?:that['’]?s|that is|this is) (?:not (?:what|right)|wrong)"
    r"|i (?:meant|did ?n[o'’]t (?:ask|mean)|already (?:said|told))|you (?:misunderst|did ?n[o'’]t (?:understand|answer))"
    r"|nein[,. ]+(?:ich|das|nicht)|das (?:ist|war) (?:falsch|nicht)|non[,. ]+(?:je|pas|ce)|no[,. ]+(?:quiero|quise|eso))",
    re.IGNORECASE,
)
_WORDS = 3
"""Words a turn needs to be compared with another."""


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


@dataclass(frozen=True)
class UserRetry:
    """The user asked the same again in other words: two turns, at least three words each, with a cosine of 0.5 to 0.98.

    Once more is a hint; a second time is taken for a failure. Turns of one trace only.
    """

    name: str = "user_retry"
    version: int = 1
    once: float = 0.8
    again: float = 1.8
    least: float = 0.5
    same: float = 0.98

    def detect(
        self, episode: Episode, *, meanings: Mapping[str, Meaning], out_of_scope: Mapping[str, str | None]
    ) -> tuple[Signal, ...]:
        turns = [span for span in user_turns(episode) if len(text_of(span.input).split()) >= _WORDS]
        if len(turns) < 2:
            return ()
        texts = [text_of(span.input) for span in turns]
        near = cosines(texts, texts)
        again = [at for at in range(1, len(turns)) if self.least <= near[at, at - 1] <= self.same]
        if not again:
            return ()
        weight = self.once if len(again) == 1 else self.again
        return (signal(self, episode, weight, detail="asked again in other words", span=turns[again[-1]]),)


@dataclass(frozen=True)
class Objection:
    """A later turn of the user begins with an objection: "no, I meant ...", "that is not what I asked".

    English, German, French and Spanish; in another language nothing is recognised.
    """

    name: str = "objection"
    version: int = 1
    weight: float = 1.8

    def detect(
        self, episode: Episode, *, meanings: Mapping[str, Meaning], out_of_scope: Mapping[str, str | None]
    ) -> tuple[Signal, ...]:
        last = next((span for span in reversed(user_turns(episode)[1:]) if OBJECTION.match(text_of(span.input))), None)
        if last is None:
            return ()
        return (signal(self, episode, self.weight, detail="the user objected", span=last),)


@dataclass(frozen=True)
class Abandoned:
    """The user left after an error: after their last turn a step failed, nothing was answered, and no turn came after it."""

    name: str = "abandoned"
    version: int = 1
    weight: float = 0.8

    def detect(
        self, episode: Episode, *, meanings: Mapping[str, Meaning], out_of_scope: Mapping[str, str | None]
    ) -> tuple[Signal, ...]:
        last = episode.spans[-1] if episode.spans else None
        if (
            last is None
            or last.kind == "user"
            or not user_turns(episode)
            or episode.trace.output not in (None, "")
            or error_text(last) is None
        ):
            return ()
        return (signal(self, episode, self.weight, detail=f"ends with the error of `{step_name(last)}`", span=last),)


def user_turns(episode: Episode) -> list[Span]:
    """What the user said, turn by turn, where the log has it as steps."""
    return [span for span in episode.spans if span.kind == "user" and text_of(span.input).strip()]
