"""One fault on several channels is one cluster and one correction; a fault of one channel stays of that channel."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flows.opinions import give_opinion
from flows.pickup import pickup
from flows.route import cluster, route
from flows.workspace import Workspace
from store.corrections import waiting
from store.failures import clusters_of
from store.ledger import events_of
from store.records import Cluster
from store.why import why
from tests.shop_log import said, satisfied, take_in, trace, working_in

RULE = "You must always ask for the receipt first."


def failing(start: int, count: int, channel: str, comment: str = RULE) -> list[dict[str, Any]]:
    """A policy that the agent does not know, told by its customers."""
    return [
        line
        for n in range(start, start + count)
        for line in (
            trace(n, channel=channel, input=f"take back order {n}", output="It is taken back."),
            said(n, name="thumb", score=0, comment=comment),
        )
    ]


def fine(start: int, count: int, channel: str) -> list[dict[str, Any]]:
    return [line for n in range(start, start + count) for line in satisfied(n, channel=channel)]


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with working_in(tmp_path) as opened:
        yield opened


def turned(workspace: Workspace, *groups: list[dict[str, Any]]) -> list[Cluster]:
    """The clusters after these lines were taken in and routed, largest first."""
    take_in(workspace, *groups)
    for stage in (pickup, cluster, route):
        stage(workspace)
    with workspace.store.read() as connection:
        return clusters_of(connection, workspace.project)


def test_one_fault_on_two_channels_is_one_cluster_and_one_correction(workspace: Workspace) -> None:
    found = turned(workspace, failing(0, 6, "web"), failing(100, 4, "app"), fine(200, 12, "web"), fine(300, 9, "app"))
    assert [(each.failures, each.fingerprint.scope, " on " in each.name) for each in found] == [(10, "", False)]
    with workspace.store.read() as connection:
        [(correction, _, _)] = waiting(connection, workspace.project)
    assert correction.proposal is not None
    assert [each.value.get("scope") for each in correction.proposal.operations] == [{}]


def test_a_fault_of_one_channel_stays_of_that_channel(workspace: Workspace) -> None:
    found = turned(workspace, failing(0, 12, "web"), failing(100, 2, "app"), fine(200, 4, "web"), fine(300, 30, "app"))
    assert [(each.failures, each.fingerprint.scope) for each in found] == [(12, "web"), (2, "app")]


def test_the_older_cluster_keeps_its_id_and_what_comes_later_goes_there(workspace: Workspace) -> None:
    [first] = turned(workspace, failing(0, 5, "web"), fine(200, 10, "web"))
    [both] = turned(workspace, failing(100, 5, "app"), fine(300, 10, "app"))
    [later] = turned(workspace, failing(120, 1, "app"), failing(130, 1, "web"))
    assert (first.fingerprint.scope, both.id) == ("web", first.id)
    assert (later.id, later.failures) == (first.id, 12)
    with workspace.store.read() as connection:
        [(correction, _, _)] = waiting(connection, workspace.project)
        assert correction.proposal is not None
        assert "channel" not in str(correction.proposal.operations)
        causes = {node["id"] for node in why(connection, workspace.project, first.id)["causes"]}
        gone = next(id_ for id_ in causes if id_.startswith("clu_") and id_ != first.id)
        assert "merged" in {event["event"] for event in events_of(connection, workspace.project, gone)}


def test_a_correction_that_somebody_judged_stays_of_its_channel(workspace: Workspace) -> None:
    turned(workspace, failing(0, 5, "web"), fine(200, 10, "web"))
    with workspace.store.read() as connection:
        [(correction, _, _)] = waiting(connection, workspace.project)
    give_opinion(workspace, correction.id, "defer")
    found = turned(workspace, failing(100, 5, "app"), fine(300, 10, "app"))
    assert sorted(each.fingerprint.scope for each in found) == ["app", "web"]
