"""Weights last: what is trained, promoted, explained and taken back, on a small model with real training."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flows.champion import found_model, live_model
from flows.review import approve, reroute
from flows.rollback import rollback
from flows.training import labelled
from flows.turn import TurnSummary, turn
from flows.undo import undo
from flows.workspace import Workspace
from models.artifacts import load
from store.changes import holds_of
from store.corrections import waiting
from store.errors import ModelRefused, NotAllowed
from store.releases import live_release
from store.retrains import retrains_of
from store.review_queue import review_item, review_queue
from store.why import why
from tests.shop_log import SETTINGS, misread, prediction, said, take_in, trace, working_in

VERBS = ("take", "bring", "send", "ship", "hand", "give", "pass", "carry")
THINGS = ("lamp", "shoes", "shirt", "phone", "chair", "table", "clock", "radio", "couch", "glass")

LATER = 10_000
"""A day after any promotion of these tests."""


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    settings = SETTINGS.replace('out_of_scope = "other"', 'out_of_scope = "other"\nchampion = "ours"')
    with working_in(tmp_path, settings) as opened:
        yield opened


def confirmed(number: int, text: str, label: str) -> list[dict[str, Any]]:
    """An answer of the model that its user confirmed."""
    step = prediction(text, label, confidence=0.9)
    return [trace(number, input=text, output=label, spans=[step]),
            said(number, span="p", name="label", corrected_output=label)]  # fmt: skip


def misreadings(start: int, count: int, *, day: int = 0) -> list[list[dict[str, Any]]]:
    """New words for a return, answered as a status."""
    texts = [f"{verb} back my {thing}" for verb in VERBS for thing in THINGS]
    return [misread(start + n, text=texts[n % len(texts)], day=day + n % 3) for n in range(count)]


def promoted(workspace: Workspace) -> TurnSummary:
    """A turn that finds the failures, a verdict, and the turn that learns from it."""
    take_in(workspace, *(confirmed(n, f"where is order {n}", "status") for n in range(80)), *misreadings(100, 60))
    turn(workspace)
    for item in review_queue(workspace.store):
        approve(workspace, item["correction"])
    return turn(workspace)


def test_an_authority_is_whom_the_settings_trust_when_the_data_is_gathered(workspace: Workspace) -> None:
    step = prediction("take it back", "status")
    told = [[trace(n, input="take it back", output="status", spans=[step]),
             said(n, by="anna@library", span="p", name="label", corrected_output="return")] for n in range(5)]  # fmt: skip
    unlabelled = [[trace(n, input="hm", output="return", spans=[{**step, "input": "hm", "output": "return"}]),
                   said(n, span="p", name="thumb", score=0)] for n in range(10, 15)]  # fmt: skip
    take_in(workspace, *told, *unlabelled)
    turn(workspace)
    for item in review_queue(workspace.store):
        needs = review_item(workspace.store, item["correction"])["proposal"]["needs_answer"]
        reroute(workspace, item["correction"], to="weights", answer="status" if needs else None)

    def authorities(*trusted: str) -> set[str]:
        policy = workspace.policy.model_copy(update={"trusted": trusted})
        with workspace.store.read() as connection:
            rows = labelled(connection, workspace.acting(policy=policy), "intents")
        return {each.row.source for each in rows if each.row.authority}

    assert authorities() == {"staff:ann"}
    assert authorities("anna@library") == {"staff:ann", "anna@library"}


def test_the_first_model_is_founded_on_its_base_set(workspace: Workspace) -> None:
    turn(workspace)
    with workspace.store.read() as connection:
        assert list(live_release(connection, workspace.project).models) == ["intents"]
    assert live_model(workspace, "intents").predict(["where is order 3"])[0].answer == "status"


def test_a_retrain_that_pays_and_passes_the_gate_is_served(workspace: Workspace) -> None:
    summary = promoted(workspace)
    assert summary.retrain["decision"] == "promoted", summary.retrain
    assert live_model(workspace, "intents").predict(["pass back my radio"])[0].answer == "return"
    with workspace.store.read() as connection:
        row = retrains_of(connection, workspace.project)[0]
        assert live_release(connection, workspace.project).models == {"intents": row.version}
    assert {stage.stage for stage in row.gate} >= {"integrity", "target", "global", "flips"}
    assert {stage.verdict for stage in row.gate} == {"passed"}
    assert len([arm for arm in row.arms if arm["error"] is None]) >= 2


def test_why_of_the_promoted_model_reaches_the_traces(workspace: Workspace) -> None:
    summary = promoted(workspace)
    with workspace.store.read() as connection:
        found = why(connection, workspace.project, summary.retrain["version"])
    kinds = {node["kind"] for node in flat(found["causes"])}
    assert {"retrain", "correction", "cluster", "failure", "trace"} <= kinds


def flat(nodes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for node in nodes for each in (node, *flat(node["causes"]))]


def test_what_was_learnt_is_watched(workspace: Workspace) -> None:
    promoted(workspace)
    with workspace.store.read() as connection:
        holds = holds_of(connection, workspace.project)
    assert [hold.state for hold in holds] == ["holding"]


def test_nothing_is_learnt_twice(workspace: Workspace) -> None:
    promoted(workspace)
    assert turn(workspace).retrain["decision"] == "skipped"


def test_a_promotion_is_taken_back_by_its_version_or_its_id(workspace: Workspace) -> None:
    summary = promoted(workspace)
    undo(workspace, summary.retrain["version"], reason="it was rude")
    with workspace.store.read() as connection:
        rows = retrains_of(connection, workspace.project)
        models = live_release(connection, workspace.project).models
    assert (rows[0].decision, rows[0].reason) == ("rolled_back", "it was rude")
    assert models == {"intents": rows[0].version}
    with pytest.raises(NotAllowed, match="not the live version"):
        undo(workspace, summary.retrain["retrain"])


def contradicted(workspace: Workspace, count: int, *, by: str | None = None) -> None:
    """Answers of the promoted model that people say were wrong, and that the version before had right."""
    lines = []
    for n in range(1000, 1000 + count):
        text = f"where is order {n}"
        step = prediction(text, "return", confidence=0.9)
        lines.append([trace(n, day=LATER, input=text, output="return", spans=[step]),
                      said(n, day=LATER, by=by, span="p", name="label", corrected_output="status")])  # fmt: skip
    take_in(workspace, *lines)


def test_a_promotion_that_does_harm_is_rolled_back_without_a_person(workspace: Workspace) -> None:
    made = promoted(workspace).retrain["version"]
    contradicted(workspace, 8)
    found = turn(workspace).retrain
    assert (found["decision"], "right on 8 where this one was wrong" in found["reason"]) == ("rolled_back", True)
    with workspace.store.read() as connection:
        assert made not in live_release(connection, workspace.project).models.values()


def test_one_account_rolls_nothing_back(workspace: Workspace) -> None:
    promoted(workspace)
    contradicted(workspace, 40, by="mallory")
    assert turn(workspace).retrain["decision"] != "rolled_back"


def test_without_a_training_file_the_row_says_what_to_set(tmp_path: Path) -> None:
    with working_in(tmp_path, SETTINGS.replace('training = "train.csv"\n', "")) as workspace:
        assert "set `training`" in turn(workspace).retrain["to_yes"]


def test_a_training_file_that_is_gone_stops_no_turn(tmp_path: Path) -> None:
    with working_in(tmp_path, SETTINGS.replace("train.csv", "gone.csv")) as workspace:
        summary = turn(workspace)
    assert (summary.retrain["decision"], "gone.csv" in summary.retrain["reason"]) == ("skipped", True)


def test_a_tampered_model_file_is_refused(workspace: Workspace) -> None:
    found_model(workspace, "intents")
    [file] = workspace.artifacts.glob("*.skops")
    file.write_bytes(file.read_bytes()[:-10])

    with pytest.raises(ModelRefused, match="truncated or swapped"):
        load(workspace.artifacts, file.stem)


@pytest.mark.parametrize("way", ["undo", "rollback"])
def test_what_was_taken_back_is_not_served_again_by_the_same_evidence(workspace: Workspace, way: str) -> None:
    with workspace.store.read() as connection:
        before = live_release(connection, workspace.project).id
    made = promoted(workspace).retrain["version"]
    with workspace.store.read() as connection:
        serving = live_release(connection, workspace.project).id
    undo(workspace, made) if way == "undo" else rollback(workspace, before, reason="it was rude")
    found = turn(workspace).retrain
    assert found["decision"] == "skipped", found
    assert f"{made} was taken back" in found["reason"]
    with workspace.store.read() as connection:
        assert [each.decision for each in retrains_of(connection, workspace.project)][1] == "rolled_back"
        assert holds_of(connection, workspace.project) == []
        waits = waiting(connection, workspace.project, states=("approved",))
        assert [found.proposal.target for found, _, _ in waits if found.proposal] == ["weights"]
    rollback(workspace, serving, reason="it was not")
    with workspace.store.read() as connection:
        assert live_release(connection, workspace.project).models == {"intents": made}
        assert retrains_of(connection, workspace.project)[0].reason == f"serves {made} again: it was not"
        assert [hold.state for hold in holds_of(connection, workspace.project)] == ["holding"]
    undo(workspace, made, reason="it was, after all")
    assert turn(workspace).retrain["decision"] == "skipped"


def test_new_evidence_trains_again_what_was_taken_back(workspace: Workspace) -> None:
    undo(workspace, promoted(workspace).retrain["version"])
    take_in(workspace, *misreadings(3000, 60, day=5))
    turn(workspace)
    for item in review_queue(workspace.store):
        approve(workspace, item["correction"])
    found = turn(workspace).retrain
    assert found["decision"] in ("promoted", "refused"), found
