"""Paired rows, each answered by champion and challenger, and what is counted over them."""

from collections.abc import Sequence

from models.sequential import clopper_pearson_upper, exact_loss_bound, noninferiority_bound
from store.records.production import Record

FEW_DISCORDANT = 10
"""Below it the normal approximation gives way to exact bounds."""
SLICE_MARGINS = ((800, 0.02), (125, 0.05))
"""Fewest rows of a slice to the share of them it may lose, at 95 % confidence."""
SMALL_SLICE_MARGIN = 0.05
"""Share of its rows that a smaller slice may lose on balance: too few to bound it."""


class JudgedRow(Record):
    """One row answered by champion and challenger, neither of which was trained on it."""

    row: str
    """Digest of the input."""
    truth: str | None
    """The right label; None: out of scope, a rejection is right."""
    champion: str | None
    """The champion's answer with its reject threshold in force; None: rejected."""
    challenger: str | None
    in_cluster: bool
    """Whether it matches the input-side scope of what is corrected and came since; False: the champion learnt it."""
    in_production: bool = False
    """Whether it is a production row that the champion has learnt, and a refit without it answers for the champion."""
    source: str
    trace_id: str | None = None

    @property
    def was_right(self) -> bool:
        return self.champion == self.truth

    @property
    def is_right(self) -> bool:
        return self.challenger == self.truth


class Pairs(Record):
    """Counts over paired rows."""

    n: int
    newly_right: int
    newly_wrong: int
    formerly_right: int

    @property
    def loss_bound(self) -> float:
        """Upper 95 % bound of the accuracy lost, share of rows; infinite without rows."""
        if self.newly_right + self.newly_wrong < FEW_DISCORDANT:
            return exact_loss_bound(self.newly_wrong, self.newly_right, self.n)
        return noninferiority_bound(self.newly_wrong, self.newly_right, self.n)

    @property
    def flip_bound(self) -> float:
        """Upper 95 % bound of newly wrong among formerly right; 1 without rows."""
        return clopper_pearson_upper(self.newly_wrong, self.formerly_right, 0.95)

    @property
    def slice_loses(self) -> bool:
        """Whether these rows, as one slice, lose more than a slice may."""
        margin = next((margin for fewest, margin in SLICE_MARGINS if self.n >= fewest), None)
        if margin is None:
            return self.newly_wrong - self.newly_right > SMALL_SLICE_MARGIN * self.n
        return self.loss_bound > margin


def pairs_of(rows: Sequence[JudgedRow]) -> Pairs:
    """The counts over `rows`."""
    return Pairs(
        n=len(rows),
        newly_right=sum(row.is_right and not row.was_right for row in rows),
        newly_wrong=sum(row.was_right and not row.is_right for row in rows),
        formerly_right=sum(row.was_right for row in rows),
    )
