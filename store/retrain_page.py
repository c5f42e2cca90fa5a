"""Evaluations of the retrain trigger a page at a time, and the versions a model has had."""

from typing import Any

from sqlalchemy import Connection, func, select

from store.records import Retrain, Version
from store.tables import live, releases, retrains, versions

PAGE = 50


def retrain_page(
    connection: Connection, project: str, *, model: str = "", decision: str = "", offset: int = 0, limit: int = PAGE
) -> list[Retrain]:
    """Evaluations of a model, or of all, newest first."""
    statement = (
        select(retrains.c.record)
        .where(retrains.c.project == project)
        .order_by(retrains.c.at_us.desc(), retrains.c.id)
        .offset(offset)
        .limit(limit)
    )
    if model:
        statement = statement.where(retrains.c.model == model)
    if decision:
        statement = statement.where(retrains.c.decision == decision)
    return [Retrain(**record) for record in connection.execute(statement).scalars()]


def retrain_counts(connection: Connection, project: str) -> dict[str, dict[str, int]]:
    """Model to decision to how often."""
    statement = (
        select(retrains.c.model, retrains.c.decision, func.count())
        .where(retrains.c.project == project)
        .group_by(retrains.c.model, retrains.c.decision)
    )
    found: dict[str, dict[str, int]] = {}
    for model, decision, count in connection.execute(statement):
        found.setdefault(model, {})[decision] = count
    return found


def retrain_marks(connection: Connection, project: str, *, limit: int = 400) -> list[dict[str, Any]]:
    """When what was decided, for a timeline: `retrain, model, at_us, decision, arm`, oldest first."""
    statement = (
        select(retrains.c.id, retrains.c.model, retrains.c.at_us, retrains.c.decision, retrains.c.arm)
        .where(retrains.c.project == project)
        .order_by(retrains.c.at_us.desc())
        .limit(limit)
    )
    rows = [dict(row._mapping) for row in connection.execute(statement)]
    return [{"retrain": row.pop("id"), **row} for row in reversed(rows)]


def model_versions(connection: Connection, project: str) -> list[dict[str, Any]]:
    """Versions of models (those with a model file are told by `artifact` in their content), newest first."""
    statement = (
        select(versions.c.id, versions.c.model, versions.c.parent, versions.c.created_us, versions.c.content)
        .where(versions.c.project == project, versions.c.target == "weights")
        .order_by(versions.c.created_us.desc(), versions.c.id)
        .limit(500)
    )
    rows = [dict(row._mapping) for row in connection.execute(statement)]
    return [{"version": row.pop("id"), **row} for row in rows if "artifact" in row["content"]]


def made_of_model(connection: Connection, found: Version) -> list[dict[str, Any]]:
    """The model's versions that came from this one, oldest first: `version, created_us, arm`."""
    statement = (
        select(versions.c.id, versions.c.created_us, versions.c.content)
        .where(versions.c.project == found.project, versions.c.target == found.target, versions.c.model == found.model,
               versions.c.parent == found.id)
        .order_by(versions.c.created_us, versions.c.id)
        .limit(50)
    )  # fmt: skip
    return [
        {"version": row.id, "created_us": row.created_us, "arm": str(row.content.get("arm") or "")}
        for row in connection.execute(statement)
    ]


def live_since(connection: Connection, project: str, version_id: str) -> list[dict[str, Any]]:
    """The releases that served a version of context or tooling, or that name it as a model, oldest first.

    `release, number, from_us, until_us` (None: it is live).
    """
    statement = (
        select(releases.c.id, releases.c.number, releases.c.created_us, releases.c.context, releases.c.tooling,
               releases.c.models)
        .where(releases.c.project == project)
        .order_by(releases.c.number)
    )  # fmt: skip
    rows = list(connection.execute(statement))
    now = connection.execute(select(live.c.release_id).where(live.c.project == project)).scalar_one_or_none()
    found = []
    for row, after in zip(rows, [*rows[1:], None], strict=True):
        if version_id in (row.context, row.tooling, *row.models.values()):
            until_us = None if row.id == now or after is None else after.created_us
            found.append({"release": row.id, "number": row.number, "from_us": row.created_us, "until_us": until_us})
    return found
