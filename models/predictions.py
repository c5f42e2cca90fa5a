"""What a model says of an input: its answer, and how sure it was of every other."""

from typing import NamedTuple

from models.reject import Floats
from store.records.production import Record


class Prediction(Record):
    """One answer of the model."""

    label: str
    """The most probable class, also where it is rejected."""
    confidence: float
    """Its probability, temperature-scaled out of fold; in [0, 1]."""
    rejected: bool
    """Whether the input is held to belong to none of the classes."""

    @property
    def answer(self) -> str | None:
        """The label served; None: rejected."""
        return None if self.rejected else self.label


class Considered(NamedTuple):
    """Predictions, and how sure the model was of every other answer."""

    predictions: tuple[Prediction, ...]
    columns: dict[str, int]
    """The column of each class in `log_odds`."""
    log_odds: Floats
    """Temperature-scaled scores, shape (n, classes)."""
    inside: Floats
    """How much speaks for an input's belonging to one of the classes, shape (n,); below 0 it is turned away."""
