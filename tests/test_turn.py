"""The whole turn on a small log: what is picked up, where it goes, and that nothing is done twice."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.review import approve
from flows.turn import TurnSummary, turn
from flows.workspace import Workspace
from store.corrections import waiting
from store.errors import SettingsError, StoreInUse
from store.failures import cases_of, clusters_of, count_failures
from store.leases import holding
from store.ledger import events_of
from store.profile import labelled_counts
from store.retrains import retrains_of
from store.review_queue import review_queue
from store.status import status
from store.turns import begin_turn, turns_of
from tests.shop_log import (
    bad_argument,
    forgotten_fact,
    misread,
    said,
    satisfied,
    take_in,
    trace,
    unwritten_rule,
    working_in,
)


@pytest.fixture
def workspace(tmp_path: Path, store_url: str) -> Iterator[Workspace]:
    with working_in(tmp_path, url=store_url) as opened:
        yield opened


def places(workspace: Workspace) -> dict[str, str | None]:
    """Cluster name to the target proposed for it."""
    with workspace.store.read() as connection:
        queue = waiting(connection, workspace.project)
    return {name: found.proposal.target if found.proposal else None for found, name, _ in queue}


def test_each_kind_of_failure_goes_to_its_place(workspace: Workspace) -> None:
    take_in(workspace, *(satisfied(n) for n in range(40)), *(bad_argument(n) for n in range(40, 45)),
            *(unwritten_rule(n) for n in range(50, 55)), *(forgotten_fact(n) for n in range(60, 65)),
            *(misread(n) for n in range(70, 75)))  # fmt: skip
    summary = turn(workspace)
    assert (summary.traces_seen, summary.failures) == (60, 20)
    assert sorted(place or "none" for place in places(workspace).values()) == [
        "context",
        "memory",
        "tooling",
        "weights",
    ]


def test_a_second_turn_picks_up_nothing(workspace: Workspace) -> None:
    take_in(workspace, *(bad_argument(n) for n in range(3)))
    turn(workspace)
    again = turn(workspace)
    assert (again.traces_seen, again.failures, again.clusters, sum(again.routes.values())) == (0, 0, 0, 0)


def test_only_what_is_new_is_picked_up(workspace: Workspace) -> None:
    take_in(workspace, *(bad_argument(n) for n in range(3)))
    turn(workspace)
    take_in(workspace, *(bad_argument(n) for n in range(5)))
    summary = turn(workspace)
    assert (summary.traces_seen, summary.failures) == (2, 2)


def test_late_feedback_makes_a_failure_of_an_old_trace(workspace: Workspace) -> None:
    take_in(workspace, [trace(1, input="hi", output="no")])
    assert turn(workspace).failures == 0
    take_in(workspace, [said(1, day=5, name="thumb", score=0)])
    assert turn(workspace).failures == 1


def test_feedback_that_came_before_its_trace_counts(workspace: Workspace) -> None:
    take_in(workspace, [said(1, name="thumb", score=0)])
    assert turn(workspace).traces_seen == 0
    take_in(workspace, [trace(1, input="hi", output="no")])
    assert turn(workspace).failures == 1


def test_a_revised_verdict_withdraws_the_failure(workspace: Workspace) -> None:
    take_in(workspace, [trace(1, input="hi", output="no"), said(1, name="thumb", score=0)])
    turn(workspace)
    take_in(workspace, [said(1, day=1, name="thumb", score=1)])
    turn(workspace)
    with workspace.store.read() as connection:
        assert count_failures(connection, workspace.project) == 0
        assert clusters_of(connection, workspace.project) == []


def test_without_verdicts_everything_goes_to_a_person(workspace: Workspace) -> None:
    take_in(workspace, *(bad_argument(n) for n in range(5)))
    summary = turn(workspace)
    assert (summary.routes["review"], summary.changes, summary.waiting) == (1, 0, 1)


def test_no_training_without_the_minimum_evidence_and_a_row_says_why(workspace: Workspace) -> None:
    take_in(workspace, *(satisfied(n) for n in range(3)))
    summary = turn(workspace)
    with workspace.store.read() as connection:
        rows = retrains_of(connection, workspace.project)
    assert [(row.decision, row.estimator_fits) for row in rows] == [("skipped", 0)]
    assert "no approved failure waits" in summary.retrain["reason"]
    assert "more failures" in summary.retrain["to_yes"]


def test_a_turn_is_recorded(workspace: Workspace) -> None:
    summary = turn(workspace)
    with workspace.store.read() as connection:
        [found] = turns_of(connection, workspace.project)
    assert (found["id"], found["state"]) == (summary.run, "done")
    assert TurnSummary(**found["summary"]) == summary


def test_a_turn_whose_process_is_gone_was_interrupted(workspace: Workspace) -> None:
    with workspace.store.write() as connection:
        begin_turn(connection, workspace.project, "run_1", "staff:ann", 1)
    found = status(workspace.store)
    assert (found["last_turn"]["state"], found["next"]) == ("interrupted", "filmroom ingest LOG")
    with holding(workspace.store):
        assert status(workspace.store)["last_turn"]["state"] == "running"


def test_what_the_loop_decides_bears_no_persons_name(workspace: Workspace) -> None:
    take_in(workspace, *(bad_argument(n) for n in range(3)))
    turn(workspace)
    with workspace.store.read() as connection:
        [cluster] = clusters_of(connection, workspace.project)
        picked = [case.failure.id for case in cases_of(connection, cluster.id)]
        actors = [event["actor"] for id_ in picked for event in events_of(connection, workspace.project, id_)]
        [found] = turns_of(connection, workspace.project)
    assert (actors, found["actor"]) == (["filmroom"] * 3, workspace.actor)


def test_labels_without_a_trace_are_no_right_answers(workspace: Workspace) -> None:
    take_in(workspace, *([said(n, name="label", corrected_output="return")] for n in range(400)))
    with workspace.store.read() as connection:
        assert labelled_counts(connection, workspace.project)["right"] == 0


def test_a_change_that_fails_is_counted_in_the_turn_that_takes_it_back(workspace: Workspace) -> None:
    take_in(workspace, *(satisfied(n) for n in range(40)), *(bad_argument(n) for n in range(40, 60)))
    turn(workspace)
    approve(workspace, review_queue(workspace.store)[0]["correction"])
    take_in(workspace, *(bad_argument(n, day=900) for n in range(100, 140)))
    assert turn(workspace).holds["failed"] == 1


def test_two_turns_never_overlap(workspace: Workspace) -> None:
    with holding(workspace.store), pytest.raises(StoreInUse, match="is at work"):
        turn(workspace)


def test_projects_are_apart(workspace: Workspace) -> None:
    take_in(workspace, *(bad_argument(n) for n in range(3)))
    turn(workspace)
    with workspace.store.read() as connection:
        assert count_failures(connection, "another") == 0


def test_a_tools_file_that_is_missing_is_said_before_anything_is_done(tmp_path: Path) -> None:
    with working_in(tmp_path) as opened:
        take_in(opened, *(bad_argument(n) for n in range(3)))
        (opened.settings.home / "tools.json").unlink(missing_ok=True)
        agent = opened.settings.agent.model_copy(update={"tools": "tools.json"})
        without = opened.acting(settings=opened.settings.model_copy(update={"agent": agent}))
        with pytest.raises(SettingsError, match=r"\[agent\] tools: .*tools.json"):
            turn(without)
        with opened.store.read() as connection:
            assert turns_of(connection, opened.project) == []


def test_the_thresholds_fit_what_the_turn_itself_brought_in(workspace: Workspace) -> None:
    policy = workspace.settings.policy.model_copy(update={"profile": "auto"})
    unset = workspace.acting(settings=workspace.settings.model_copy(update={"policy": policy})).with_profile()
    take_in(workspace, *(satisfied(n) for n in range(20)), *(bad_argument(n) for n in range(20, 25)))
    reasons = [unset.profile_reason, turn(unset).profile]
    assert [reason.split(" formerly right")[0] for reason in reasons] == ["profile small: 0", "profile small: 20"]
