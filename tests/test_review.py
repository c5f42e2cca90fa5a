"""Verdicts and the way back: approving applies at once, undo takes back exactly that."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from flows.edit import edit
from flows.review import approve, defer, reject, reroute
from flows.rollback import rollback
from flows.turn import turn
from flows.undo import undo
from flows.workspace import Workspace
from store.corrections import attempts, correction, waiting
from store.errors import NotAllowed, NotFound, Refused
from store.facts import facts_at
from store.records import Release
from store.releases import live_release, version
from store.retrains import dataset_of
from store.review_queue import review_item, review_queue
from store.why import why
from tests.shop_log import bad_argument, forgotten_fact, misread, satisfied, take_in, unwritten_rule, working_in


@pytest.fixture
def workspace(tmp_path: Path, store_url: str) -> Iterator[Workspace]:
    """After one turn over a log with all four kinds of failure."""
    with working_in(tmp_path, url=store_url) as opened:
        take_in(opened, *(satisfied(n) for n in range(40)), *(bad_argument(n) for n in range(40, 45)),
                *(unwritten_rule(n) for n in range(50, 55)), *(forgotten_fact(n) for n in range(60, 65)),
                *(misread(n) for n in range(70, 75)))  # fmt: skip
        turn(opened)
        yield opened


def waiting_in(workspace: Workspace, target: str) -> str:
    """The id of the correction that waits with this target."""
    with workspace.store.read() as connection:
        queue = waiting(connection, workspace.project)
    return next(found.id for found, _, _ in queue if found.proposal and found.proposal.target == target)


def live(workspace: Workspace) -> Release:
    with workspace.store.read() as connection:
        return live_release(connection, workspace.project)


def content(workspace: Workspace, version_id: str) -> Any:
    with workspace.store.read() as connection:
        return version(connection, version_id).content


def facts(workspace: Workspace, user: str) -> list[tuple[str, Any]]:
    with workspace.store.read() as connection:
        position = live_release(connection, workspace.project).memory
        found = facts_at(connection, workspace.project, position, workspace.clock(), user=user)
    return [(fact.predicate, fact.value) for fact in found]


@pytest.mark.parametrize("answer", ["...", " \N{HORIZONTAL ELLIPSIS} "])
def test_what_stands_for_an_answer_is_none(workspace: Workspace, answer: str) -> None:
    with pytest.raises(NotAllowed, match="write the answer itself in its place"):
        approve(workspace, waiting_in(workspace, "weights"), answer=answer)


def test_a_label_that_the_model_cannot_say_yet_is_told(workspace: Workspace) -> None:
    told = approve(workspace, waiting_in(workspace, "weights"), answer="retrun").next
    assert told.startswith("`retrun` is a new class of intents, and near to `return`: undo it if that was a slip; ")


def test_a_normaliser_is_live_after_approval(workspace: Workspace) -> None:
    done = approve(workspace, waiting_in(workspace, "tooling"))
    [policy] = content(workspace, live(workspace).tooling)["policies"]
    assert (policy["tool"], policy["normalisers"]) == ("update_order", {"order_id": ["prefix:#"]})
    assert (done.live, done.version, done.undo) == (True, live(workspace).tooling, f"filmroom undo {done.change}")


def test_an_approval_against_a_rule_in_force_names_it_and_can_replace_it(workspace: Workspace) -> None:
    correction = waiting_in(workspace, "context")
    edit(
        workspace,
        "context",
        "add",
        key="rule_1",
        value={"action": "instruct", "argument": "Items can be returned within 30 days."},
    )
    newer = {"argument": "Items may be returned within 14 days."}
    with pytest.raises(Refused, match=r'rule_1 says another number \(day\).*"replaces": "rule_1"'):
        approve(workspace, correction, answer=newer["argument"])
    done = approve(workspace, correction, answer={**newer, "replaces": "rule_1"})
    assert [rule["argument"] for rule in content(workspace, live(workspace).context)["rules"]] == [newer["argument"]]
    assert done.change is not None
    undo(workspace, done.change)
    assert [rule["id"] for rule in content(workspace, live(workspace).context)["rules"]] == ["rule_1"]


def test_a_rule_is_the_reviewers_own_sentence(workspace: Workspace) -> None:
    correction = waiting_in(workspace, "context")
    with pytest.raises(NotAllowed, match="needs an answer"):
        approve(workspace, correction)
    approve(workspace, correction, answer="Offer a voucher before cancelling.")
    [rule] = content(workspace, live(workspace).context)["rules"]
    assert (rule["action"], rule["argument"], rule["author"]) == (
        "instruct", "Offer a voucher before cancelling.", "staff:ann")  # fmt: skip


def test_a_refused_approval_leaves_nothing_behind(workspace: Workspace) -> None:
    before = live(workspace)
    correction = waiting_in(workspace, "context")
    with pytest.raises(NotAllowed):
        approve(workspace, correction)
    item = review_item(workspace.store, correction)
    assert (item["state"], item["reviews"], live(workspace)) == ("proposed", [], before)


def test_a_fact_reaches_its_user_and_nobody_else(workspace: Workspace) -> None:
    approve(workspace, waiting_in(workspace, "memory"))
    assert facts(workspace, "u3") == [("pickup_shop", "Elm Street")]
    assert facts(workspace, "u4") == []


def test_training_rows_wait_for_a_retrain(workspace: Workspace) -> None:
    before = live(workspace)
    done = approve(workspace, waiting_in(workspace, "weights"))
    with workspace.store.read() as connection:
        rows = dataset_of(connection, workspace.project, "intents")
    assert [(row["label"], row["source"]) for row in rows] == [("return", f"u{n % 7}") for n in range(70, 75)]
    assert (done.live, done.state, live(workspace)) == (False, "approved", before)


@pytest.mark.parametrize("target", ["context", "memory", "tooling", "weights"])
def test_one_undo_for_all_four_targets(workspace: Workspace, target: str) -> None:
    before = live(workspace)
    done = approve(workspace, waiting_in(workspace, target), answer="Offer a voucher." if target == "context" else None)
    undo(workspace, str(done.change), reason="not so")
    after = live(workspace)
    assert (after.context, after.tooling, after.models) == (before.context, before.tooling, before.models)
    assert facts(workspace, "u3") == []
    with workspace.store.read() as connection:
        assert dataset_of(connection, workspace.project, "intents") == []


def test_undo_keeps_what_came_after(workspace: Workspace) -> None:
    first = approve(workspace, waiting_in(workspace, "tooling"))
    approve(workspace, waiting_in(workspace, "memory"))
    undo(workspace, str(first.change))
    assert content(workspace, live(workspace).tooling)["policies"] == []
    assert facts(workspace, "u3") == [("pickup_shop", "Elm Street")]


def test_undoing_twice_is_refused(workspace: Workspace) -> None:
    done = approve(workspace, waiting_in(workspace, "tooling"))
    undo(workspace, str(done.change))
    with pytest.raises(NotAllowed, match="taken back already"):
        undo(workspace, str(done.change))


@pytest.mark.parametrize("kind", ["correction", "change", "version"])
def test_undo_takes_any_id_of_it(workspace: Workspace, kind: str) -> None:
    done = approve(workspace, waiting_in(workspace, "tooling"))
    assert undo(workspace, str(getattr(done, kind))).undone == (done.change,)


def test_undo_of_a_review_takes_its_change_back(workspace: Workspace) -> None:
    done = approve(workspace, waiting_in(workspace, "tooling"))
    review = review_item(workspace.store, done.correction)["reviews"][0]
    with workspace.store.read() as connection:
        causes = why(connection, workspace.project, str(done.change))["causes"]
    id_ = next(cause["id"] for cause in causes if cause["kind"] == "review")
    assert review["verdict"] == "approve"
    assert undo(workspace, id_).undone == (done.change,)


def test_reroute_applies_in_the_other_place(workspace: Workspace) -> None:
    done = reroute(workspace, waiting_in(workspace, "tooling"), to="context", answer="Write order ids with a hash.")
    [rule] = content(workspace, live(workspace).context)["rules"]
    assert (done.verdict, done.live, rule["argument"]) == ("reroute", True, "Write order ids with a hash.")


def test_reroute_without_what_is_needed_waits_for_it(workspace: Workspace) -> None:
    correction = waiting_in(workspace, "tooling")
    done = reroute(workspace, correction, to="context")
    assert (done.state, done.change) == ("proposed", None)
    assert approve(workspace, correction, answer="Write order ids with a hash.").live


def test_reroute_to_a_model_that_did_not_answer_is_refused(workspace: Workspace) -> None:
    with pytest.raises(NotAllowed, match="no model of the settings answered"):
        reroute(workspace, waiting_in(workspace, "tooling"), to="weights")


def test_rejected_leaves_the_queue_and_undo_brings_it_back(workspace: Workspace) -> None:
    correction = waiting_in(workspace, "tooling")
    reject(workspace, correction, reason="the tool is right")
    assert correction not in [row["correction"] for row in review_queue(workspace.store)]
    undo(workspace, correction)
    assert correction in [row["correction"] for row in review_queue(workspace.store)]


def test_deferred_stands_at_the_end_of_the_queue(workspace: Workspace) -> None:
    correction = review_queue(workspace.store)[0]["correction"]
    defer(workspace, correction)
    assert review_queue(workspace.store)[-1]["correction"] == correction


def test_an_applied_correction_cannot_be_reviewed_again(workspace: Workspace) -> None:
    correction = waiting_in(workspace, "tooling")
    approve(workspace, correction)
    with pytest.raises(NotAllowed, match="already applied"):
        reject(workspace, correction)


def test_an_unknown_correction_is_named(workspace: Workspace) -> None:
    with pytest.raises(NotFound, match="cor_nothing"):
        approve(workspace, "cor_nothing")


def test_rollback_serves_the_earlier_state_as_a_new_release(workspace: Workspace) -> None:
    first = live(workspace)
    approve(workspace, waiting_in(workspace, "tooling"))
    approve(workspace, waiting_in(workspace, "memory"))
    rollback(workspace, first.id, reason="start over")
    now = live(workspace)
    assert (now.number, now.tooling, facts(workspace, "u3")) == (3, first.tooling, [])


def test_rollback_can_be_rolled_back(workspace: Workspace) -> None:
    first = live(workspace)
    approve(workspace, waiting_in(workspace, "memory"))
    second = live(workspace)
    rollback(workspace, first.id, reason="")
    rollback(workspace, second.id, reason="")
    assert facts(workspace, "u3") == [("pickup_shop", "Elm Street")]


def test_why_of_a_change_reaches_the_traces(workspace: Workspace) -> None:
    done = approve(workspace, waiting_in(workspace, "tooling"))
    with workspace.store.read() as connection:
        found = why(connection, workspace.project, str(done.change))
    assert len({node["id"] for node in flat(found["causes"]) if node["kind"] == "trace"}) == 5
    assert {node["kind"] for node in flat(found["effects"], "effects")} == {"version", "release"}


def flat(nodes: list[dict[str, Any]], name: str = "causes") -> list[dict[str, Any]]:
    return [each for node in nodes for each in (node, *flat(node[name], name))]


def test_a_correction_that_failed_counts_against_its_place(workspace: Workspace) -> None:
    correction = waiting_in(workspace, "tooling")
    before = review_item(workspace.store, correction)["probabilities"]["tooling"]
    undo(workspace, str(approve(workspace, correction).change))
    turn(workspace)
    [again] = [row for row in review_queue(workspace.store) if row["name"].startswith("`update_order`")]
    after = review_item(workspace.store, again["correction"])["probabilities"]["tooling"]
    assert again["correction"] != correction
    assert after < before


def test_a_rollback_of_everything_counts_against_no_place(workspace: Workspace) -> None:
    first, correction_id = live(workspace), waiting_in(workspace, "tooling")
    before = review_item(workspace.store, correction_id)["probabilities"]["tooling"]
    approve(workspace, correction_id)
    rollback(workspace, first.id, reason="start over")
    turn(workspace)
    [again] = [row for row in review_queue(workspace.store) if row["name"].startswith("`update_order`")]
    assert review_item(workspace.store, again["correction"])["probabilities"]["tooling"] == pytest.approx(before)


def test_undo_is_refused_where_a_later_change_rests_on_it(workspace: Workspace) -> None:
    """The same fault on two channels makes two corrections with one policy: the first stays under the second."""
    first = approve(workspace, waiting_in(workspace, "tooling"))
    on_phone = [bad_argument(n) for n in range(80, 85)]
    for lines in on_phone:
        lines[0]["channel"] = "phone"
    take_in(workspace, *on_phone)
    turn(workspace)
    second = approve(workspace, waiting_in(workspace, "tooling"))
    with pytest.raises(Refused, match=str(second.change)):
        undo(workspace, str(first.change))
    undo(workspace, str(second.change))
    assert [policy["tool"] for policy in content(workspace, live(workspace).tooling)["policies"]] == ["update_order"]
    undo(workspace, str(first.change))
    assert content(workspace, live(workspace).tooling)["policies"] == []


def test_a_rollback_says_of_each_change_whether_it_is_live(workspace: Workspace) -> None:
    first = live(workspace)
    done = approve(workspace, waiting_in(workspace, "memory"))
    second = live(workspace)
    rollback(workspace, first.id, reason="")
    with pytest.raises(NotAllowed, match="nothing to undo"):
        undo(workspace, done.correction)
    rollback(workspace, second.id, reason="")
    assert undo(workspace, done.correction).undone == (done.change,)
    assert facts(workspace, "u3") == []


def test_rolling_back_to_the_live_release_is_refused(workspace: Workspace) -> None:
    with pytest.raises(NotAllowed, match="is live"):
        rollback(workspace, live(workspace).id, reason="")


def test_verdicts_of_several_people_at_once_are_all_taken(workspace: Workspace) -> None:
    waiting_for = [waiting_in(workspace, target) for target in ("tooling", "memory", "weights")]
    with ThreadPoolExecutor(3) as pool:
        done = list(pool.map(lambda found: approve(workspace, found), waiting_for))
    assert [each.state for each in done] == ["applied", "applied", "approved"]
    assert live(workspace).number == 2


def test_there_and_back_again_leaves_nothing_twice(workspace: Workspace) -> None:
    first = live(workspace)
    done = approve(workspace, waiting_in(workspace, "memory"))
    second = live(workspace)
    rollback(workspace, first.id, reason="")
    with pytest.raises(NotAllowed, match=f"serves what {first.id} did"):
        rollback(workspace, first.id, reason="")
    turn(workspace)
    with workspace.store.read() as connection:
        cluster_id = correction(connection, workspace.project, done.correction).cluster_id
        again = attempts(connection, cluster_id)
    assert [each.state for each in again] == ["reverted", "proposed"]
    rollback(workspace, second.id, reason="")
    turn(workspace)
    with workspace.store.read() as connection:
        assert [each.state for each in attempts(connection, cluster_id)] == ["applied", "rejected"]
