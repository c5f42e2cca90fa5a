"""One fault in the shop: the agent's world beside the ideal one, who is hit by it, and what they say of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.fault_shop import CHANNELS, FACTS, SHOP, Request, World, slots, training_rows

USERS = tuple(f"user{number:02d}" for number in range(40))
DAYS = 60.0
MAIN = 0.9
"""Share of the messages that come in where most do."""


@dataclass(frozen=True)
class Scenario:
    """What a family draws: one fault."""

    world: World
    """The agent as it is."""
    ideal: World
    """The agent as it should be; its intents are what the customers meant."""
    hit: tuple[Request, ...]
    """Requests the fault is about."""
    comments: tuple[str, ...]
    """What customers say of it, one at random; `{wanted}` is the right answer, `{label}` the right intent."""
    answers: float = 0.6
    """Share of complaints that say what would have been right."""
    labels: float = 0.0
    """Share of those that give the right label in place of the right answer."""
    complains_anyway: Callable[[Any, Request], str | None] | None = None
    """Of an answer that was right: the label that is wrongly called right, an empty text for a mere thumb down."""
    context_changed_day: float | None = None
    tools: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Family:
    """A kind of fault. A file of `benchmarks/fault_families` defines one as `FAMILY`."""

    name: str
    draw: Callable[["Draw"], Scenario]


@dataclass
class Draw:
    """What a family draws with: a generator, and the shop as it is without the fault."""

    rng: Any
    facts: dict[tuple[str, str], str] = field(init=False)
    training: tuple[tuple[str, str], ...] = field(init=False)
    channel: str = field(init=False)
    """Where most messages come in."""
    count: int = 0

    def __post_init__(self) -> None:
        self.channel = str(self.one(CHANNELS))
        self.facts = {
            (user, kind): str(self.rng.choice(FACTS[kind][1]))
            for user in USERS for kind in FACTS if self.rng.random() < 0.2
        }  # fmt: skip
        self.training = training_rows(np.random.default_rng(int(self.rng.integers(4))))

    @property
    def ideal(self) -> World:
        return World(facts=self.facts)

    @property
    def world(self) -> World:
        return World(facts=self.facts, training=self.training)

    def size(self, low: int = 10, high: int = 40) -> int:
        return int(self.rng.integers(low, high))

    def _channel(self) -> str:
        return self.channel if self.rng.random() < MAIN else str(self.one(CHANNELS))

    def one(self, values: Sequence[Any]) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def intent(self, has: str) -> str:
        """The name of an intent that has a `tool`, a `fact` or a `topic`."""
        return str(self.one([name for name, each in SHOP.items() if getattr(each, has)]))

    def requests(
        self, count: int, *, intents: Sequence[str] = tuple(SHOP), users: Sequence[str] = USERS, says: Sequence[str] = (),
        days: tuple[float, float] = (0.0, DAYS), earlier: bool = False,
    ) -> tuple[Request, ...]:  # fmt: skip
        """Messages at random times, with phrasings of `says` or those of the intent."""
        made = []
        for _ in range(count):
            name, given = str(self.one(intents)), slots(self.rng)
            text = str(self.one(says or SHOP[name].says)).format_map(given)
            self.count += 1
            made.append(
                Request(id=f"r{self.count}", user=str(self.one(users)), channel=self._channel(),
                        day=float(self.rng.uniform(*days)), intent=name, text=text, slots=given, earlier=earlier)
            )  # fmt: skip
        return tuple(made)
