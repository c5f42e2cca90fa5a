"""A rule that does nothing measurable is proposed for retirement, once; a person decides. What a check refuses is held."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from filmroom.live_state import live_state
from flows.auto_review import auto_review
from flows.edit import edit
from flows.retire import propose_retirements
from flows.review import approve, reject
from flows.turn import turn
from flows.undo import undo
from flows.workspace import Workspace
from store.changes import hold_of_change, live_holds, put_hold
from store.corrections import put_route, route_of
from store.ledger import events_of
from store.review_queue import review_item, review_queue
from tests.shop_log import satisfied, take_in, trace, unwritten_rule, working_in


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """One rule, approved for a failure."""
    with working_in(tmp_path) as opened:
        take_in(opened, *(satisfied(n) for n in range(20)), *(unwritten_rule(n) for n in range(50, 55)))
        turn(opened)
        [row] = review_queue(opened.store)
        approve(opened, row["correction"], answer="Offer a voucher.")
        yield opened


def rules(workspace: Workspace) -> list[str]:
    return [each["text"] for each in live_state(workspace)["context"]]


def seen(workspace: Workspace, **numbers: Any) -> None:
    """Give the rule's hold these numbers, as a season of exposures would."""
    with workspace.store.write() as connection:
        [(_, hold)] = live_holds(connection, workspace.project)
        put_hold(connection, hold.model_copy(update=numbers))


def test_a_rule_without_effect_is_proposed_for_retirement_once(workspace: Workspace) -> None:
    seen(workspace, baseline=0.3, exposures=60, recurrences=14)
    assert len(propose_retirements(workspace)) == 1
    assert propose_retirements(workspace) == []
    [row] = review_queue(workspace.store)
    assert row["summary"].endswith("it had no measured effect: 23% of 60 exposures fail, 30% did before")
    assert rules(workspace) == ["Offer a voucher."]


def test_a_person_retires_it_and_undo_brings_it_back_watched(workspace: Workspace) -> None:
    seen(workspace, baseline=0.3, exposures=60, recurrences=14)
    propose_retirements(workspace)
    done = approve(workspace, review_queue(workspace.store)[0]["correction"])
    with workspace.store.read() as connection:
        assert (rules(workspace), live_holds(connection, workspace.project)) == ([], [])
    undo(workspace, str(done.change))
    with workspace.store.read() as connection:
        assert (rules(workspace), len(live_holds(connection, workspace.project))) == (["Offer a voucher."], 1)


def test_one_that_a_person_keeps_is_not_proposed_again(workspace: Workspace) -> None:
    seen(workspace, baseline=0.3, exposures=60, recurrences=14)
    propose_retirements(workspace)
    reject(workspace, review_queue(workspace.store)[0]["correction"], reason="it is the law")
    assert propose_retirements(workspace) == []


@pytest.mark.parametrize(
    "numbers", [{"baseline": 0.3, "exposures": 60, "recurrences": 2}, {"baseline": 0.3, "exposures": 10, "recurrences": 3},
                {"baseline": None, "exposures": 900, "recurrences": 300}, {"baseline": 0.3, "exposures": 60, "state": "held"}],
)  # fmt: skip
def test_one_that_works_or_is_too_young_is_left_alone(workspace: Workspace, numbers: dict[str, Any]) -> None:
    seen(workspace, **numbers)
    assert propose_retirements(workspace) == []


def test_one_that_was_in_scope_of_nothing_is_proposed(workspace: Workspace) -> None:
    release = live_state(workspace)["release"]
    key = live_state(workspace)["context"][0]["id"]
    take_in(
        workspace,
        *([trace(1000 + n, day=400, input="hi", output="ho", release=release, channel="app")] for n in range(210)),
    )
    turn(workspace)
    assert live_state(workspace)["context"][0]["used"] == 210
    assert propose_retirements(workspace) == []
    with workspace.store.read() as connection:
        assert [each.operations[0].key for each, _ in live_holds(connection, workspace.project)] == [key]


def test_a_certified_correction_that_a_check_refuses_is_held_for_a_person(tmp_path: Path) -> None:
    with working_in(tmp_path) as opened:
        take_in(opened, *(satisfied(n) for n in range(20)), *(unwritten_rule(n) for n in range(50, 55)))
        turn(opened)
        [row] = review_queue(opened.store)
        edit(opened, "context", "add", value={"action": "never_say", "argument": "Hello"})
        with opened.store.write() as connection:
            from store.corrections import correction, put_correction

            found = correction(connection, opened.project, row["correction"])
            assert found.proposal is not None
            rule = {"action": "say", "argument": "hello", "scope": {}, "author": "router"}
            filled = found.proposal.operations[0].model_copy(update={"value": rule})
            proposal = found.proposal.model_copy(update={"operations": (filled,), "needs_answer": None})
            put_correction(connection, found.model_copy(update={"proposal": proposal}))
            routed = route_of(connection, found.id)
            assert routed is not None
            put_route(connection, routed.model_copy(update={"certified": True, "decided_us": routed.decided_us + 1}))
        for _ in range(2):
            assert auto_review(opened).approved == 0
        assert "says the opposite" in str(review_item(opened.store, row["correction"])["refused"])
        with opened.store.read() as connection:
            told = [each["event"] for each in events_of(connection, opened.project, row["correction"])]
            assert told.count("held") == 1
            assert hold_of_change(connection, "chg_none") is None
