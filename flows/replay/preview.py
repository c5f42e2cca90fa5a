"""The release that a change would make, without making it: built in a transaction that is taken back."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection

from flows.targets import FLOWS
from flows.workspace import Workspace
from models.write_gate import stale_ids
from store.facts import facts_at
from store.records import Fact, Operation, Release
from store.releases import live_release, version

Whose = tuple[str | None, str | None]
"""User and tenant."""


class Served(NamedTuple):
    """A release in the hands of the hook."""

    release_id: str
    document: Mapping[str, Any]
    facts: Mapping[Whose, list[dict[str, Any]]]

    def document_for(self, user: str | None, tenant: str | None) -> dict[str, Any]:
        """The release with the facts in force for this user."""
        return {**self.document, "facts": self.facts.get((user, tenant), [])}


class _TakenBack(Exception):
    """Ends the transaction without keeping anything."""


def preview(workspace: Workspace, operations: Sequence[Operation], *, users: Sequence[Whose]) -> dict[str, Served]:
    """`control`, the live release, and `fix`, the one that the deltas would make. Raises Refused where they cannot be applied."""
    found: dict[str, Served] = {}
    try:
        with workspace.store.write() as connection:
            current = live_release(connection, workspace.project)
            found["control"] = _served(connection, workspace, current, users)
            made = FLOWS[operations[0].target].apply(
                connection, current, operations, correction_id="", now_us=workspace.clock()
            )
            found["fix"] = _served(connection, workspace, made.release, users)
            raise _TakenBack
    except _TakenBack:
        return found


def _served(connection: Connection, workspace: Workspace, release: Release, users: Sequence[Whose]) -> Served:
    context: Any = version(connection, release.context).content
    tooling: Any = version(connection, release.tooling).content
    document = {
        "release": release.id,
        "context": context,
        "tooling": {**tooling, "schemas": workspace.tools},
        "models": dict(release.models),
    }
    facts = {whose: _facts(connection, workspace, release, whose) for whose in set(users)}
    return Served(release.id, document, facts)


def _facts(connection: Connection, workspace: Workspace, release: Release, whose: Whose) -> list[dict[str, Any]]:
    user, tenant = whose
    found = facts_at(connection, workspace.project, release.memory, workspace.clock(), user=user or "", tenant=tenant)
    stale = stale_ids(found)
    return [_as_served(fact) for fact in found if fact.id not in stale]


def _as_served(fact: Fact) -> dict[str, Any]:
    return fact.model_dump(
        mode="json", include={"id", "scope", "scope_id", "subject", "predicate", "value", "authority"}
    )
