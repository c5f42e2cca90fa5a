"""The one battery of checks that every target passes: the same three verbs, deltas only, taken back exactly."""

import inspect
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import pytest

from flows.review import approve, reroute
from flows.rollback import rollback
from flows.targets import FLOWS
from flows.targets.contract import TargetFlow
from flows.turn import turn
from flows.undo import undo
from flows.workspace import Workspace
from store.changes import changes_of
from store.errors import NotAllowed, Refused
from store.facts import facts_at
from store.records import TARGETS, Change, Operation, Proposal, Release, Target
from store.releases import live_release, version
from store.retrains import dataset_of
from store.review_queue import review_item, review_queue
from store.why import why
from tests.shop_log import bad_argument, forgotten_fact, misread, satisfied, take_in, unwritten_rule, working_in

ANSWERS: dict[Target, Any] = {"context": "Offer a voucher.", "memory": None, "tooling": None, "weights": None}
"""What a reviewer writes where it is needed."""
VERBS = ("propose", "answered", "apply", "revert")


@dataclass
class Bench:
    """One target of a project with a correction that waits there."""

    workspace: Workspace
    target: Target

    @property
    def correction(self) -> str:
        found = [row["correction"] for row in review_queue(self.workspace.store) if row["target"] == self.target]
        return str(found[0])

    def approve(self) -> str:
        return str(approve(self.workspace, self.correction, answer=ANSWERS[self.target]).change)

    @property
    def live(self) -> Release:
        with self.workspace.store.read() as connection:
            return live_release(connection, self.workspace.project)

    @property
    def state(self) -> Any:
        """What this target holds, whatever serves it."""
        with self.workspace.store.read() as connection:
            project, now = self.workspace.project, live_release(connection, self.workspace.project)
            if self.target == "memory":
                return [
                    fact.model_dump(mode="json")
                    for fact in facts_at(connection, project, now.memory, self.workspace.clock())
                ]
            if self.target == "weights":
                return [(row["id"], row["label"]) for row in dataset_of(connection, project, "intents")]
            return version(connection, now.context if self.target == "context" else now.tooling).content

    def change(self, change_id: str) -> Change:
        with self.workspace.store.read() as connection:
            [found] = [each for each in changes_of(connection, self.workspace.project) if each.id == change_id]
        return found


@pytest.fixture(params=TARGETS)
def bench(request: pytest.FixtureRequest, tmp_path: Path, store_url: str) -> Iterator[Bench]:
    with working_in(tmp_path, url=store_url) as opened:
        take_in(opened, *(satisfied(n) for n in range(30)), *(bad_argument(n) for n in range(40, 45)),
                *(unwritten_rule(n) for n in range(50, 55)), *(forgotten_fact(n) for n in range(60, 65)),
                *(misread(n) for n in range(70, 75)))  # fmt: skip
        turn(opened)
        yield Bench(opened, request.param)


@pytest.mark.parametrize("target", TARGETS)
def test_it_has_the_verbs_with_the_contracts_parameters(target: Target) -> None:
    for verb in VERBS:
        wanted = inspect.signature(getattr(TargetFlow, verb)).parameters
        given = inspect.signature(getattr(FLOWS[target], verb)).parameters
        assert list(given) == [name for name in wanted if name != "self"], verb


def test_there_is_a_flow_for_every_target_and_no_other() -> None:
    assert tuple(FLOWS) == TARGETS == get_args(Target)


def test_it_proposes_deltas_of_its_own_that_a_person_can_read(bench: Bench) -> None:
    item = review_item(bench.workspace.store, bench.correction)
    proposal = Proposal(**item["proposal"])
    assert {each.target for each in proposal.operations} == {bench.target}
    assert proposal.operations
    assert all(each.key for each in proposal.operations)
    assert 10 < len(proposal.summary) < 400
    assert "\n" not in proposal.summary


def test_what_it_lacks_is_said_and_nothing_is_applied_without_it(bench: Bench) -> None:
    before = bench.state
    item = review_item(bench.workspace.store, bench.correction)
    if item["needs_answer"]:
        with pytest.raises(NotAllowed, match="needs an answer"):
            approve(bench.workspace, item["correction"])
    flow = FLOWS[bench.target]
    lacking = Proposal(target=bench.target, summary="x", needs_answer="an answer",
                       operations=(Operation(target=bench.target, verb="add", key="x"),))  # fmt: skip
    if bench.target != "tooling":
        with pytest.raises(NotAllowed):
            flow.answered(lacking, None, reviewer="staff:ann")
    assert bench.state == before


@pytest.mark.parametrize("answer", [3, [], {"nothing": "known"}, {"value": object}, True])
def test_an_answer_that_is_none_is_refused_and_said(bench: Bench, answer: Any) -> None:
    found = review_item(bench.workspace.store, bench.correction)["proposal"]
    with pytest.raises(NotAllowed):
        FLOWS[bench.target].answered(Proposal(**found), answer, reviewer="staff:ann")


def test_applying_changes_its_own_state_and_no_other_targets(bench: Bench) -> None:
    others = [Bench(bench.workspace, target) for target in TARGETS if target != bench.target]
    before = bench.state, [each.state for each in others]
    bench.approve()
    assert bench.state != before[0]
    assert [each.state for each in others] == before[1]


def test_a_change_says_before_after_who_and_why(bench: Bench) -> None:
    change = bench.change(bench.approve())
    assert (change.target, change.actor, change.state) == (bench.target, "staff:ann", "live")
    assert change.before != change.after
    assert change.operations
    with bench.workspace.store.read() as connection:
        found = why(connection, bench.workspace.project, change.id)
    told = {event["event"]: event["reason"] for event in found["events"]}
    assert (next(iter(told)), bool(told["applied"])) == ("approved", True)


def test_the_chain_leads_from_what_is_served_back_to_the_traces(bench: Bench) -> None:
    change = bench.change(bench.approve())
    served = bench.live.id if bench.target != "weights" else change.after
    with bench.workspace.store.read() as connection:
        found = json.dumps(why(connection, bench.workspace.project, served))
    assert change.id in found
    assert '"kind": "trace"' in found


def test_taking_it_back_leaves_what_was_there(bench: Bench) -> None:
    before = bench.state
    undo(bench.workspace, bench.approve(), reason="not so")
    assert bench.state == before


def test_it_cannot_be_taken_back_twice(bench: Bench) -> None:
    change = bench.approve()
    undo(bench.workspace, change)
    with pytest.raises(NotAllowed, match="taken back already"):
        undo(bench.workspace, change)


def test_a_refused_apply_leaves_nothing_behind(bench: Bench) -> None:
    change = bench.change(bench.approve())
    before = bench.state, bench.live
    if bench.target in ("context", "memory"):
        flow = FLOWS[bench.target]
        with pytest.raises(Refused), bench.workspace.store.write() as connection:
            flow.apply(connection, bench.live, change.operations, correction_id="cor_x", now_us=bench.workspace.clock())
    assert (bench.state, bench.live) == before


def test_applying_the_same_to_the_same_gives_the_same(bench: Bench) -> None:
    """Content-addressed: what was taken back and applied again is the version that it was."""
    first = bench.change(bench.approve())
    undo(bench.workspace, first.id)
    state = {}
    for _ in range(2):
        with bench.workspace.store.write() as connection:
            current = live_release(connection, bench.workspace.project)
            served = FLOWS[bench.target].apply(
                connection, current, first.operations, correction_id=first.correction_id, now_us=1
            )
            state[served.after] = served.release.id
            connection.rollback()
    assert len(state) == 1
    if bench.target != "memory":
        assert first.after in state


def test_a_rollback_to_before_and_forward_again(bench: Bench) -> None:
    if bench.target == "weights":
        pytest.skip("training data is taken back by undo; a model by the version it was")
    before, first = bench.state, bench.live
    bench.approve()
    after, second = bench.state, bench.live
    rollback(bench.workspace, first.id, reason="test")
    assert bench.state == before
    rollback(bench.workspace, second.id, reason="test")
    assert _bare(bench.state) == _bare(after)


def test_a_correction_can_be_sent_here_from_elsewhere(bench: Bench) -> None:
    """Rerouting proposes anew, and says what is missing, or applies."""
    if bench.target == "weights":
        pytest.skip("only what a model answered can be taught to it")
    source: Target = "context" if bench.target != "context" else "tooling"
    other = Bench(bench.workspace, source).correction
    done = reroute(bench.workspace, other, to=bench.target)
    assert done.change or "needs an answer" in done.next


def _bare(state: Any) -> Any:
    """Facts that were stated again no longer say what they superseded."""
    return [{**each, "supersedes": None} for each in state] if isinstance(state, list) else state
