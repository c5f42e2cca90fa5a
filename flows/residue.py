"""Clusters of what fingerprints leave: unlike texts of one fingerprint are parted, alike single failures are joined.

A cluster keeps its id as it grows. What is split or merged is an event of the clusters it concerns, with a link that `why`
walks. A cluster whose correction somebody has judged, or that is applied, gives no failure away.
"""

from collections.abc import Collection, Sequence

from sqlalchemy import Connection

from flows.workspace import Workspace
from models.fingerprint import cluster_name
from models.residue import MOST, Group, named, pools, regroup, said, said_of_answer
from store.corrections import open_correction, set_state
from store.failures import cases_in, clusters_of, make_cluster, mark_changed, move_failures, point_to
from store.ledger import record_event
from store.opinions import opinions_on
from store.records import Cluster, Fingerprint, derived_id, short_hash


def regroup_residue(workspace: Workspace, changed: Collection[str]) -> set[str]:
    """Look again at the vague clusters among those that got new failures; returns the clusters that got some by it."""
    with workspace.store.read() as connection:
        found = pools(clusters_of(connection, workspace.project), changed)
    touched: set[str] = set()
    for base, clusters in found:
        with workspace.write() as connection:
            touched |= _regroup(connection, workspace, base, clusters)
    return touched


def _regroup(connection: Connection, workspace: Workspace, base: Fingerprint, clusters: Sequence[Cluster]) -> set[str]:
    known = {each.id: each for each in clusters}
    told = said_of_answer if base.intent else said
    them = [told(case) for case in cases_in(connection, list(known), MOST)]
    groups = regroup(
        them,
        owners={each.id for each in clusters if each.fingerprint.topic},
        frozen={id_ for id_ in known if is_settled(connection, workspace, id_)},
        answers=bool(base.intent),
        singles={each.id for each in clusters if each.failures == 1},
        seed=workspace.settings.seed,
    )
    left = {id_: each.failures for id_, each in known.items()}
    return {_carry_out(connection, workspace, base, group, known, left) for group in groups}


def is_settled(connection: Connection, workspace: Workspace, cluster_id: str) -> bool:
    """Whether somebody has judged its correction, or it is live."""
    newest = open_correction(connection, cluster_id)
    if newest is None:
        return False
    return newest.state != "proposed" or bool(opinions_on(connection, workspace.project, newest.id))


def _carry_out(
    connection: Connection,
    workspace: Workspace,
    base: Fingerprint,
    group: Group,
    known: dict[str, Cluster],
    left: dict[str, int],
) -> str:
    now_us = workspace.clock()
    into = group.owner or _new(connection, workspace, base, group, now_us)
    move_failures(connection, group.failures, into)
    mark_changed(connection, into, now_us)
    for id_, count in group.come_from.items():
        left[id_] -= count
        mark_changed(connection, id_, now_us)
        if left[id_] == 0:
            merge(connection, workspace, id_, into, count, now_us)
            continue
        tell(connection, workspace, id_, "split", f"{count} of its failures say something else", into, count, now_us)
    tell(connection, workspace, into, "regrouped", f"{len(group.failures)} failures say alike", into, len(group.failures),
          now_us, causes=[*group.come_from, *group.failures])  # fmt: skip
    return into


def _new(connection: Connection, workspace: Workspace, base: Fingerprint, group: Group, now_us: int) -> str:
    key = short_hash(base.key, *sorted(group.failures))
    id_ = derived_id("clu", workspace.project, str(base.version), key)
    name = named(cluster_name(base), group.topic, id_)
    make_cluster(connection, workspace.project, id_, base.model_copy(update={"topic": key}), name, now_us)
    return id_


def merge(connection: Connection, workspace: Workspace, id_: str, into: str, count: int, now_us: int) -> None:
    """The whole cluster is part of another now: what comes with its fingerprint goes there, and its open proposal is closed."""
    point_to(connection, workspace.project, id_, into)
    newest = open_correction(connection, id_)
    if newest is not None and newest.state == "proposed":
        set_state(connection, newest.id, "reverted")
        tell(connection, workspace, newest.id, "closed", f"its cluster is part of {into} now", into, count, now_us)
    tell(connection, workspace, id_, "merged", f"its failures say the same as those of {into}", into, count, now_us)


def tell(
    connection: Connection,
    workspace: Workspace,
    subject: str,
    event: str,
    reason: str,
    into: str,
    count: int,
    now_us: int,
    *,
    causes: Sequence[str] = (),
) -> None:
    """Record what became of a cluster, with the cluster that `count` failures went into."""
    record_event(connection, workspace.project, at_us=now_us, actor=workspace.actor, event=event, subject=subject,
                 reason=reason, causes=causes, detail={"into": into, "failures": count})  # fmt: skip
