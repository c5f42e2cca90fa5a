"""One answer of a model, and the numbers that all models in this process share."""

from typing import NamedTuple

LOWEST = -1e9
"""Score of a class that the classifier never saw."""
LEAST = 1e-12
"""Least probability whose logarithm is taken."""


class Prediction(NamedTuple):
    """One answer of a model."""

    label: str
    """The most probable class, also where it is rejected."""
    confidence: float
    """In [0, 1]."""
    rejected: bool
    """Whether the input is held to belong to none of the classes."""

    @property
    def answer(self) -> str | None:
        """The label served; None: rejected."""
        return None if self.rejected else self.label
