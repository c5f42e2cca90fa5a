"""The learned router: its versions, the gate each candidate went through, and what happened to them."""

from functools import cached_property
from typing import Any

from pydantic import Field

from store.records.production import Record


class RouterGate(Record):
    """A candidate against the router that decides, on decided clusters that neither was fitted to."""

    champion: str
    """Version of the router that decides."""
    passed: bool
    reason: str
    """What was compared and found, and which conditions a refused candidate missed."""
    to_yes: str = ""
    """The shortest way from a refusal to a pass; empty where it passed."""
    rows: int
    """Decided clusters that both were asked about."""
    right: int
    champion_right: int
    newly_right: int
    newly_wrong: int
    p: float
    """Exact one-sided McNemar."""
    alpha: float
    """The most that `p` may be: spent over the candidates judged against the same champion."""
    look: int
    """1 for the first of them."""
    needless: int
    """Clusters sent to the weights whose right place is another."""
    champion_needless: int
    cost_min: float
    """Mean minutes of a person's time until a cluster is settled, the places tried in the cheapest order."""
    champion_cost_min: float
    fresh_newly_right: int = 0
    """Among clusters that no version has learnt from."""
    fresh_newly_wrong: int = 0


class RouterVersion(Record):
    """A learned router as it was fitted, with all that it needs to say the same again. Never trained further in place."""

    id: str
    """`rtr_...`, named on every route that it decides."""
    parent: str
    """Version of the router that it replaced: the rules, or a learned one."""
    features: tuple[str, ...]
    outcomes: tuple[str, ...]
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    coefficients: tuple[tuple[float, ...], ...]
    """One row an outcome; columns: the features, whether each was missing, the rules' log-weights."""
    intercept: tuple[float, ...]
    temperature: float
    rows: int
    """Decided clusters that it was fitted to."""
    rules: str
    """Version of the rules whose log-weights are features of it."""
    base: dict[str, float]
    """Their log-weights without evidence, by outcome."""
    weights: dict[str, dict[str, float]]
    """Their log-weights by outcome and feature."""
    out_of_fold: dict[str, dict[str, float]]
    """Correction to the probabilities that a fit without its cluster gives: what certificates and gates may use."""
    clusters: tuple[str, ...]
    """The clusters it was fitted to."""
    reviews: tuple[str, ...]
    """The verdicts it was fitted to."""
    gate: RouterGate


class RouterEvent(Record):
    """One line of the router's history."""

    at_us: int
    actor: str
    event: str
    """`router in force`, `learned`, `refused`, `rolled back`, `pinned` or `unpinned`."""
    subject: str
    """The version or candidate; of the first, and of pins, `router`."""
    reason: str
    detail: dict[str, Any] = Field(default_factory=dict)

    @property
    def decided(self) -> int:
        """Decided clusters there were."""
        return int(self.detail.get("decided", 0))

    @cached_property
    def version(self) -> RouterVersion | None:
        """The version that was learned by this event; None: none was."""
        return RouterVersion(**self.detail["version"]) if self.event == "learned" else None

    @property
    def gate(self) -> RouterGate | None:
        """The gate of what was learned or refused by this event."""
        version = self.version
        if version is not None:
            return version.gate
        return RouterGate(**self.detail["gate"]) if self.event == "refused" else None
