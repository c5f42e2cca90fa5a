"""The agent's release as the store serves it today, with a day's predictions made in one call."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from filmroom.demo.agent import MODEL
from filmroom.demo.served import Prediction
from flows.champion import load_model
from flows.serving import artifact_of
from flows.workspace import Workspace
from store.facts import facts_at
from store.records import Fact, Release, Rule, Ticket, ToolPolicy
from store.releases import live_release, version


@dataclass(frozen=True)
class LiveRelease:
    """What `Served` asks for, out of one release."""

    release: str
    rules: tuple[Rule, ...]
    policies: dict[str, ToolPolicy]
    memory: tuple[Fact, ...]
    predictions: dict[str, Prediction]
    tickets: tuple[Ticket, ...] = field(default=())

    def facts(self, user: str) -> tuple[Fact, ...]:
        return tuple(fact for fact in self.memory if fact.scope == "global" or fact.scope_id == user)

    def predict(self, text: str) -> Prediction:
        return self.predictions[text]


def serve_release(workspace: Workspace, texts: Sequence[str], release: Release | None = None) -> LiveRelease:
    """The live release (or an earlier one) with its model's answers to these texts."""
    with workspace.store.read() as connection:
        served = release or live_release(connection, workspace.project)
        context: Any = version(connection, served.context).content
        tooling: Any = version(connection, served.tooling).content
        model = load_model(workspace.artifacts, artifact_of(version(connection, served.models[MODEL])))
        memory = facts_at(connection, workspace.project, served.memory, workspace.clock())
    unique = list(dict.fromkeys(texts))
    answers = model.predict(unique)
    return LiveRelease(
        release=served.id,
        rules=tuple(Rule(**rule) for rule in context["rules"]),
        policies={policy["tool"]: ToolPolicy(**policy) for policy in tooling["policies"]},
        memory=tuple(memory),
        predictions={t: (p.label, p.confidence, p.rejected) for t, p in zip(unique, answers, strict=True)},
        tickets=tuple(Ticket(**ticket) for ticket in tooling["tickets"]),
    )
