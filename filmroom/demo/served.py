"""What the agent is given from outside: a release, as the program sees it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from store.records import Fact, Rule, ToolPolicy

Prediction = tuple[str, float, bool]
"""Label, its probability, and whether the model turns the text away as none of its classes."""


class Served(Protocol):
    """One release, in the program's hands."""

    @property
    def release(self) -> str:
        """Id of the release (`rel_...`), logged with each conversation."""

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The live context rules."""

    @property
    def policies(self) -> Mapping[str, ToolPolicy]:
        """Tool name to its live policy; a tool without one is called as it is."""

    def facts(self, user: str) -> tuple[Fact, ...]:
        """What is remembered of `user`, oldest first; the last word on a matter wins."""

    def predict(self, text: str) -> Prediction:
        """The intent of a message."""


@dataclass(frozen=True)
class Setup:
    """A `Served` made of plain values."""

    model: Callable[[str], Prediction]
    release: str = "rel_0"
    rules: tuple[Rule, ...] = ()
    memory: tuple[Fact, ...] = ()
    policies: Mapping[str, ToolPolicy] = field(default_factory=dict)

    def facts(self, user: str) -> tuple[Fact, ...]:
        return tuple(fact for fact in self.memory if fact.scope == "global" or fact.scope_id == user)

    def predict(self, text: str) -> Prediction:
        return self.model(text)
