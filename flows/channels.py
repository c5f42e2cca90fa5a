"""Clusters that differ in nothing but the channel, and are as frequent on each, become one: the oldest, which keeps its id."""

from collections.abc import Collection

from sqlalchemy import Connection

from flows.residue import is_settled, merge, tell
from flows.workspace import Workspace
from models.channels import merges, widened_name, without_channel
from store.exposures import judged
from store.failures import clusters_of, mark_changed, move_cluster, widen
from store.records import Cluster

JUDGED = 1000
"""Newest judged traces that rates are computed over."""


def join_channels(workspace: Workspace, changed: Collection[str]) -> set[str]:
    """Merge what differs from a changed cluster in the channel alone; returns the clusters that got failures by it.

    A cluster whose correction somebody has judged, or that is live, is left as it is: its fix may be of its channel.
    """
    with workspace.store.read() as connection:
        known = _families(clusters_of(connection, workspace.project), changed)
        open_ = [each for each in known if not is_settled(connection, workspace, each.id)]
        seen = judged(connection, workspace.project, dated=False, limit=JUDGED) if len(open_) > 1 else []
    into = merges(open_, seen)
    by_id = {each.id: each for each in open_}
    with workspace.write() as connection:
        for from_id, into_id in into.items():
            _merge(connection, workspace, by_id[from_id], by_id[into_id])
        for id_ in sorted(set(into.values())):
            each = by_id[id_]
            widen(connection, id_, without_channel(each.fingerprint), widened_name(each))
    return set(into.values())


def _families(known: list[Cluster], changed: Collection[str]) -> list[Cluster]:
    """The changed clusters and those that differ from one in the channel alone, oldest first."""
    touched = {without_channel(each.fingerprint).key for each in known if each.id in changed}
    alike = [each for each in known if without_channel(each.fingerprint).key in touched]
    return sorted(alike, key=lambda each: (each.created_us, each.id))


def _merge(connection: Connection, workspace: Workspace, gone: Cluster, into: Cluster) -> None:
    now_us = workspace.clock()
    move_cluster(connection, gone.id, into.id)
    merge(connection, workspace, gone.id, into.id, gone.failures, now_us)
    channels = [each.fingerprint.scope or "no channel" for each in (into, gone)]
    tell(connection, workspace, into.id, "regrouped", f"as frequent on {channels[0]} as on {channels[1]}", into.id,
         gone.failures, now_us, causes=[gone.id])  # fmt: skip
    for id_ in (gone.id, into.id):
        mark_changed(connection, id_, now_us)
