"""Changes by hand: one delta each, signed, live at once, and taken back like any other."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, update

from filmroom.live_state import live_state
from flows.edit import edit
from flows.undo import undo
from flows.workspace import Workspace
from models.normalise import NORMALISERS, UNITS
from store.errors import NotAllowed, NotFound, Refused
from store.records.targets import NORMALISER_NAMES, UNIT_NAMES
from store.tables import releases, versions
from store.why import why
from tests.shop_log import working_in

RULE = {"action": "instruct", "argument": "Offer a voucher.", "scope": {"intent": "cancel"}}


@pytest.fixture
def workspace(tmp_path: Path, store_url: str) -> Iterator[Workspace]:
    with working_in(tmp_path, url=store_url) as opened:
        yield opened


def texts(workspace: Workspace, target: str, **whose: Any) -> list[str]:
    return [each["text"] for each in live_state(workspace, **whose)[target]]


def test_a_rule_is_added_edited_and_retired_by_its_name(workspace: Workspace) -> None:
    key = edit(workspace, "context", "add", value=RULE).operations[0].key
    edit(workspace, "context", "edit", key=key, value={"argument": "Offer two vouchers."})
    assert texts(workspace, "context") == ["Offer two vouchers."]
    assert live_state(workspace)["context"][0]["marks"] == [
        "when intent cancel",
        "by staff:ann",
        "in scope of 0 traces",
    ]
    edit(workspace, "context", "retire", key=key)
    assert texts(workspace, "context") == []


def test_undo_brings_a_retired_rule_back_word_for_word(workspace: Workspace) -> None:
    key = edit(workspace, "context", "add", value=RULE).operations[0].key
    before = live_state(workspace)["context"]
    gone = edit(workspace, "context", "retire", key=key)
    undo(workspace, gone.id)
    assert live_state(workspace)["context"] == before


def test_notes_and_examples_are_entries_too(workspace: Workspace) -> None:
    edit(workspace, "context", "add", value={"text": "We close at 8."})
    edit(workspace, "context", "add", value={"input": "till when?", "output": "Till 8."})
    assert texts(workspace, "context") == ["example: till when? -> Till 8.", "note: We close at 8."] or texts(
        workspace, "context"
    ) == ["note: We close at 8.", "example: till when? -> Till 8."]


@pytest.mark.parametrize(
    ("action", "argument"), [("never_say", "offer A Voucher"), ("instruct", "Do not offer a voucher.")]
)
def test_a_rule_that_says_the_opposite_goes_to_a_person(workspace: Workspace, action: str, argument: str) -> None:
    first = "say" if action == "never_say" else "instruct"
    edit(workspace, "context", "add", key="rule_1", value={**RULE, "action": first})
    with pytest.raises(Refused, match=r"rule_1 says the opposite.*filmroom edit context retire rule_1"):
        edit(workspace, "context", "add", value={"action": action, "argument": argument})


@pytest.mark.parametrize(
    "first", [{**RULE, "argument": "Items can be returned within 30 days."}, {"text": "Return items within 30 days"}]
)
def test_a_rule_with_another_number_of_the_same_thing_names_the_one_in_force(workspace: Workspace, first: Any) -> None:
    key = edit(workspace, "context", "add", value=first).operations[0].key
    newer = {**RULE, "argument": "Items may be returned within 14 days"}
    with pytest.raises(Refused, match=rf'{key} says another number \(day\).*30 days.*"replaces": "{key}"'):
        edit(workspace, "context", "add", value=newer)
    edit(workspace, "context", "add", value={**newer, "argument": "Electronics, as an exception, within 14 days"})
    edit(workspace, "context", "retire", key=key)
    edit(workspace, "context", "add", value=newer)


def test_rules_of_scopes_that_never_meet_do_not_conflict(workspace: Workspace) -> None:
    edit(workspace, "context", "add", value={**RULE, "action": "say"})
    edit(workspace, "context", "add", value={**RULE, "action": "never_say", "scope": {"intent": "status"}})
    assert len(texts(workspace, "context")) == 2


def test_the_budget_of_a_scope_is_kept(workspace: Workspace) -> None:
    tight = workspace.acting(policy=workspace.policy.model_copy(update={"context_rules": 2, "context_tokens": 20}))
    for number in range(2):
        edit(tight, "context", "add", value={**RULE, "argument": f"Rule {number}."})
    with pytest.raises(Refused, match="3 rules for intent cancel, and 2 are allowed"):
        edit(tight, "context", "add", value={**RULE, "argument": "Rule 3."})
    edit(tight, "context", "add", value={**RULE, "argument": "Rule 4.", "scope": {"intent": "status"}})
    with pytest.raises(Refused, match="about 25 tokens"):
        edit(tight, "context", "add", value={**RULE, "argument": "x" * 100, "scope": {"intent": "buy"}})


def test_a_fact_is_superseded_and_forgotten_by_its_name(workspace: Workspace) -> None:
    shop = {"scope_id": "ann", "predicate": "shop", "value": "Elm Street"}
    edit(workspace, "memory", "add", value=shop)
    newer = edit(workspace, "memory", "add", value={**shop, "value": "Oak Street"}).operations[0].key
    assert texts(workspace, "memory") == ['user ann: shop = "Oak Street"']
    edit(workspace, "memory", "forget", key=newer)
    assert texts(workspace, "memory") == []
    with pytest.raises(Refused, match="forgotten already"):
        edit(workspace, "memory", "forget", key=newer)


def test_what_rests_on_a_superseded_fact_is_marked_stale(workspace: Workspace) -> None:
    shop = {"scope_id": "ann", "predicate": "shop", "value": "Elm Street"}
    first = edit(workspace, "memory", "add", value=shop).operations[0].key
    rests = {"scope_id": "ann", "predicate": "closing time", "value": "8 pm", "depends_on": [first]}
    edit(workspace, "memory", "add", value=rests)
    newer = edit(workspace, "memory", "add", value={**shop, "value": "Oak Street"})
    stale = {each["predicate"]: each["stale"] for each in live_state(workspace)["memory"]}
    assert stale == {"closing time": True, "shop": False}
    undo(workspace, newer.id)
    assert not any(each["stale"] for each in live_state(workspace)["memory"])


def test_a_fact_is_never_rewritten_under_its_name(workspace: Workspace) -> None:
    shop = {"scope_id": "ann", "predicate": "shop", "value": "Elm Street"}
    edit(workspace, "memory", "add", key="fact_1", value=shop)
    with pytest.raises(Refused, match="never rewritten"):
        edit(workspace, "memory", "add", key="fact_1", value={**shop, "value": "Oak Street"})


def test_undoing_both_of_two_facts_leaves_neither(workspace: Workspace) -> None:
    shop = {"scope_id": "ann", "predicate": "shop", "value": "Elm Street"}
    first = edit(workspace, "memory", "add", value=shop)
    second = edit(workspace, "memory", "add", value={**shop, "value": "Oak Street"})
    undo(workspace, first.id)
    undo(workspace, second.id)
    assert texts(workspace, "memory") == []


def test_a_policy_is_laid_over_retired_and_read_back(workspace: Workspace) -> None:
    edit(
        workspace, "tooling", "add", key="update_order", value={"retries": 2, "expected": {"order_id": "# and digits"}}
    )
    edit(workspace, "tooling", "edit", key="update_order", value={"timeout_s": 3})
    assert texts(workspace, "tooling") == ['{"expected":{"order_id":"# and digits"},"retries":2,"timeout_s":3.0}']
    edit(workspace, "tooling", "retire", key="update_order")
    assert texts(workspace, "tooling") == []


@pytest.mark.parametrize(
    ("target", "verb", "key", "value"),
    [("weights", "add", "", {}), ("memory", "retire", "fact_1", {}), ("context", "retire", "", {}),
     ("context", "add", "", {"action": "shout", "argument": "x"}), ("context", "add", "", {"action": "say", "argument": " "}),
     ("memory", "add", "", {"value": 1}), ("tooling", "add", "", {"retries": 1}), ("tooling", "add", "find", {"tries": 1}),
     ("tooling", "edit", "find", {"retries": 1})],
)  # fmt: skip
def test_what_cannot_be_done_is_named(
    workspace: Workspace, target: str, verb: str, key: str, value: dict[str, Any]
) -> None:
    with pytest.raises(NotAllowed):
        edit(workspace, target, verb, key=key, value=value)


@pytest.mark.parametrize(
    ("value", "said"),
    [({"retries": -2}, "retries: input should be greater than or equal to 0"), ({"retries": 999999999999}, "retries: .* 10"),
     ({"timeout_s": -1}, "timeout_s: .* greater than 0"), ({"freshness_s": float("inf")}, "freshness_s: .* finite"),
     ({"normalisers": {"order_id": ["fly"]}}, "normalisers: order_id: 'fly' is none of trim, .*prefix:TEXT, unit: with one of mg"),
     ({"normalisers": {"order_id": ["unit:miles"]}}, "'unit:miles' is none of"), ({"tries": 1}, "some of normalisers"),
     ({"normalisers": {"card": ["trim"]}}, "update_order has no argument 'card'; it has order_id"),
     ({"expected": {"card": "digits"}}, "no argument 'card'")],
)  # fmt: skip
def test_a_policy_out_of_its_bounds_is_refused_by_field(workspace: Workspace, value: dict[str, Any], said: str) -> None:
    with pytest.raises(NotAllowed, match=said):
        edit(workspace, "tooling", "add", key="update_order", value=value)


def test_a_tool_that_the_tools_file_does_not_have_is_refused_with_those_it_has(workspace: Workspace) -> None:
    rules: list[dict[str, Any]] = [
        {"action": "use_tool", "argument": "no_such"},
        {"action": "say", "argument": "hi", "scope": {"tool": "no_such"}},
    ]
    for target, key, value in [("tooling", "no_such", {"retries": 1}), *(("context", "", rule) for rule in rules)]:
        with pytest.raises(NotAllowed, match=r"no tool is named 'no_such' .* there are update_order"):
            edit(workspace, target, "add", key=key, value=value)
    assert edit(workspace, "context", "add", value={"action": "use_tool", "argument": "update_order"}).id


def test_the_names_of_normalisers_are_those_that_there_are() -> None:
    assert {*NORMALISER_NAMES, "prefix:#"} == {*NORMALISERS}
    assert set(UNIT_NAMES) == set(UNITS)


def test_a_policy_kept_from_before_the_bounds_is_read_and_retired(workspace: Workspace) -> None:
    made = edit(workspace, "tooling", "add", key="update_order", value={"retries": 2})
    with workspace.write() as connection:
        content = {"policies": [{"tool": "update_order", "retries": -2}], "tickets": []}
        connection.execute(update(versions).where(versions.c.id == made.after).values(content=content))
    assert texts(workspace, "tooling") == ['{"retries":-2}']
    edit(workspace, "tooling", "retire", key="update_order")
    assert texts(workspace, "tooling") == []


def explained(workspace: Workspace, id_: str) -> dict[str, Any]:
    with workspace.store.read() as connection:
        return why(connection, workspace.project, id_)


def test_why_of_an_entry_leads_to_the_changes_that_made_it(workspace: Workspace) -> None:
    made = edit(workspace, "context", "add", value=RULE)
    key = made.operations[0].key
    again = edit(workspace, "context", "edit", key=key, value={"argument": "Offer two vouchers."})
    fact = edit(workspace, "memory", "add", value={"scope_id": "u1", "predicate": "size", "value": "M"})
    found = explained(workspace, key)
    assert (found["kind"], [each["id"] for each in found["causes"]]) == ("rule", [made.id, again.id])
    assert [each["id"] for each in explained(workspace, fact.operations[0].key)["causes"]] == [fact.id]
    with pytest.raises(NotFound, match=f"which of its changes. `filmroom undo {again.id}`"):
        undo(workspace, key)
    with pytest.raises(NotFound, match="history knows no rule_0"):
        explained(workspace, "rule_0")


def test_a_shortened_id_is_taken_where_it_is_the_only_one(workspace: Workspace) -> None:
    made = edit(workspace, "context", "add", value=RULE)
    assert explained(workspace, made.id[:12])["id"] == made.id
    assert undo(workspace, made.after[:12]).undone == (made.id,)
    with workspace.write() as connection:
        for end in "ab":
            row = {"id": f"rel_01234567{end * 12}", "number": 90 + (end == "b"), "models": {}, "actor": "x", "reason": "",
                   "project": workspace.project, "context": "", "tooling": "", "memory": 0, "created_us": 0}  # fmt: skip
            connection.execute(insert(releases).values(row))
    with pytest.raises(NotFound, match=r"rel_01234567 begins several ids: rel_01234567a.*, rel_01234567b.*: give more"):
        explained(workspace, "rel_01234567")


def test_an_unknown_fact_is_named(workspace: Workspace) -> None:
    with pytest.raises(NotFound, match="no fact fact_9"):
        edit(workspace, "memory", "forget", key="fact_9")


@pytest.mark.parametrize("target", ["context", "tooling"])
def test_what_is_not_there_cannot_be_retired(workspace: Workspace, target: str) -> None:
    with pytest.raises(NotAllowed, match=f"{target} has no nope: `filmroom live {target}` shows what it has"):
        edit(workspace, target, "retire", key="nope")
