"""What is proposed to be taught: the label that people said, and no other."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flows.pickup import pickup
from flows.review import approve, reroute
from flows.turn import turn
from flows.workspace import Workspace
from store.errors import NotAllowed
from store.retrains import dataset_of
from store.review_queue import review_item, review_queue
from tests.shop_log import misread, prediction, said, satisfied, take_in, trace, working_in


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with working_in(tmp_path) as opened:
        take_in(opened, *(satisfied(n) for n in range(30)))
        yield opened


def predicted(number: int, reply: str = "status", **feedback: Any) -> list[dict[str, Any]]:
    """`take it back` was answered `status`, and somebody is not content."""
    step = prediction("take it back", "status")
    return [trace(number, input="take it back", output=reply, spans=[step]),
            said(number, name="thumb", score=0, **feedback)]  # fmt: skip


def item_of(workspace: Workspace, *lines: list[dict[str, Any]], to: bool = False) -> dict[str, Any]:
    take_in(workspace, *lines)
    turn(workspace)
    [row] = review_queue(workspace.store)
    if to:
        reroute(workspace, row["correction"], to="weights", reason="test")
    else:
        assert row["target"] == "weights"
    return review_item(workspace.store, row["correction"])


def rows(workspace: Workspace) -> set[str]:
    with workspace.store.read() as connection:
        return {row["label"] for row in dataset_of(connection, workspace.project, "intents")}


def test_a_label_that_was_said_is_named(workspace: Workspace) -> None:
    item = item_of(workspace, *(misread(50 + n) for n in range(4)))
    assert item["summary"] == "Teach `intents` 4 more of: return (answered status)"
    assert not item["needs_answer"]


def test_a_label_that_nobody_said_is_asked_for_and_not_the_one_that_is_wrong(workspace: Workspace) -> None:
    item = item_of(workspace, *(predicted(50 + n) for n in range(4)))
    expected = "Teach `intents` 4 more of the right label, which nobody said yet (answered status)"
    assert item["summary"] == expected
    with pytest.raises(NotAllowed, match="`status` is what `intents` answered there, and that was called wrong"):
        approve(workspace, item["correction"], answer="status")
    approve(workspace, item["correction"], answer="return")
    assert rows(workspace) == {"return"}


def test_a_corrected_reply_sent_to_the_weights_needs_a_label_and_teaches_no_sentence(workspace: Workspace) -> None:
    lines = [predicted(50 + n, "It was sent.", corrected_output="Sorry! Shall I take it back?") for n in range(4)]
    item = item_of(workspace, *lines, to=True)
    assert item["summary"] == "Teach `intents` 4 more of the right label, which nobody said yet (answered status)"
    assert item["needs_answer"]
    with pytest.raises(NotAllowed, match="needs an answer"):
        approve(workspace, item["correction"])
    approve(workspace, item["correction"], answer="return")
    assert rows(workspace) == {"return"}


def test_what_no_model_answered_cannot_be_sent_to_the_weights(workspace: Workspace) -> None:
    lines = [predicted(50 + n, "It was sent.", corrected_output="Sorry! Shall I take it back?") for n in range(4)]
    for trace_, _ in lines:
        trace_["spans"] = []
    with pytest.raises(NotAllowed, match=r"no model of the settings answered there \(`answer` did\)"):
        item_of(workspace, *lines, to=True)


def test_a_corrected_reply_that_is_a_label_of_the_base_set_is_taught(workspace: Workspace) -> None:
    item = item_of(workspace, *(predicted(50 + n, "It was sent.", corrected_output="return") for n in range(4)))
    assert item["summary"] == "Teach `intents` 4 more of: return (answered status)"


def test_a_training_file_that_is_gone_keeps_no_failure_from_being_picked_up(workspace: Workspace) -> None:
    (workspace.settings.home / "train.csv").unlink()
    take_in(workspace, *(predicted(50 + n, "It was sent.", corrected_output="return") for n in range(4)))
    assert pickup(workspace).failures == 4
