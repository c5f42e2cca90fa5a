"""The shortest way to yes, in things a person can do."""

from typing import Literal

from store.records.production import Record


class Way(Record):
    """One step towards a decision, a certificate or a retrain that was not given."""

    action: Literal["settle", "answer", "label", "judge", "replay", "wait"]
    what: str
    """What to do, in words."""
    traces: tuple[str, ...] = ()
    """Ids of exactly those traces that matter most for it; empty: none are known."""
    corrections: tuple[str, ...] = ()
    """Ids of the waiting corrections to decide."""
    place: str | None = None
    """The place whose clusters are to be decided; None: it is not about other clusters."""
    count: int = 0
    """How many are needed; more than are named where they have not come yet."""
    minutes: int = 0
    """Of a person, for those that are named."""
    days: int = 0
    """Days to wait."""
