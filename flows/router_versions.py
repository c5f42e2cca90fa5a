"""The router in force: learned from verdicts as they come, gated, shadowed, taken back; every version of it is an event."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from flows.workspace import Workspace
from models.deployment import Deployment
from models.learned_router import HELD, REVIEWED, TrainingRow
from models.router import NONE, PRIOR, Router
from models.router_gate import MORE, Candidate, ScoredRow, candidate, shadowed, too_few
from models.router_state import RouterState, look_against, state_of, versions_of
from models.router_version import fair_probabilities, router_of, version_of
from models.shadow import HARM, Shadowed
from store.records import RouterEvent, RouterVersion
from store.router_log import put_router_event, router_events
from store.verdicts import DecidedCluster, decided_clusters

ROUTER_ACTOR = "router"
"""Who approves what is certified; its own approvals never calibrate it."""


@dataclass(frozen=True)
class InForce:
    """The router that decides, what it was before, and what they are held to."""

    router: Router
    reason: str
    """Why this router."""
    pinned: str
    """What keeps the rules in force, whatever is learned; empty: nothing does."""
    version: RouterVersion | None
    """What it was learned as; None: the rules."""
    before: RouterVersion | None
    """The version it replaced; None: the rules, or nothing."""
    state: RouterState
    events: tuple[RouterEvent, ...]
    """The router's whole history, oldest first."""
    decided: tuple[DecidedCluster, ...]
    deployment: Deployment

    @property
    def known(self) -> list[DecidedCluster]:
        """The decided clusters whose right place is known: a fix that failed only says where it was not."""
        return [each for each in self.decided if each.held is not False]

    def said(self, version: RouterVersion | None, clusters: Sequence[DecidedCluster]) -> list[dict[str, float] | None]:
        """What this version (None: the rules) says of each without having learnt from it; None: it has learnt from it."""
        router = PRIOR if version is None else router_of(version)
        return [
            fair_probabilities(
                router, version, each.evidence, correction=each.correction_id, cluster=each.cluster_id,
                deployment=self.deployment,
            )
            for each in clusters
        ]  # fmt: skip

    @property
    def shadow(self) -> Shadowed | None:
        """The router before, on the verdicts that the version in force has not learnt from; None: the rules decide.

        Where a person let it decide again, only on those since: what was known then does not overrule them.
        """
        if self.version is None:
            return None
        since_us = self.state.put_back_us or 0
        learnt = set(self.version.clusters)
        fresh = [each for each in self.known if each.cluster_id not in learnt and each.decided_us >= since_us]
        pairs = zip(fresh, self.said(self.before, fresh), self.said(self.version, fresh), strict=True)
        return shadowed(
            [
                ScoredRow(valid=row_of(each).valid, champion=was, challenger=now)
                for each, was, now in pairs
                if was is not None and now is not None
            ]
        )


def in_force(workspace: Workspace, connection: Connection) -> InForce:
    """From the router's history and every verdict and ended hold so far; without a version, the rules."""
    machines = {ROUTER_ACTOR, workspace.policy.reviewer or ROUTER_ACTOR}
    decided = decided_clusters(connection, workspace.project, machines=machines)
    events = router_events(connection, workspace.project)
    state, versions = state_of(events), versions_of(events)
    pinned = _pinned(workspace, state)
    version = None if state.version is None or pinned else versions[state.version]
    return InForce(
        router=PRIOR if version is None else router_of(version),
        reason=_reason(state, version, pinned, decided),
        pinned=pinned,
        version=version,
        before=None if version is None else versions.get(version.parent),
        state=state,
        events=tuple(events),
        decided=tuple(decided),
        deployment=workspace.deployment(connection),
    )


def _pinned(workspace: Workspace, state: RouterState) -> str:
    """What keeps the rules in force; empty: nothing does."""
    if workspace.settings.policy.router == "rules":
        return "`[policy] router` says rules"
    if state.pin is None:
        return ""
    return f"pinned by {state.pin.actor}" + (f": {state.pin.reason}" if state.pin.reason else "")


def _reason(state: RouterState, version: RouterVersion | None, pinned: str, decided: Sequence[DecidedCluster]) -> str:
    if version is not None and state.changed is not None:
        return f"{version.id}: {state.changed.reason}"
    refused = "" if state.refused is None else f"a candidate was {state.refused.reason}"
    said = refused or ("" if state.changed is None else state.changed.reason)
    rows = [row_of(each) for each in decided if each.held is not False]
    waits = f"{len(rows)} decided clusters, and the next turn lets a learned router compete"
    return f"{PRIOR.version}: {pinned or said or too_few(rows) or waits}"


def row_of(each: DecidedCluster) -> TrainingRow:
    """What a decided cluster teaches."""
    return TrainingRow(
        evidence=each.evidence,
        valid=frozenset({each.place or NONE}),
        weight=HELD if each.held else REVIEWED,
        group=each.cluster_id,
    )


def learn(workspace: Workspace) -> str:
    """Take the version in force back where its shadow shows harm, else learn the next where enough was decided since.

    The sentence to tell people; empty: nothing happened. Nothing does while the rules are pinned.
    """
    with workspace.store.read() as connection:
        now = in_force(workspace, connection)
    if now.pinned:
        return ""
    shadow = now.shadow
    if now.version is not None and shadow is not None and shadow.harms:
        before = PRIOR.version if now.before is None else now.before.id
        reason = _harm(now.version.id, before, shadow)
        event = rolled_back(workspace, now, now.version.id, to=before, reason=reason, shadow=shadow)
        return _recorded(workspace, now, event)
    rows = [row_of(each) for each in now.known]
    if too_few(rows) or len(rows) < now.state.judged + MORE:
        return ""
    found = candidate(
        rows,
        now.said(now.version, now.known),
        champion=now.router.version,
        deployment=now.deployment,
        look=look_against(now.events, now.router.version),
        fresh=[each.cluster_id not in now.state.learnt for each in now.known],
    )
    return _recorded(workspace, now, _judged(workspace, now, found))


def _judged(workspace: Workspace, now: InForce, found: Candidate) -> RouterEvent:
    """The candidate as a version that decides from now on, or as one that was refused."""
    version = version_of(
        found.fit,
        found.gate,
        corrections=[each.correction_id for each in now.known],
        clusters=[each.cluster_id for each in now.known],
        reviews=[each.review_id for each in now.known],
    )
    learned = {"router": version.id, "version": version.model_dump(mode="json")}
    refused = {"gate": found.gate.model_dump(mode="json")}
    return RouterEvent(
        at_us=workspace.clock(),
        actor=workspace.actor,
        event="learned" if found.gate.passed else "refused",
        subject=version.id,
        reason=found.gate.reason,
        detail={"decided": len(now.known), **(learned if found.gate.passed else refused)},
    )


def rolled_back(
    workspace: Workspace, now: InForce, taken: str, *, to: str, reason: str, shadow: Shadowed | None = None
) -> RouterEvent:
    """`taken` no longer decides and `to` does. What was decided until now brings nothing back: a candidate needs more."""
    shown = None if shadow is None else shadow.model_dump(mode="json")
    return RouterEvent(
        at_us=workspace.clock(),
        actor=workspace.actor,
        event="rolled back",
        subject=taken,
        reason=reason,
        detail={"router": to, "decided": len(now.known), "shadow": shown},
    )


def _recorded(workspace: Workspace, now: InForce, event: RouterEvent) -> str:
    """Write the event where the router is still the one it is about; what people are told."""
    with workspace.write() as connection:
        if len(router_events(connection, workspace.project)) != len(now.events):
            return ""
        put_router_event(connection, workspace.project, event, causes=_causes(now, event))
    if event.event == "refused":
        return f"{now.router.version} goes on to route: a candidate was {event.reason}"
    if event.event == "learned":
        return f"{event.subject} routes from now on: {event.reason}; to take it back: filmroom undo {event.subject}"
    return f"{event.detail['router']} routes again: {event.reason}"


def _causes(now: InForce, event: RouterEvent) -> list[str]:
    """The learned router it was set against, and the verdicts that came since that or, of a refusal, since the last look."""
    if event.event == "rolled back":
        return []
    learnt = set() if now.version is None else set(now.version.reviews)
    fresh = [each.review_id for each in now.known if each.review_id not in learnt]
    if event.event == "refused":
        fresh = fresh[-max(event.decided - now.state.judged, 1) :]
    return [*fresh] if now.version is None else [now.version.id, *fresh]


def _harm(taken: str, before: str, shadow: Shadowed) -> str:
    return (
        f"{taken} was taken back: of {shadow.judged} clusters decided since it learned, {before} was right on "
        f"{shadow.lost} where it was wrong, and wrong on {shadow.won} where it was right "
        f"(e-value {shadow.evidence:.0f}, {HARM:.0f} rolls back)"
    )
