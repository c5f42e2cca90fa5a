"""What is proposed for a tool: what the log shows would have helped, and a ticket where nothing does."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flows.review import approve, reroute
from flows.turn import turn
from flows.workspace import Workspace
from models.evidence import Deployment, argument_repairs
from store.errors import NotAllowed
from store.records import Policy
from store.review_queue import review_item, review_queue
from tests.shop_log import said, satisfied, take_in, trace, working_in
from tests.test_evidence import call, case, episode, evidence


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with working_in(tmp_path) as opened:
        yield opened


def called(number: int, *calls: tuple[dict[str, Any], str | None], score: float = 0) -> list[dict[str, Any]]:
    """A conversation with these calls of `find`: arguments, and the error of each."""
    steps = [
        {"id": f"c{at}", "kind": "tool", "name": "find", "input": given, "status": "error" if error else "ok",
         **({"error": error} if error else {"output": "found"})}
        for at, (given, error) in enumerate(calls)
    ]  # fmt: skip
    return [trace(number, input="find it", output="sorry" if score == 0 else "here", spans=steps),
            said(number, name="thumb", score=score)]  # fmt: skip


def proposed(workspace: Workspace, *lines: list[dict[str, Any]]) -> dict[str, Any]:
    """The tooling proposal for these failures."""
    take_in(workspace, *(satisfied(n) for n in range(20)), *lines)
    turn(workspace)
    row = review_queue(workspace.store)[0]
    if row["target"] != "tooling":
        reroute(workspace, row["correction"], to="tooling")
    return review_item(workspace.store, row["correction"])


def value(item: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = item["proposal"]["operations"][0]["value"]
    return found


@pytest.mark.parametrize("error", ["Error: no such thing", "HTTP 503"])
def test_a_call_that_succeeds_when_it_is_made_again_is_retried(workspace: Workspace, error: str) -> None:
    again = [called(60 + n, ({"id": n if error != "HTTP 503" else 90 + n}, None), score=1) for n in range(4)]
    item = proposed(workspace, *again, *(called(40 + n, ({"id": n}, error)) for n in range(4)))
    assert value(item) == {"retries": 2}
    assert item["summary"] == "Call `find` up to 2 more times where it fails"


def test_a_tool_that_acts_is_never_proposed_to_be_called_again(workspace: Workspace) -> None:
    lines = [called(60 + n, ({"id": n}, None), score=1) for n in range(4)]
    lines += [called(40 + n, ({"id": n}, "HTTP 503")) for n in range(4)]
    for each in lines:
        each[0]["spans"][0]["name"] = "send_money"
    assert "retries" not in value(proposed(workspace, *lines))


def test_an_argument_that_all_good_calls_have_is_required(workspace: Workspace) -> None:
    good = [called(60 + n, ({"id": n, "shop": "Elm"}, None), score=1) for n in range(4)]
    item = proposed(workspace, *good, *(called(40 + n, ({"id": 90 + n}, "Error: no")) for n in range(4)))
    assert value(item) == {"schema_patch": {"required": ["shop"]}}
    assert "Refuse a call of `find` without `shop`" in item["summary"]


def test_a_normaliser_that_would_change_a_good_call_is_not_proposed(workspace: Workspace) -> None:
    """`x1` fails and `X1` works, but `y2` works as well: upper case would change it."""
    good = [called(60, ({"id": "X1"}, None), score=1), called(61, ({"id": "y2"}, None), score=1)]
    item = proposed(workspace, *good, *(called(40 + n, ({"id": "x1"}, "Error: no such id")) for n in range(4)))
    assert "normalisers" not in value(item)


def test_a_number_written_as_text_becomes_one(workspace: Workspace) -> None:
    good = [called(60 + n, ({"count": n}, None), score=1) for n in range(4)]
    item = proposed(workspace, *good, *(called(40 + n, ({"count": "2"}, "Error: not a number")) for n in range(4)))
    assert value(item) == {"normalisers": {"count": ["number"]}}


def test_how_many_of_the_failing_calls_are_mended_is_said(workspace: Workspace) -> None:
    good = [called(60 + n, ({"id": f"#{n}"}, None), score=1) for n in range(4)]
    some = [called(40, ({"id": "2"}, "not valid")), called(41, ({"id": "77"}, "not valid"))]
    assert proposed(workspace, *good, *some)["proposal"]["summary"].endswith("; shown to mend 1 of 2 failing calls")


def test_where_nothing_helps_a_ticket_is_opened(workspace: Workspace) -> None:
    item = proposed(workspace, *(called(40 + n, ({"id": n}, "Error: database is gone")) for n in range(4)))
    assert value(item)["tool"] == "find"
    assert item["summary"].startswith("Open a ticket")


def test_a_reviewers_policy_takes_the_tickets_place(workspace: Workspace) -> None:
    take_in(workspace, *(satisfied(n) for n in range(20)),
            *(called(40 + n, ({"id": n}, "Error: database is gone")) for n in range(4)))  # fmt: skip
    turn(workspace)
    row = review_queue(workspace.store)[0]
    done = (
        approve(workspace, row["correction"], answer={"timeout_s": 3, "freshness_s": 60})
        if row["target"] == "tooling"
        else reroute(workspace, row["correction"], to="tooling", answer={"timeout_s": 3, "freshness_s": 60})
    )
    assert done.live
    [operation] = review_item(workspace.store, row["correction"])["proposal"]["operations"]
    assert (operation["key"], operation["value"]) == ("find", {"timeout_s": 3.0, "freshness_s": 60.0})


def test_a_reviewers_policy_out_of_its_bounds_is_refused(workspace: Workspace) -> None:
    take_in(workspace, *(satisfied(n) for n in range(20)),
            *(called(40 + n, ({"id": n}, "Error: database is gone")) for n in range(4)))  # fmt: skip
    turn(workspace)
    row = review_queue(workspace.store)[0]
    with pytest.raises(NotAllowed, match="normalisers: id: 'fly' is none of trim"):
        reroute(workspace, row["correction"], to="tooling", answer={"normalisers": {"id": ["fly"]}})


def test_an_answer_of_a_tool_that_was_judged_wrong_opens_a_ticket(workspace: Workspace) -> None:
    """The same call gives the same answer again: calling once more helps as little as asking for another argument."""
    lines = [called(60 + n, ({"id": n}, None), score=1) for n in range(4)]
    item = proposed(workspace, *lines, *(called(40 + n, ({"id": 90 + n}, None)) for n in range(4)))
    assert (item["proposal"]["operations"][0]["verb"], "retries" in value(item)) == ("ticket_open", False)


ACCEPTED = ("L-12341", "L-12342", "L-12343")


@pytest.mark.parametrize(
    ("failing", "known", "error", "chain"),
    [
        ("12341", ACCEPTED, "id is not valid", ("prefix:L-",)),
        ("98765", ACCEPTED, "id is not valid", ("prefix:L-",)),
        (" 98765", ACCEPTED, "id is not valid", ("trim", "prefix:L-")),
        ("987", ACCEPTED, "id is not valid", None),
        ("98765", ACCEPTED, "HTTP 503", None),
        ("98765", ACCEPTED[:2], "id is not valid", None),
        ("98765", (*ACCEPTED, "12345"), "id is not valid", None),
        ("9-9", ("2024-05-1", "2024-05-2", "2024-05-3"), "id is not valid", None),
    ],
)
def test_a_prefix_that_all_accepted_values_have_is_tried(
    failing: str, known: tuple[str, ...], error: str, chain: tuple[str, ...] | None
) -> None:
    fine = [episode(f"f{at}", call(f"f{at}", {"id": each}, None)) for at, each in enumerate(known)]
    bad = case("1", call("1", {"id": failing}, error))
    repairs = argument_repairs([bad], fine, deployment=Deployment(), policy=Policy())
    assert repairs == ({"update_order": {"id": chain}} if chain else {})
    assert evidence(bad, satisfied=fine)["normalisable"] == float(chain is not None)


def test_a_prefix_of_accepted_values_mends_what_breaks_the_schema() -> None:
    schema = {"type": "object", "properties": {"id": {"type": "string", "pattern": "^L-[0-9]{5}$"}}}
    fine = [episode(f"f{at}", call(f"f{at}", {"id": each}, None)) for at, each in enumerate(ACCEPTED)]
    bad = case("1", call("1", {"id": "98765"}))
    deployment = Deployment(tools={"update_order": {"parameters": schema}})
    repairs = argument_repairs([bad], fine, deployment=deployment, policy=Policy())
    assert repairs == {"update_order": {"id": ("prefix:L-",)}}
