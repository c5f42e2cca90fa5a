"""What a served model has learnt of the corrections: those are applied and watched, the others wait for a retrain."""

from collections.abc import Iterable

from sqlalchemy import Connection

from flows.apply import start_hold
from flows.lineage import learnt_traces
from flows.workspace import Workspace
from store.changes import changes_of, remove_hold
from store.corrections import correction, set_state
from store.records import Change, Version
from store.retrains import retrains_of


def settle(connection: Connection, workspace: Workspace, corrections: Iterable[str]) -> None:
    """These corrections were learnt: they are applied now, and the newest of each cluster is watched."""
    newest: dict[str, Change] = {}
    for correction_id in corrections:
        found = correction(connection, workspace.project, correction_id)
        set_state(connection, correction_id, "applied")
        for change in changes_of(connection, workspace.project, correction_id=correction_id, state="live"):
            known = newest.get(found.cluster_id)
            if known is None or known.applied_us <= change.applied_us:
                newest[found.cluster_id] = change
    for cluster_id, change in newest.items():
        start_hold(connection, workspace, change.model_copy(update={"applied_us": workspace.clock()}), cluster_id)


def settle_anew(connection: Connection, workspace: Workspace, name: str, live: Version | None) -> None:
    """After `live` came to be served in place of a version of the model that is not its parent: what it has not learnt waits
    again as approved, unwatched; what it has learnt is applied."""
    learnt = learnt_traces(live, retrains_of(connection, workspace.project, name))
    taught = []
    for change in changes_of(connection, workspace.project, target="weights", state="live"):
        if change.operations[0].value["model"] != name:
            continue
        state = correction(connection, workspace.project, change.correction_id).state
        is_learnt = any(operation.key in learnt for operation in change.operations)
        if is_learnt and state == "approved":
            taught.append(change.correction_id)
        if not is_learnt and state == "applied":
            set_state(connection, change.correction_id, "approved")
            remove_hold(connection, change.id)
    settle(connection, workspace, taught)
