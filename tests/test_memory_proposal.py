"""What is proposed to be remembered: what a reviewer reads is what is written, and nobody's wish becomes another's memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flows.review import approve, reroute
from flows.turn import turn
from flows.workspace import Workspace
from store.errors import NotAllowed, Refused
from store.facts import facts_at
from store.releases import live_release
from store.review_queue import review_item, review_queue
from tests.shop_log import said, satisfied, take_in, trace, working_in


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with working_in(tmp_path) as opened:
        take_in(opened, *(satisfied(n) for n in range(30)))
        yield opened


def corrected(number: int, user: str, value: Any, *, by: str | None = None, day: int = 0, comment: str = "", intent: str = "",
              asked: str = "where do I pick it up?", channel: str = "app") -> list[dict[str, Any]]:  # fmt: skip
    """A user's answer, corrected by themselves or by `by`."""
    served = "At the Main Street shop."
    label = {"id": "p", "kind": "predict", "name": "intents", "input": asked, "output": intent}
    steps = [label, {"id": "l", "kind": "llm", "name": "agent", "input": asked, "output": served}] if intent else []
    more = {**({"comment": comment} if comment else {}), **({"span": "l"} if intent else {})}
    return [trace(number, day=day, user=user, input=asked, output=served, channel=channel, spans=steps),
            said(number, day=day, by=by or user, name="thumb", score=0, corrected_output=value, **more)]  # fmt: skip


def proposed(workspace: Workspace, *lines: list[dict[str, Any]]) -> dict[str, Any]:
    """What memory would do about these failures."""
    take_in(workspace, *lines)
    turn(workspace)
    [row] = review_queue(workspace.store)
    if row["target"] != "memory":
        try:
            reroute(workspace, row["correction"], to="memory", reason="test")
        except (NotAllowed, Refused):
            pytest.fail("it cannot be proposed")
    return review_item(workspace.store, row["correction"])


def facts(workspace: Workspace) -> list[tuple[str, str, Any]]:
    with workspace.store.read() as connection:
        position = live_release(connection, workspace.project).memory
        found = facts_at(connection, workspace.project, position, workspace.clock())
    return [(fact.scope_id, fact.predicate, fact.value) for fact in found]


def test_the_summary_says_predicate_and_value(workspace: Workspace) -> None:
    item = proposed(workspace, *(corrected(50 + n, "u3", {"pickup_shop": "Elm Street"}) for n in range(3)))
    assert item["summary"] == 'Remember for u3: pickup_shop = "Elm Street"'


def test_of_two_values_the_newer_is_remembered(workspace: Workspace) -> None:
    item = proposed(workspace, corrected(50, "u3", {"shop": "Elm"}, day=1), corrected(51, "u3", {"shop": "Oak"}, day=2))
    assert item["summary"] == 'Remember for u3: shop = "Oak"'


def test_who_says_three_different_things_is_asked_about(workspace: Workspace) -> None:
    shops = ("Elm", "Oak", "Ash")
    item = proposed(workspace, *(corrected(50 + n, "u3", {"shop": shop}) for n, shop in enumerate(shops)))
    assert "contradiction: u3 says 3 different things" in item["summary"]
    assert item["needs_answer"]
    assert facts(workspace) == []


def test_different_answers_to_one_intent_are_asked_about(workspace: Workspace) -> None:
    shops = ("At the Elm Street shop.", "At the Oak Street shop.")
    lines = [corrected(50 + n, "u3", shop, intent="status") for n, shop in enumerate(shops)]
    item = proposed(workspace, *lines)
    assert item["needs_answer"]


def test_answers_to_different_questions_are_all_remembered(workspace: Workspace) -> None:
    asked = ("which shop?", "what size am I?", "who is my doctor?")
    lines = [corrected(50 + n, "u3", f"answer {n}", asked=each) for n, each in enumerate(asked)]
    item = proposed(workspace, *lines)
    if item["state"] == "proposed":
        approve(workspace, item["correction"])
    assert sorted(value["answer"] for _, _, value in facts(workspace)) == ["answer 0", "answer 1", "answer 2"]


def test_a_wish_of_several_users_asks_for_a_rule_or_a_fact_for_everybody(workspace: Workspace) -> None:
    item = proposed(workspace, *(corrected(50 + n, f"u{n}", {"returns": "free"}) for n in range(4)))
    assert "No fact about one user: 4 users say the same" in item["summary"]
    assert "reroute it to context" in item["needs_answer"]
    with pytest.raises(NotAllowed, match="needs an answer"):
        approve(workspace, item["correction"])
    approve(workspace, item["correction"], answer={"scope": "global", "predicate": "returns", "value": "free"})
    assert facts(workspace) == [("*", "returns", "free")]


def test_what_staff_say_of_all_customers_is_no_memory_of_one(workspace: Workspace) -> None:
    words = "All customers get free returns within 30 days."
    item = proposed(workspace, *(corrected(50 + n, "u3", "Free.", by="staff:ann", comment=words) for n in range(3)))
    assert "speak of everybody" in item["summary"]
    assert facts(workspace) == []


def test_a_complaint_is_no_fact(workspace: Workspace) -> None:
    lines = [trace(50 + n, user="u3", input="hi", output="no") for n in range(3)]
    words = [said(50 + n, by="u3", name="thumb", score=0, comment="This is wrong!!!") for n in range(3)]
    item = proposed(workspace, lines, words)
    assert item["needs_answer"]


def test_what_another_user_says_of_one_is_left_out(workspace: Workspace) -> None:
    item = proposed(workspace, *(corrected(50 + n, "u3", {"shop": "Elm"}, by="u4") for n in range(3)))
    assert "hearsay: u4 speaks of u3" in item["summary"]
    assert item["needs_answer"]


def test_a_secret_is_left_out_and_not_shown(workspace: Workspace) -> None:
    item = proposed(workspace, *(corrected(50 + n, "u3", {"wifi_password": "hunter2"}) for n in range(3)))
    assert "secret" in item["summary"]
    assert "hunter2" not in item["summary"]
    assert facts(workspace) == []


def test_an_answer_is_written_once_for_each_user_it_is_about(workspace: Workspace) -> None:
    take_in(workspace, *(corrected(50 + n, f"u{n}", {"shop": f"Elm {n}"}) for n in range(3)))
    turn(workspace)
    [row] = review_queue(workspace.store)
    answer: Any = {"scope_id": "u1", "subject": "u1", "predicate": "shop", "value": "Oak"}
    reroute(workspace, row["correction"], to="memory", answer=answer)
    assert facts(workspace) == [("u1", "shop", "Oak")]


def test_a_conflict_with_staff_is_held_and_settled_by_a_reviewers_own_word(workspace: Workspace) -> None:
    staff = proposed(workspace, *(corrected(50 + n, "u3", {"shop": "Elm"}, by="staff:ann") for n in range(3)))
    approve(workspace, staff["correction"]) if staff["state"] == "proposed" else None
    take_in(workspace, *(corrected(70 + n, "u3", {"shop": "Oak"}, channel="phone", day=2) for n in range(9)))
    turn(workspace)
    waiting = review_queue(workspace.store)
    assert len(waiting) == 1
    for row in waiting:
        with pytest.raises(Refused, match=r"the write gate holds.*on the word of staff:ann"):
            reroute(workspace, row["correction"], to="memory")
        reroute(workspace, row["correction"], to="memory", answer={"predicate": "shop", "value": "Oak"})
        assert facts(workspace) == [("u3", "shop", "Oak")]


def test_what_always_holds_for_each_user_goes_to_memory_in_their_own_words(workspace: Workspace) -> None:
    wanted = ("vegan menu", "window seat", "quiet room", "late breakfast", "extra pillow", "early flight")
    lines = [corrected(50 + n, f"w{n}", f"I always want the {each}, I told you", asked="book my usual trip")
             for n, each in enumerate(wanted)]  # fmt: skip
    take_in(workspace, *lines)
    turn(workspace)
    [row] = review_queue(workspace.store)
    assert row["target"] == "memory"
    item = review_item(workspace.store, row["correction"])
    assert item["summary"].startswith("Remember for 6 users: ")
    assert 'said = "I always want the' in item["summary"]


def test_a_label_of_a_prediction_is_no_fact_of_its_user(workspace: Workspace) -> None:
    words = "I always pick up at my branch Mill, you forgot again"
    lines = [
        corrected(50 + n, "u3", f"It is at the Mill branch {n}.", intent="status", comment=words) for n in range(3)
    ]
    label = [said(50 + n, by="anna", name="label", corrected_output="reserve", span="p") for n in range(3)]
    whole = [said(50 + n, by="ben", name="label", corrected_output="reserve") for n in range(3)]
    mine = [said(50 + n, by="anna", name="note", comment="I always look twice at my cases") for n in range(3)]
    item = proposed(workspace, *lines, label, whole, mine)
    [operation] = item["proposal"]["operations"]
    assert (operation["value"]["predicate"], operation["value"]["value"]) == ("said", words)
    assert operation["value"]["source"] == "u3"
