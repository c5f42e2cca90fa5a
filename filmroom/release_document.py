"""The documents that the running program takes: the release as a whole, and the facts in force for one user."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import JsonValue
from sqlalchemy import Connection

from filmroom.rule_text import with_texts
from filmroom.signature import canonical
from flows.serving import artifact_of
from models.write_gate import stale_ids
from store.errors import NotFound
from store.facts import facts_at
from store.records import Fact, Release
from store.releases import live_release, release, version

FORMAT = 1
"""Version of the documents' layout; the client refuses another."""


def release_document(
    connection: Connection, project: str, schemas: Mapping[str, JsonValue], served: Release | None = None
) -> dict[str, Any]:
    """A release (default: the live one) as one JSON value, the same for the same release and schemas.

    The live pointer is read once and all else hangs on it and never changes: no mixture of two releases, also where the
    database shows each statement the newest state. `schemas`: the tools' argument schemas. Raises NotFound.
    """
    found = served or live_release(connection, project)
    context: Any = version(connection, found.context).content
    tooling: Any = version(connection, found.tooling).content
    return {
        "format": FORMAT,
        "project": project,
        "release": found.id,
        "number": found.number,
        "created_us": found.created_us,
        "context": {**context, "version": found.context, "rules": with_texts(context["rules"])},
        "tooling": {
            "version": found.tooling,
            "policies": tooling["policies"],
            "tickets": [_ticket(each) for each in tooling["tickets"] if not each.get("resolved")],
            "schemas": dict(schemas),
        },
        "memory": {"position": found.memory},
        "models": {name: _model(connection, id_) for name, id_ in sorted(found.models.items())},
    }


def memory_document(
    connection: Connection, project: str, *, user: str, tenant: str | None, now_us: int, release_id: str | None = None
) -> dict[str, Any]:
    """The facts in force for a user at a release's position (default: the live one's), oldest first; without those that
    rest on one that is no longer in force. Raises NotFound."""
    served = live_release(connection, project) if release_id is None else release(connection, release_id)
    if served.project != project:
        raise NotFound(f"no release {release_id}: `filmroom release` lists them")
    found = not_stale(facts_at(connection, project, served.memory, now_us, user=user, tenant=tenant))
    return {
        "format": FORMAT,
        "project": project,
        "release": served.id,
        "position": served.memory,
        "user": user,
        "tenant": tenant,
        "facts": [exported_fact(each) for each in found],
    }


def etag(document: Mapping[str, Any]) -> str:
    """The entity tag of a document: equal for equal content.

    >>> etag({"release": "rel_1"}) == etag({"release": "rel_1"}) != etag({"release": "rel_2"})
    True
    """
    return f'"{hashlib.sha256(canonical(document)).hexdigest()[:32]}"'


def not_stale(facts: Sequence[Fact]) -> list[Fact]:
    """The facts without those that rest on one that is no longer in force."""
    stale = stale_ids(facts)
    return [fact for fact in facts if fact.id not in stale]


def _ticket(value: Mapping[str, Any]) -> dict[str, Any]:
    """What the program needs to know: that the tool has a defect. The failing call stays here; it may hold a user's words."""
    return {name: value[name] for name in ("id", "tool")}


def _model(connection: Connection, version_id: str) -> dict[str, str]:
    return {"version": version_id, "artifact": artifact_of(version(connection, version_id))}


def exported_fact(value: Fact) -> dict[str, Any]:
    """A fact as the program gets it: without its source, who may be another user."""
    kept = {"id", "scope", "scope_id", "subject", "predicate", "value", "authority", "valid_from_us", "ttl_s"}
    return value.model_dump(mode="json", include=kept)
