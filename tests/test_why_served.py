"""Why of a served answer: the versions of all four targets, the changes that made them, and the traces behind these."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from filmroom.live_state import live_state
from filmroom.main import main
from flows.champion import found_model
from flows.edit import edit
from flows.review import approve
from flows.turn import turn
from flows.undo import undo
from flows.workspace import Workspace
from store.records import Trace
from store.releases import live_release
from store.review_queue import review_item, review_queue
from store.status import status
from store.why import why
from tests.shop_log import bad_argument, forgotten_fact, misread, satisfied, take_in, trace, unwritten_rule, working_in


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """All four kinds of correction approved, and an answer to `u3` that the release then live served."""
    with working_in(tmp_path) as opened:
        found_model(opened, "intents")
        take_in(opened, *(satisfied(n) for n in range(30)), *(bad_argument(n) for n in range(40, 45)),
                *(unwritten_rule(n) for n in range(50, 55)), *(forgotten_fact(n) for n in range(60, 65)),
                *(misread(n) for n in range(70, 75)))  # fmt: skip
        turn(opened)
        for row in review_queue(opened.store):
            approve(opened, row["correction"], answer="Offer a voucher." if row["target"] == "context" else None)
        take_in(opened, [trace(900, day=400, user="u3", input="hi", output="hello", release=live(opened).id)],
                [trace(901, day=400, user="u4", input="hi", output="hello", release="v17")])  # fmt: skip
        monkeypatch.chdir(tmp_path)
        yield opened


def live(workspace: Workspace) -> Any:
    with workspace.store.read() as connection:
        return live_release(connection, workspace.project)


def explained(workspace: Workspace, id_: str) -> dict[str, Any]:
    with workspace.store.read() as connection:
        return why(connection, workspace.project, id_)


def trace_id(number: int) -> str:
    return Trace(source="native", external_id=f"t{number}").id


def test_a_trace_is_found_by_the_id_that_its_log_gives_it(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["why", "t900"]) == 0
    assert f"trace {trace_id(900)}" in capsys.readouterr().out


def test_an_answer_names_the_versions_of_all_four_targets(workspace: Workspace) -> None:
    now, served = live(workspace), explained(workspace, trace_id(900))["served_by"]
    assert (served["release"], served["number"]) == (now.id, now.number)
    assert (served["context"], served["memory"], served["tooling"]) == (now.context, now.memory, now.tooling)
    assert served["models"] == now.models != {}


def test_it_names_the_changes_and_the_traces_behind_them(workspace: Workspace) -> None:
    served = explained(workspace, trace_id(900))["served_by"]
    assert len(served["changes"]) == 4
    named = json.dumps(served["causes"])
    assert all(id_ in named for id_ in served["changes"])
    assert all(trace_id(number) in named for number in (40, 50, 60, 70))
    entries = live_state(workspace)
    for target, number in (("context", 50), ("memory", 60), ("tooling", 40)):
        [entry] = entries[target]
        found = explained(workspace, entry["id"])
        assert found["causes"][0]["kind"] == "change"
        assert trace_id(number) in json.dumps(found["causes"])


def test_another_users_fact_made_no_part_of_an_answer(workspace: Workspace) -> None:
    take_in(workspace, [trace(902, day=400, user="u4", input="hi", output="hello", release=live(workspace).id)])
    assert len(explained(workspace, trace_id(902))["served_by"]["changes"]) == 3


def test_a_release_that_is_not_ours_is_none(workspace: Workspace) -> None:
    assert "served_by" not in explained(workspace, trace_id(901))


def test_it_is_printed(workspace: Workspace, capfd: pytest.CaptureFixture[str]) -> None:
    capfd.readouterr()
    assert main(["why", trace_id(900)]) == 0
    shown = capfd.readouterr().out
    assert f"served by release {live(workspace).id} (number {live(workspace).number}):" in shown
    assert f"tooling {live(workspace).tooling}" in shown


def test_the_recurrence_stands_wherever_a_correction_does(
    workspace: Workspace, capfd: pytest.CaptureFixture[str]
) -> None:
    applied = list(explained(workspace, trace_id(900))["served_by"]["changes"])
    capfd.readouterr()
    told = 0
    for id_ in applied:
        found = explained(workspace, id_)
        if "hold" not in found:
            continue
        correction = next(node["id"] for node in found["causes"] if node["kind"] == "correction")
        assert (
            review_item(workspace.store, correction)["hold"]
            == found["hold"]
            == explained(workspace, correction)["hold"]
        )
        assert main(["review", "show", correction]) == 0
        assert "since it was applied: holding: recurred 0 times in 0" in capfd.readouterr().out
        assert main(["why", id_]) == 0
        assert "holding: recurred 0 times in 0" in capfd.readouterr().out
        told += 1
    assert told == 3
    assert main(["live"]) == 0
    assert capfd.readouterr().out.count("[holding: recurred 0 times in 0") == 3


def test_the_holds_of_what_was_undone_are_not_counted(workspace: Workspace) -> None:
    assert status(workspace.store)["holds"] == {"holding": 3}
    for id_ in explained(workspace, trace_id(900))["served_by"]["changes"]:
        undo(workspace, id_)
    assert status(workspace.store)["holds"] == {}
    assert turn(workspace).holds == {"holding": 0, "held": 0, "failed": 0}


def test_undo_says_what_rested_on_it(workspace: Workspace, capfd: pytest.CaptureFixture[str]) -> None:
    first = edit(workspace, "memory", "add", value={"scope_id": "ann", "predicate": "shop", "value": "Elm Street"})
    rests = {"scope_id": "ann", "predicate": "closes", "value": "8 pm", "depends_on": [first.operations[0].key]}
    second = edit(workspace, "memory", "add", value=rests)
    capfd.readouterr()
    assert main(["undo", first.id]) == 0
    assert f"rested on it, and stale now: {second.operations[0].key}" in capfd.readouterr().out


def test_the_causes_of_a_thing_are_found_by_index_and_not_by_a_walk(workspace: Workspace) -> None:
    """SQLite prefers the primary key of `links` for what it covers, unless the query is put as in `causes_of`."""
    plans: list[str] = []

    def note(connection: Any, _cursor: Any, statement: str, parameters: Any, _context: Any, _many: bool) -> None:
        if "FROM links" in statement:
            driver = connection.connection.driver_connection
            plans.extend(row[3] for row in driver.execute(f"EXPLAIN QUERY PLAN {statement}", parameters))

    listens = (workspace.store.engine, "before_cursor_execute", note)
    event.listen(*listens)
    explained(workspace, trace_id(900))
    event.remove(*listens)
    assert [plan for plan in plans if "cause=?" not in plan and "effect>?" not in plan] == []
    assert plans
