"""What a first look at a log finds, as records."""

from typing import Literal

from store.records import Record


class Unknown(Record):
    """One thing that a log does not say."""

    what: str
    switches_off: str
    """What cannot be done without it."""
    to_do: str


class FeedbackFound(Record):
    """What is known of one feedback name."""

    name: str
    count: int
    lowest: float | None
    """Lowest score; None: no scores."""
    highest: float | None
    labels: dict[str, int]
    """Label to count, the most frequent first."""
    corrected: int
    """How many carry a corrected output."""
    kind: Literal["person", "evaluation"]
    """`evaluation` where no human gave any of it."""
    good: Literal["high", "low"] | None
    """Guessed from the name; None: nothing to guess from."""
    threshold: float | None
    """Guessed from the scores' range; None: no scores."""


class Findings(Record):
    """What a log holds, as far as its first records show."""

    path: str
    format: str
    complete: bool
    """Whether the sample is the whole log."""
    traces: int
    spans: int
    feedback: int
    rejected: int
    first_rejection: str | None
    """Line and reason of the first piece that cannot be read; None: all can."""
    users: int
    """Distinct users; 0: the log names none."""
    with_time: int
    """Traces that say when they started."""
    sessions: int
    """Distinct sessions."""
    without_offset: bool
    """Whether times lack an offset; they were read as UTC here."""
    feedback_names: tuple[FeedbackFound, ...]
    tools: dict[str, tuple[str, ...]]
    """Tool name to the argument names seen."""
    models: dict[str, dict[str, int]]
    """Model that predicts to its labels with their counts; `model` where the log does not name it."""
    unnamed_model: bool
    """Whether there are predictions of a model that the log does not name."""
    agent: bool
    """Whether a language model or tools were at work."""
    columns: dict[str, str]
    """Tables: our field to the column taken for it."""
    pull: str | None = None
    """The address of the running system that was looked at; None: a file or a folder was."""
    unknowns: tuple[Unknown, ...] = ()
    """What is missing, and what that switches off; what blocks most first."""
