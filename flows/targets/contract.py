"""The shape every target has."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue
from sqlalchemy import Connection

from models.features.material import Material
from store.records import Change, Cluster, Operation, Proposal, Release


@dataclass(frozen=True)
class Served:
    """What an apply or revert did: the target's state before and after, and the release that serves it."""

    before: str
    """Version id; for memory the position, as text."""
    after: str
    release: Release
    """The release to serve next; the current one where nothing that is served has changed."""


class TargetFlow(Protocol):
    """Propose a change, apply it, take it back. Applying and reverting build a release; the caller makes it live."""

    def propose(self, cluster: Cluster, material: Material) -> Proposal:
        """The change that would correct the cluster here, as deltas; `needs_answer` where a person must write something."""

    def answered(self, proposal: Proposal, answer: JsonValue, *, reviewer: str) -> Proposal:
        """The proposal completed by what the reviewer wrote. Raises NotAllowed, saying what is needed."""

    def apply(
        self,
        connection: Connection,
        current: Release,
        operations: Sequence[Operation],
        *,
        correction_id: str,
        now_us: int,
    ) -> Served:
        """Apply the deltas to the live state. Raises Refused where one conflicts with what is there."""

    def revert(self, connection: Connection, current: Release, change: Change, *, now_us: int) -> Served:
        """Take exactly this change back, keeping what came after it. Raises Refused where a later change built on it."""
