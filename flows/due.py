"""Which clusters are routed, again or for the first time."""

from sqlalchemy import Connection

from flows.workspace import Workspace
from store.corrections import open_correction, route_of
from store.records import Cluster, Correction

GROWTH = 1.5
"""A waiting correction is routed again when its cluster has grown by this factor."""


def is_due(connection: Connection, workspace: Workspace, each: Cluster) -> bool:
    """Whether it has no open correction, or has grown, shrunk or become wider since the waiting one was routed."""
    if each.failures < workspace.policy.min_cluster:
        return False
    newest = open_correction(connection, each.id)
    if newest is None or newest.state == "reverted":
        return newest is None or not each.no_single_place
    decided = route_of(connection, newest.id)
    seen = 0 if decided is None else decided.failures
    if newest.state == "proposed" and (each.failures < seen or _is_too_narrow(newest, each)):
        return True
    if newest.state in ("proposed", "deferred", "rejected"):
        return each.failures >= max(seen + 1, seen * GROWTH)
    learns = newest.proposal is not None and newest.proposal.target == "weights"
    return learns and each.failures > seen


def _is_too_narrow(newest: Correction, each: Cluster) -> bool:
    """Whether it proposes something for one channel, of a cluster that is about every channel by now."""
    operations = newest.proposal.operations if newest.proposal is not None else ()
    scopes = [operation.value.get("scope") for operation in operations]
    return not each.fingerprint.scope and any(isinstance(scope, dict) and "channel" in scope for scope in scopes)
