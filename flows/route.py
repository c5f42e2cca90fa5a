"""Cluster and route: failures with the same fingerprint become one cluster, and each cluster gets a place, or a person."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from flows.calibration import Calibration, calibrate
from flows.channels import join_channels
from flows.due import is_due
from flows.judge import Judge
from flows.residue import regroup_residue
from flows.router_versions import learn
from flows.targets import FLOWS
from flows.tried import replayable, replayed_ratios
from flows.workspace import Workspace
from models.audit_monitor import is_audited
from models.evidence import weigh
from models.features.material import Material
from models.fingerprint import cluster_name, fingerprint
from models.judge_opinion import CASES as SHOWN
from models.router import Decision, decide
from models.way import ways_to_decide
from store.changes import changes_of
from store.corrections import attempts, put_correction, put_route
from store.failures import cases_of, cluster_for, clusters_of, mark_changed, newest_failing, place_all, unclustered
from store.ledger import events_of, record_event
from store.records import TARGETS, Case, Cluster, Correction, Episode, Proposal, Record, Route, RouterEvent, Target
from store.router_log import ROUTER, put_router_event
from store.traces import episodes, satisfied_ids

BATCH = 1000
"""Failures a transaction."""
CASES = 200
"""Newest cases of a cluster that evidence is computed from."""
SATISFIED = 300
"""Newest satisfied traces that clusters are compared with."""
BATCH_SEEN = 300
"""Newest failing traces that a broken component would show in."""


class Clustered(Record):
    """What clustering did."""

    clusters: int = 0
    """Clusters that got new failures."""

    def markdown(self) -> str:
        return f"**{self.clusters}** clusters got new failures."


class Routed(Record):
    """Where corrections were sent this turn."""

    routes: dict[str, int]
    """Corrections per most probable place: the four targets, `none`, and `review` for those that a person decides."""
    lines: tuple[str, ...] = ()
    """A sentence a correction, largest cluster first."""
    router: str = ""
    """What the router learned, was refused or lost this turn; empty: nothing."""

    def markdown(self) -> str:
        counts = " · ".join(f"{name} {count}" for name, count in self.routes.items())
        said = [f"Router: {self.router}", ""] if self.router else []
        return "\n".join([f"Routes: {counts}", "", *said, *(f"* {line}" for line in self.lines)])


@dataclass(frozen=True)
class Around:
    """What every cluster of a turn is weighed against."""

    satisfied: Sequence[Episode]
    batch: Sequence[Episode]
    """What failed last, of whatever cluster."""
    calibration: Calibration


def cluster(workspace: Workspace) -> Clustered:
    """Put every failure that has no cluster yet into the one with its fingerprint; what that leaves is grouped by its texts."""
    changed: set[str] = set()
    while True:
        with workspace.write() as connection:
            cases = unclustered(connection, workspace.project, BATCH)
            if cases:
                changed.update(_place(connection, workspace, cases))
        if not cases:
            changed |= join_channels(workspace, changed)
            return Clustered(clusters=len(changed | regroup_residue(workspace, changed)))


def _place(connection: Connection, workspace: Workspace, cases: Sequence[Case]) -> set[str]:
    now_us = workspace.clock()
    touched: dict[str, list[str]] = {}
    known: dict[str, str] = {}
    placed = []
    for case in cases:
        print_ = fingerprint(case)
        if print_.key not in known:
            known[print_.key] = cluster_for(connection, workspace.project, print_, cluster_name(print_), now_us)
        cluster_id = known[print_.key]
        placed.append((case.failure.id, print_, cluster_id))
        touched.setdefault(cluster_id, []).append(case.failure.id)
    place_all(connection, placed)
    for cluster_id, failure_ids in touched.items():
        mark_changed(connection, cluster_id, now_us)
        record_event(
            connection,
            workspace.project,
            at_us=now_us,
            actor=workspace.actor,
            event="clustered",
            subject=cluster_id,
            causes=failure_ids,
            detail={"failures": len(failure_ids)},
        )
    return set(touched)


def route(workspace: Workspace) -> Routed:
    """Decide for each cluster that is new, has grown, or lost its correction; one transaction a cluster."""
    counts = dict.fromkeys((*TARGETS, "none", "review"), 0)
    lines: list[str] = []
    learnt = learn(workspace)
    with workspace.store.read() as connection:
        calibration = calibrate(workspace, connection)
        pending = [each for each in clusters_of(connection, workspace.project) if is_due(connection, workspace, each)]
        fine = satisfied_ids(connection, workspace.project, limit=SATISFIED) if pending else []
        neighbours = episodes(connection, fine)
        batch = _failing(connection, workspace) if pending else []
    judge = Judge(workspace)
    _say_router(workspace, calibration)
    for each in pending:
        said = _judged(workspace, judge, each)  # asked before the transaction, which others wait for
        with workspace.write() as connection:
            decided = _route(connection, workspace, each, Around(neighbours, batch, calibration), said)
        counts[decided.target or "none"] += 1
        counts["review"] += not decided.certified
        lines.append(f"{each.name} ({each.failures}): {decided.target or 'no place'}; {decided.reason}")
    told = (*lines, judge.line) if judge.is_set and pending else tuple(lines)
    return Routed(routes=counts, lines=told, router=learnt)


def _say_router(workspace: Workspace, calibration: Calibration) -> None:
    """Another router than last time is an event, with the numbers of the comparison that it won or lost."""
    version = calibration.router.version
    said = [str(each.detail["router"]) for each in calibration.in_force.events if "router" in each.detail]
    if said and said[-1] == version:
        return
    with workspace.write() as connection:
        event = RouterEvent(at_us=workspace.clock(), actor=workspace.actor, event="router in force", subject=ROUTER,
                            reason=calibration.reason, detail={"router": version})  # fmt: skip
        put_router_event(connection, workspace.project, event)


def _judged(workspace: Workspace, judge: Judge, each: Cluster) -> dict[str, float | None]:
    if not judge.is_set:
        return {}
    with workspace.store.read() as connection:
        cases = cases_of(connection, each.id, SHOWN)
    return judge.evidence(each.name, cases)


def _failing(connection: Connection, workspace: Workspace) -> list[Episode]:
    """The traces that failed last, of whatever cluster."""
    return episodes(connection, newest_failing(connection, workspace.project, BATCH_SEEN))


def _route(
    connection: Connection, workspace: Workspace, each: Cluster, around: Around, said: dict[str, float | None]
) -> Route:
    cases = cases_of(connection, each.id, CASES)
    history = attempts(connection, each.id)
    deployment = workspace.deployment(connection, _failed_attempts(connection, history))
    deployment = deployment.model_copy(update={"calibration": around.calibration.counts})
    evidence = weigh(cases, around.satisfied, deployment=deployment, policy=workspace.policy, batch=around.batch)
    evidence |= said
    replayed = replayed_ratios(connection, history)
    decision = decide(
        evidence,
        deployment=deployment,
        policy=workspace.policy,
        failures=each.failures,
        router=around.calibration.router,
        certificates=around.calibration.certificates,
        replayed=replayed,
    )
    correction = _correction(workspace, each, history)
    fresh = _unlearnt(cases, history)
    material = Material(
        cases=tuple(fresh), satisfied=tuple(around.satisfied), deployment=deployment, policy=workspace.policy
    )
    proposal = propose(each, material, decision.target)
    correction = correction.model_copy(update={"proposal": proposal, "state": "proposed"})
    put_correction(connection, correction)
    decision, audited = _drawn(workspace, correction, decision)
    named = Material(tuple(cases), (), deployment, workspace.policy)
    ways = ways_to_decide(named, decision, replayable=replayable(workspace, proposal, replayed))
    decided = _as_route(workspace, correction, decision, evidence, each)
    decided = decided.model_copy(update={"audited": audited, "ways": ways})
    put_route(connection, decided)
    record_event(
        connection,
        workspace.project,
        at_us=decided.decided_us,
        actor=workspace.actor,
        event="routed",
        subject=correction.id,
        reason=decided.reason,
        causes=[each.id],
        detail={"target": decided.target, "probabilities": decided.probabilities, "router": decided.router},
    )
    return decided


def _drawn(workspace: Workspace, correction: Correction, decision: Decision) -> tuple[Decision, bool]:
    """A certified decision that is drawn for the blind audit looks like any other: a person decides, unaware of it."""
    if not decision.certified or not is_audited(correction.id, seed=workspace.settings.seed):
        return decision, False
    reason = f"{decision.reason.split('. It goes without a person')[0]}. A person decides."
    return decision.model_copy(update={"certified": False, "reason": reason, "to_yes": "approve or reroute it"}), True


def propose(cluster: Cluster, material: Material, target: Target | None) -> Proposal | None:
    """The change that would correct the cluster in this target; None: no target, so nothing to change."""
    return None if target is None else FLOWS[target].propose(cluster, material)


def _correction(workspace: Workspace, each: Cluster, history: Sequence[Correction]) -> Correction:
    """The one that waits, or a new attempt where the last was decided."""
    if history and history[-1].state in ("proposed", "deferred", "rejected"):
        return history[-1]
    return Correction(
        project=workspace.project, cluster_id=each.id, attempt=len(history) + 1, created_us=workspace.clock()
    )


def _unlearnt(cases: Sequence[Case], history: Sequence[Correction]) -> Sequence[Case]:
    """The cases that no approved row of training data covers yet; all of them where nothing is learnt."""
    learnt = {
        operation.key
        for correction in history
        if correction.state in ("approved", "applied") and correction.proposal is not None
        for operation in correction.proposal.operations
        if operation.verb == "dataset_add"
    }
    return [case for case in cases if case.failure.trace_id not in learnt] or cases


def _failed_attempts(connection: Connection, history: Sequence[Correction]) -> dict[str, int]:
    """Place to how often something was tried there and taken back. What went with a rollback of the whole release was not
    judged, and what was closed before it was applied was not tried."""
    failed: Counter[str] = Counter()
    for correction in history:
        if correction.state != "reverted" or correction.proposal is None:
            continue
        made = changes_of(connection, correction.project, correction_id=correction.id)
        ends = [event for each in made for event in events_of(connection, correction.project, each.id)]
        ended = [event for event in ends if event["event"] == "reverted"]
        failed[correction.proposal.target] += bool(ended and not ended[-1]["detail"].get("rollback"))
    return dict(+failed)


def _as_route(
    workspace: Workspace,
    correction: Correction,
    decision: Decision,
    evidence: dict[str, float | None],
    each: Cluster,
) -> Route:
    return Route(
        project=workspace.project,
        correction_id=correction.id,
        cluster_id=each.id,
        decided_us=workspace.clock(),
        probabilities=decision.probabilities,
        target=decision.target,
        runner_up=decision.runner_up,
        certified=decision.certified,
        reason=decision.reason,
        to_yes=decision.to_yes,
        evidence=evidence,
        failures=each.failures,
        router=decision.router,
        order=decision.order,
        policy=workspace.policy.model_dump(mode="json"),
        settings_digest=workspace.settings.digest,
        seed=workspace.settings.seed,
    )
