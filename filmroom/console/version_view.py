"""The data of a version's page: what it is, its model card, how it was judged, and what came before and after it."""

from typing import Any

from sqlalchemy import Connection

from filmroom.console.console import Console
from flows.model_card import card_of
from store.errors import FilmroomError, NotFound
from store.ledger import events_of
from store.records import Retrain, Version
from store.releases import version
from store.retrain_page import live_since, made_of_model
from store.retrains import promotion

MOST_BEFORE = 10
"""Versions shown up the line."""


def version_view(console: Console, version_id: str) -> dict[str, Any]:
    """One version: content, lineage, when it was live; of a model also its card and how it was judged. Raises NotFound."""
    with console.store.read() as connection:
        found = version(connection, version_id)
        if found.project != console.project:
            raise NotFound(f"no version {version_id}")
        made = promotion(connection, console.project, version_id) if found.model else None
        return {
            "version": found.id,
            **found.model_dump(mode="json"),
            "served": live_since(connection, console.project, version_id),
            "events": events_of(connection, console.project, version_id),
            "before": _before(connection, found),
            "after": made_of_model(connection, found) if found.model else [],
            **_card(console, connection, found),
            **_judged(made),
        }


def _before(connection: Connection, found: Version) -> list[dict[str, Any]]:
    """The versions that it came from, nearest first; of a document the nearest alone."""
    line: list[dict[str, Any]] = []
    at = found
    while at.parent is not None and len(line) < (MOST_BEFORE if found.model else 1):
        at = version(connection, at.parent)
        line.append({"version": at.id, "created_us": at.created_us, "arm": arm_of(at.content)})
    return line


def arm_of(content: Any) -> str:
    """The arm that made a model, by its version's content; empty for anything else.

    >>> arm_of({"arm": "char_svc"}), arm_of([])
    ('char_svc', '')
    """
    return str(content.get("arm") or "") if isinstance(content, dict) else ""


def _card(console: Console, connection: Connection, found: Version) -> dict[str, Any]:
    """`card`, in markdown; None where it is no model with a file, or its manifest is gone: then `card_missing` says so."""
    if not found.model or not isinstance(found.content, dict) or "artifact" not in found.content:
        return {"card": None, "card_missing": ""}
    try:
        return {"card": card_of(connection, console.workspace.artifacts, found), "card_missing": ""}
    except FilmroomError as error:
        return {"card": None, "card_missing": f"The card cannot be written: {error}"}


def _judged(made: Retrain | None) -> dict[str, Any]:
    """What the retrain that made it kept: its id, the gate, some changed answers, the traces it learnt from."""
    if made is None:
        return {"retrain": None, "gate": [], "newly_wrong": [], "newly_right": [], "learnt": 0}
    kept = [each.model_dump(mode="json") for each in made.examples]
    return {
        "retrain": made.id,
        "gate": [each.model_dump(mode="json") for each in made.gate],
        "newly_wrong": [each for each in kept if each["change"] == "newly wrong"],
        "newly_right": [each for each in kept if each["change"] == "newly right"],
        "learnt": len(made.trace_ids),
    }
