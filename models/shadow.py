"""What the version before would have said since a promotion, against what was said: the evidence that brings it back."""

from models.sequential import e_value
from store.records import Record

HARM = 20.0
"""The e-value at which the version before is served again: looked at every turn, it errs with 5 % at the most, ever."""


class Shadowed(Record):
    """Paired answers since the promotion, whose right answer is known."""

    judged: int
    """Answers of which both are known."""
    lost: int
    """The version before was right, and the one that is served was wrong."""
    won: int
    """The other way round."""

    @property
    def evidence(self) -> float:
        """For "the version before is the better one": at most 1 in expectation while it is not."""
        return e_value(self.lost, self.won)

    @property
    def harms(self) -> bool:
        """Whether the version before comes back."""
        return self.evidence >= HARM
