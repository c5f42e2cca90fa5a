"""Golden cases must stay right; sealed cases are learnt by nothing, and what was not measured refuses."""

from pathlib import Path

import pytest

from flows.review import approve
from flows.training import labelled, training_rows
from flows.turn import turn
from models.fitting import Task
from models.gate import passed, to_yes
from models.golden import golden, sealed
from models.text_model import TextModel
from store.records import DatasetRow, GateStage
from store.retrains import retrains_of
from store.review_queue import review_queue
from tests.shop_log import SETTINGS, misread, take_in, working_in
from tests.test_retrain import promoted

SAID = {"where is my lamp": "status", "track my lamp": "status", "i return it": "return", "return my lamp": "return",
        "price of it": "price", "what does it cost": "price"}  # fmt: skip
RIGHT = TextModel(in_scope_rejection=0.0).fit(list(SAID), list(SAID.values()))
WRONG = TextModel(in_scope_rejection=0.0).fit(list(SAID), [*list(SAID.values())[2:], "status", "status"])
CASES = [DatasetRow(input=text, label=label) for text, label in SAID.items()]


def test_a_golden_case_that_was_right_may_not_be_lost() -> None:
    assert golden(CASES, RIGHT, RIGHT, Task()).verdict == "passed"
    lost = golden(CASES, RIGHT, WRONG, Task())
    assert (lost.verdict, "the first is case" in lost.sentence, passed([lost])) == ("failed", True, False)


def test_a_golden_case_that_was_wrong_before_loses_nothing() -> None:
    assert golden(CASES, WRONG, WRONG, Task()).verdict == "passed"


def test_without_the_champions_model_all_golden_cases_count_as_right() -> None:
    assert golden(CASES, None, WRONG, Task()).verdict == "failed"


def test_sealed_cases_are_compared_and_none_may_pay() -> None:
    assert sealed(CASES, WRONG, RIGHT, Task()).numbers["newly_wrong"] == 0.0
    assert [sealed(CASES, old, new, Task()).verdict for old, new in ((WRONG, RIGHT), (RIGHT, WRONG))] == [
        "passed",
        "failed",
    ]


UNMEASURED = golden([], RIGHT, RIGHT, Task()), sealed([], RIGHT, RIGHT, Task()), sealed(CASES, None, RIGHT, Task())


@pytest.mark.parametrize("stage", UNMEASURED)
def test_what_is_not_measured_refuses_and_says_the_way(stage: GateStage) -> None:
    assert (stage.verdict, passed([stage]), bool(to_yes([stage]))) == ("not measured", False, True)


def test_sealed_inputs_are_in_no_training_data(tmp_path: Path) -> None:
    settings = SETTINGS.replace("[policy]", 'sealed = "sealed.csv"\n[policy]')
    with working_in(tmp_path, settings) as workspace:
        (tmp_path / "sealed.csv").write_text(
            "text,label\nWhere is order 3,status\ntake it back,return\n", encoding="utf-8"
        )
        take_in(workspace, misread(1), misread(2, text="bring it back"), misread(3, text="send it back"))
        turn(workspace)
        for item in review_queue(workspace.store):
            approve(workspace, item["correction"])
        with workspace.store.read() as connection:
            learnt = {each.row.input for each in labelled(connection, workspace, "intents")}
        base = {row.input for row in training_rows(workspace.settings, "intents")}
    assert ("where is order 3" in base, "where is order 4" in base) == (False, True)
    assert (len(base), learnt) == (39, {"bring it back", "send it back"})


def test_a_golden_file_that_is_missing_is_said_before_anything_is_trained(tmp_path: Path) -> None:
    with working_in(tmp_path, SETTINGS.replace("[policy]", 'golden = "gone.csv"\n[policy]')) as workspace:
        assert "gone.csv" in turn(workspace).retrain["reason"]
        with workspace.store.read() as connection:
            assert [row.decision for row in retrains_of(connection, workspace.project)] == ["skipped"]


def test_what_is_served_was_put_to_both_files(tmp_path: Path) -> None:
    files = 'champion = "ours"\ngolden = "golden.csv"\nsealed = "sealed.csv"\n[policy]'
    with working_in(tmp_path, SETTINGS.replace("[policy]", files)) as workspace:
        (tmp_path / "golden.csv").write_text("text,label\nwhere is order 7,status\n", encoding="utf-8")
        (tmp_path / "sealed.csv").write_text("text,label\nwhere is order 77,status\n", encoding="utf-8")
        assert promoted(workspace).retrain["decision"] == "promoted"
        with workspace.store.read() as connection:
            row = retrains_of(connection, workspace.project)[0]
    assert [(each.stage, each.verdict) for each in row.gate][-2:] == [("golden", "passed"), ("sealed", "passed")]
