"""The same user asks the same again within minutes, in another trace: the first answer did not help.

Once is a hint, a second time is taken for a failure, as within a trace (`models.behaviour.UserRetry`). A program that asks
the same of itself is no user: quick repeats and busy users are left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from models.signals import signal
from models.similarity import cosines
from models.steps import input_text
from store.records import Episode, Meaning, Signal

LEAST_GAP_US = 10_000_000
"""Faster than a person reads an answer and asks again."""
MOST_GAP_US = 600_000_000
MOST_TRACES = 6
"""More traces of one user within the ten minutes are a program's, or a conversation that the log keeps as traces."""
ALIKE = 0.5
_WORDS = 3


@dataclass(frozen=True)
class AskedAgain:
    """The user asked the same again, `times` times at least, within ten minutes: words with a cosine of 0.5, three at least."""

    name: str
    times: int
    weight: float
    version: int = 1

    def detect(
        self, episode: Episode, *, meanings: Mapping[str, Meaning], out_of_scope: Mapping[str, str | None]
    ) -> tuple[Signal, ...]:
        """Nothing: one trace alone cannot tell; `after` is told what came next."""
        return ()

    def after(self, episode: Episode, later: Sequence[Episode]) -> tuple[Signal, ...]:
        """The signal, if so many of the `later` traces ask the same."""
        if asked_the_same(episode, later) < self.times:
            return ()
        detail = "asked again in another trace" if self.times == 1 else "asked again twice in other traces"
        return (signal(self, episode, self.weight, detail=detail),)


RETRIES = (AskedAgain("asked_again", 1, 0.8), AskedAgain("asked_twice", 2, 1.0))
"""Together 1.8 for the second time."""


def asked_the_same(episode: Episode, later: Sequence[Episode]) -> int:
    """How many of the later traces ask the same; 0 where there are too many to be a person's."""
    text = input_text(episode)
    if not later or len(later) >= MOST_TRACES or len(text.split()) < _WORDS:
        return 0
    return int((cosines([text], [input_text(each) for each in later]) >= ALIKE).sum())


def asked_again(episode: Episode, later: Sequence[Episode]) -> tuple[Signal, ...]:
    """The signals that later traces of the same user give of this one."""
    return tuple(found for detector in RETRIES for found in detector.after(episode, later))
