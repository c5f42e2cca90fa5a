"""A first look: what a turn would find in a log, in a store that is thrown away afterwards."""

import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from flows.pickup import pickup
from flows.route import cluster, route
from flows.workspace import open_workspace
from store.ingest import Tally, ingest
from store.pulls import pull_source
from store.redaction import redactor_for
from store.review_queue import review_queue
from store.settings import Settings, SourceSection, StoreSection
from store.sources import read
from store.sources.contract import SourceOptions
from store.status import status

LARGEST = 10


def scan(
    log: Path | SourceSection,
    settings: Settings,
    options: SourceOptions,
    *,
    format: str,
    stored: Callable[[Tally], None],
) -> dict[str, Any]:
    """`{"log", "failures", "clusters": [...], "cost_usd"}`: the ten largest clusters with the likely place and one next step.

    Nothing of it is kept: the log is read into a temporary store.
    """
    with tempfile.TemporaryDirectory(prefix="filmroom-scan-") as folder:
        there = settings.model_copy(update={"store": StoreSection(url=f"sqlite:///{folder}/scan.db")})
        with open_workspace(there, actor="scan", create=True) as workspace:
            redactor = redactor_for(workspace.store, settings.policy)
            if isinstance(log, SourceSection):
                tally = pull_source(workspace.store, "scan", log, stored=stored, redactor=redactor)
            else:
                items = read(log, format=format, options=options)
                tally = ingest(workspace.store, items, stored=stored, redactor=redactor)
            pickup(workspace)
            cluster(workspace)
            route(workspace)
            found = status(workspace.store)
            largest = sorted(review_queue(workspace.store), key=lambda row: -row["failures"])[:LARGEST]
    price = settings.prices.failure_usd
    return {
        "log": asdict(tally),
        "failures": found["failures"],
        "cost_usd": found["failures"] * price,
        "clusters": [{**_shown(row), "cost_usd": row["failures"] * price} for row in largest],
    }


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    kept = ("name", "failures", "target", "probability", "runner_up", "summary")
    return {**{name: row[name] for name in kept}, "next": _next(row)}


def _next(row: dict[str, Any]) -> str:
    if row["target"] is None:
        return "say for a few of these traces what would have been right (corrected output, or a comment)"
    return (row["needs_answer"] and f"write {row['needs_answer']}") or "review it: " + row["summary"]
