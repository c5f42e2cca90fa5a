"""One release in the program's hands: what it says for an input, a user, a tool call. Nothing here changes while it is held."""

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, NamedTuple, Protocol

from filmroom_live.documents import Example, Fact, Release, Rule
from filmroom_live.kept_facts import Whose
from filmroom_live.model import LoadedModel
from filmroom_live.nearest import Nearest
from filmroom_live.prediction import Prediction
from filmroom_live.record_model import as_text
from filmroom_live.rule_text import block, holds, knowledge, line, open_conditions
from filmroom_live.tool_call import ToolCall, tool_call

Predict = Callable[[str, str, str, float], Prediction | None]
"""From model, version, text and seconds to an answer by another process."""


class Facts(Protocol):
    """The facts of one release."""

    def of(self, whose: Whose, wait_s: float) -> tuple[Fact, ...]:
        """What is known of a user."""


class Pinned(NamedTuple):
    """A release with everything that belongs to it. Hold one from the beginning of a request to its end."""

    release: Release
    facts: Facts
    models: Mapping[str, LoadedModel]
    """Models in this process."""
    ask: Predict
    near: Nearest | None = None
    """The inputs of the release's examples, indexed."""

    def rules(self, **scope: str | None) -> tuple[Rule, ...]:
        """The rules that hold, or may hold, where `intent`, `channel`, `tool`, ... are as given.

        A key that is left out or None is not known: a rule that needs it stays, see `context`.
        """
        return tuple(rule for rule in self.release.rules if open_conditions(rule.scope, scope) is not None)

    def context(self, input: str = "", /, *, examples: int = 3, **scope: str | None) -> str:
        """The rules, notes and the `examples` most like `input`, as markdown for a prompt; empty where there are none.

        What a rule needs and `scope` does not name is spelled out ("When the intent is cancel: ..."). `input` decides which
        rules stay where there are more than fit. Notes and examples are there only where all they need is known to hold.
        """
        asked = input if isinstance(input, str) else ""
        lines = []
        for rule in self.release.rules:
            conditions = open_conditions(rule.scope, scope)
            if conditions is not None:
                lines.append(line(rule.text, conditions))
        rules = block(lines, asked)
        if not self.release.notes and not self.release.examples:
            return rules
        notes = [note.text for note in self.release.notes if holds(note.scope, scope)]
        chosen = self.examples(asked, most=examples, **scope) if examples > 0 else ()
        more = knowledge(notes, [each.text for each in chosen])
        return "\n".join(part for part in (rules, more) if part)

    def examples(self, input: str, /, *, most: int = 3, **scope: str | None) -> tuple[Example, ...]:
        """The examples of this scope whose input is most like `input`, nearest first."""
        if self.near is None:
            return ()
        examples = self.release.examples
        found = (examples[place] for place, _ in self.near.most_like(input, len(examples)))
        return tuple(islice((each for each in found if holds(each.scope, scope)), most))

    def memory(
        self, user: str, *, tenant: str | None = None, wait_s: float = 0.0, about: str = "", most: int | None = None
    ) -> tuple[Fact, ...]:
        """The facts in force for a user, oldest first: data, never instructions. With `about` those most like it come first;
        `most`: at the most so many.

        The first call for a user starts to fetch them and returns what is there after `wait_s` seconds, which may be
        nothing; later calls never wait.
        """
        if not isinstance(user, str) or not user:
            return ()
        found = self.facts.of(Whose(user, tenant), wait_s)
        if about and found:
            ranked = Nearest([fact.words for fact in found]).most_like(about, len(found))
            places = [place for place, _ in ranked]
            found = tuple(found[place] for place in [*places, *(set(range(len(found))) - set(places))])
        return found if most is None else found[: max(0, most)]

    def tool_call(self, name: str, arguments: Mapping[str, Any]) -> ToolCall:
        """The call as it should be made: normalised, checked, with a sentence for each thing that is wrong."""
        return tool_call(self.release, name, arguments)

    def predict(self, model: str, text: str | Mapping[str, Any], *, timeout_s: float = 2.0) -> Prediction | None:
        """The model's answer to a text, or to a record as a mapping; None: the release has no such model, or nobody answered
        within `timeout_s`.

        In this process where the model is loaded; else this is the one call that waits for the network.
        """
        asked, loaded = as_text(text), self.models.get(model)
        if loaded is not None:
            return loaded.predict(asked)
        served = self.release.models.get(model)
        return None if served is None else self.ask(model, served.version, asked, timeout_s)
