"""The whole turn. Whoever reads this file has understood the system.

A log comes in; failures are picked up, put into clusters and routed to one of four places; people review; what is approved
is applied; a model is retrained where the weights were the right place; every change is watched.

It is plain Python and runs anywhere. `flows.improve` is the same turn as a Prefect flow, one task a stage.
"""

import time
from collections.abc import Callable
from typing import Any

from pydantic import Field

from flows.auto_review import AutoReviewed, auto_review
from flows.pickup import PickedUp, pickup
from flows.pull import pull
from flows.replay import replay_waiting
from flows.retrain import Retrained, retrain
from flows.route import Clustered, Routed, cluster, route
from flows.verify import Verified, verify
from flows.workspace import Workspace, read_tools
from store.leases import holding
from store.ledger import record_event
from store.records import Record, Retrain, derived_id
from store.turns import begin_turn, end_turn

Stage = Callable[[Workspace], Any]
MACHINE = "filmroom"
"""Who acts in a turn, whoever started it: what the loop decides is not the decision of the person who typed `run`."""

STAGES: tuple[tuple[str, Stage], ...] = (
    ("pull", pull),
    ("pickup", pickup),
    ("cluster", cluster),
    ("verify", verify),
    ("route", route),
    ("replay", replay_waiting),
    ("review", auto_review),
    ("retrain", retrain),
)
"""Verify comes before route: what failed to hold is taken back and routed again in the same turn."""


class TurnSummary(Record):
    """What one turn did."""

    run: str
    traces_seen: int = 0
    failures: int = 0
    clusters: int = 0
    routes: dict[str, int] = Field(default_factory=dict)
    changes: int = 0
    """Changes applied by the turn itself; people's approvals apply at once."""
    retrain: dict[str, Any] = Field(default_factory=dict)
    """The last evaluation of the trigger: `decision`, `reason` and its numbers; `decision` is `none` without a model."""
    holds: dict[str, int] = Field(default_factory=dict)
    waiting: int = 0
    """Corrections that wait for a person."""
    seconds: float = 0.0
    profile: str = ""
    """The thresholds in force, and why."""
    router: str = ""
    """What the router learned, was refused or lost, in a sentence; empty: nothing."""


def turn(workspace: Workspace, *, run_stage: Callable[[str, Stage, Workspace], Any] | None = None) -> TurnSummary:
    """One turn under the store's lease. Raises StoreInUse while another turn is at work, SettingsError for a tools file.

    `run_stage(name, stage, workspace)` runs one stage; by default it is simply called. The thresholds are chosen anew
    once this turn's traces are in.
    """
    started = time.perf_counter()
    read_tools(workspace.settings)  # a file that cannot be read is said before anything is done, not where it is missed
    with holding(workspace.store, "turn") as lease:
        began_us = workspace.clock()
        run = derived_id("run", workspace.project, lease.holder, str(lease.attempt), str(began_us), str(started))
        at_work = workspace.acting(lease=lease, turn_id=run, actor=MACHINE)
        with at_work.write() as connection:
            begin_turn(connection, workspace.project, run, workspace.actor, began_us)
        results: dict[str, Any] = {}
        for name, stage in STAGES:
            results[name] = stage(at_work) if run_stage is None else run_stage(name, stage, at_work)
            if name == "pickup":
                at_work = at_work.with_profile()
        summary = _summary(at_work, run, results, time.perf_counter() - started)
        with at_work.write() as connection:
            end_turn(connection, run, workspace.clock(), "done", summary.model_dump(mode="json"))
            record_event(connection, workspace.project, at_us=workspace.clock(), actor=workspace.actor,
                         event="turned", subject=run, detail={"failures": summary.failures})  # fmt: skip
    return summary


def _summary(workspace: Workspace, run: str, results: dict[str, Any], seconds: float) -> TurnSummary:
    picked: PickedUp = results["pickup"]
    clustered: Clustered = results["cluster"]
    routed: Routed = results["route"]
    reviewed: AutoReviewed = results["review"]
    retrained: Retrained = results["retrain"]
    verified: Verified = results["verify"]
    return TurnSummary(
        run=run,
        traces_seen=picked.traces_seen,
        failures=picked.failures,
        clusters=clustered.clusters,
        routes=routed.routes,
        changes=reviewed.approved,
        retrain=_shown(retrained.evaluations),
        holds={"holding": verified.holding, "held": verified.held, "failed": verified.failed},
        waiting=reviewed.waiting + reviewed.held,
        seconds=round(seconds, 3),
        profile=workspace.profile_reason,
        router=routed.router,
    )


def _shown(evaluations: tuple[Retrain, ...]) -> dict[str, Any]:
    if not evaluations:
        return {"decision": "none", "reason": "no model is named in the settings ([weights.NAME])"}
    order = {"promoted": 0, "refused": 1, "rolled_back": 2, "skipped": 3}
    shown = min(evaluations, key=lambda each: order[each.decision])
    return {
        "retrain": shown.id,
        **shown.model_dump(mode="json", include={"model", "decision", "reason", "to_yes", "numbers", "arm", "version"}),
    }
