"""Exposures and recurrences of a cluster: what a change is held against, before it and after it."""

from collections.abc import Collection, Sequence

from sqlalchemy import Connection

from models.scope import is_exposed
from store.exposures import judged
from store.records import Change, Cluster, Episode


def baseline(connection: Connection, found: Change, each: Cluster) -> float | None:
    """Share of the cluster's judged exposures before the change that failed in it, 0 to 1; None: there were none."""
    seen = judged(connection, found.project, before_us=found.applied_us)
    before = outcomes(each, seen, users=users_of(found))
    return sum(before) / len(before) if before else None


def users_of(found: Change) -> set[str] | None:
    """The users whom a memory change reaches; None: everybody."""
    if found.target != "memory":
        return None
    return {
        str(operation.value["scope_id"]) for operation in found.operations if operation.value.get("scope") == "user"
    }


def outcomes(
    each: Cluster, seen: Sequence[tuple[Episode, str | None]], *, users: Collection[str] | None, since_us: int = 0
) -> list[bool]:
    """Whether the failure recurred, for each judged exposure that started after `since_us`, oldest first.

    `seen`: traces with the cluster each failed in, newest first. A trace that failed in this cluster was exposed.
    """
    found = []
    for episode, failed_in in reversed(seen):
        if (episode.trace.started_us or 0) <= since_us:
            continue
        recurred = failed_in == each.id and (users is None or episode.trace.user in users)
        if recurred or is_exposed(each.fingerprint, episode, users=users):
            found.append(recurred)
    return found
