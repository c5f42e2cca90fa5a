"""The learned router through real turns: learned, shadowed, taken back, pinned, refused, and explained."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from filmroom.router_view import described
from flows.calibration import calibrate
from flows.rollback import rollback_router
from flows.router_undo import pin
from flows.router_versions import in_force
from flows.turn import turn
from flows.undo import undo
from flows.workspace import Workspace
from store.corrections import put_correction, put_review, put_route
from store.errors import NotAllowed, NotFound
from store.failures import cluster_for
from store.records import Correction, Fingerprint, Proposal, Review, Route, RouterEvent, Target
from store.router_log import router_events
from store.why import why
from tests.commands import runner, value
from tests.shop_log import bad_argument, take_in, working_in

Like = Callable[[int], tuple[Target, dict[str, float | None]]]


@pytest.fixture
def workspace(tmp_path: Path, store_url: str) -> Iterator[Workspace]:
    with working_in(tmp_path, url=store_url) as opened:
        ticks = count(1_000_000)
        yield opened.acting(clock=lambda: next(ticks))


def odd(at: int) -> tuple[Target, dict[str, float | None]]:
    """What no rule knows: near 1 it belongs in tooling, near 0 in memory."""
    return ("tooling" if at % 2 else "memory"), {"odd": at % 2 + at % 7 / 20}


def turned(at: int) -> tuple[Target, dict[str, float | None]]:
    """The reverse, of which the rules know the half."""
    said: dict[str, float | None] = {} if at % 2 else {"schema_violation": 1.0, "normalisable": 1.0}
    return ("memory" if at % 2 else "tooling"), {"odd": at % 2 + at % 7 / 20, **said}


def ruled(at: int) -> tuple[Target, dict[str, float | None]]:
    """What the rules know already."""
    return ("tooling", {"schema_violation": 1.0, "normalisable": 1.0}) if at % 2 else ("context", {"normative": 1.0})


def strange(at: int) -> tuple[Target, dict[str, float | None]]:
    """What neither the rules nor a version that learnt from `odd` know."""
    return ("context" if at % 2 else "weights"), {"strange": 1.0 + at % 2}


def decide(workspace: Workspace, start: int, number: int, like: Like = odd) -> None:
    """So many decided clusters, each rerouted by a person to the place that `like` names."""
    with workspace.write() as connection:
        for at in range(start, start + number):
            (place, evidence), now_us = like(at), workspace.clock()
            print_ = Fingerprint(version=1, component=f"tool_{at}", kind="tool", error_class="validation")
            cluster_id = cluster_for(connection, workspace.project, print_, "c", 0)
            found = Correction(cluster_id=cluster_id, created_us=at, state="applied",
                               proposal=Proposal(target=place, summary="s"))  # fmt: skip
            put_correction(connection, found)
            put_route(connection, Route(
                correction_id=found.id, cluster_id=cluster_id, decided_us=now_us, probabilities={"none": 1.0}, target=None,
                runner_up=None, certified=False, reason="", to_yes="", evidence=evidence, failures=2, router="r",
            ))  # fmt: skip
            put_review(connection, Review(correction_id=found.id, verdict="reroute", target=place, reviewer="staff:ann",
                                          authority=True, at_us=now_us))  # fmt: skip


def events(workspace: Workspace) -> list[RouterEvent]:
    with workspace.store.read() as connection:
        return router_events(connection, workspace.project)


def version(workspace: Workspace) -> str:
    with workspace.store.read() as connection:
        return in_force(workspace, connection).router.version


def shown(workspace: Workspace) -> dict[str, Any]:
    with workspace.store.read() as connection:
        return described(calibrate(workspace, connection))


def learned(workspace: Workspace) -> str:
    """The version that a turn learns from a hundred decided clusters."""
    decide(workspace, 0, 100)
    summary = turn(workspace)
    found = version(workspace)
    assert summary.router.startswith(f"{found} routes from now on: right out of fold on 100 of 100")
    return found


def test_a_turn_learns_a_version_that_routes_and_that_why_walks(workspace: Workspace) -> None:
    decide(workspace, 0, 99)
    assert (turn(workspace).router, version(workspace)) == ("", "rules-4")
    decide(workspace, 99, 1)
    take_in(workspace, bad_argument(1), bad_argument(2))
    turn(workspace)
    found = version(workspace)
    assert [(each.event, each.subject) for each in events(workspace)] == [
        ("router in force", "router"),
        ("learned", found),
    ]
    with workspace.store.read() as connection:
        chain = why(connection, workspace.project, found)
    assert (chain["kind"], chain["events"][0]["event"], chain["causes"][0]["kind"]) == (
        "router version",
        "learned",
        "review",
    )
    assert [each["id"] for each in chain["effects"]] == ["router"]


def test_it_is_not_learnt_again_before_ten_more_clusters_and_then_judged_against_itself(workspace: Workspace) -> None:
    found = learned(workspace)
    decide(workspace, 100, 9)
    assert (turn(workspace).router, len(events(workspace))) == ("", 1)
    decide(workspace, 109, 1)
    said = turn(workspace).router
    assert said.startswith(f"{found} goes on to route: a candidate was right out of fold on 110 of 110")
    now = shown(workspace)
    assert (now["router"], now["parent"], now["until_next_look"]) == (found, "rules-4", 10)
    assert {each["learnt"] for each in now["learnt_last"]} == {False}
    assert (now["refused"]["champion"], now["shadow"]["judged"], now["shadow"]["lost"]) == (found, 10, 0)
    assert [each["event"] for each in now["history"]] == ["learned", "refused"]


def test_why_names_the_version_before_among_however_many_verdicts(workspace: Workspace) -> None:
    first = learned(workspace)
    decide(workspace, 100, 60, strange)
    turn(workspace)
    second = events(workspace)[-1]
    assert (second.event, second.decided) == ("learned", 160)
    with workspace.store.read() as connection:
        causes = why(connection, workspace.project, second.subject)["causes"]
    assert (causes[0]["id"], causes[1]["kind"], causes[-1]["kind"]) == (first, "review", "and 11 more")
    assert undo(workspace, second.subject).next.startswith(f"{first} decides;")


def test_undo_takes_it_back_and_the_same_evidence_does_not_bring_it_back(workspace: Workspace) -> None:
    found = learned(workspace)
    done = undo(workspace, found, reason="it sends too much to memory")
    assert (done.undone, version(workspace)) == ((found,), "rules-4")
    assert done.next == "the rules decide; a learned router competes again after 10 more decided clusters"
    assert (turn(workspace).router, version(workspace)) == ("", "rules-4")
    assert shown(workspace)["reason"] == "rules-4: it sends too much to memory"
    with pytest.raises(NotAllowed, match="does not decide, the rules do"):
        undo(workspace, found)
    decide(workspace, 100, 10)
    turn(workspace)
    assert version(workspace) not in ("rules-4", found)
    with pytest.raises(NotFound, match="no router version rtr_0"):
        undo(workspace, "rtr_0")


def test_a_rollback_goes_to_an_earlier_version_or_to_the_rules(workspace: Workspace) -> None:
    found = learned(workspace)
    assert rollback_router(workspace, "rules", reason="a trial").undone == (found,)
    assert version(workspace) == "rules-4"
    assert rollback_router(workspace, found, reason="it was better").next.startswith(f"{found} decides;")
    assert version(workspace) == found
    with pytest.raises(NotAllowed, match="decides already"):
        rollback_router(workspace, found, reason="")


def test_verdicts_that_turn_bring_the_rules_back_without_a_person(workspace: Workspace) -> None:
    found = learned(workspace)
    decide(workspace, 100, 20, turned)
    said = turn(workspace).router
    assert said.startswith(
        f"rules-4 routes again: {found} was taken back: of 20 clusters decided since it learned, rules-4"
    )
    back = events(workspace)[-1]
    assert (back.event, back.subject, back.actor, back.detail["decided"]) == ("rolled back", found, "filmroom", 120)
    assert (version(workspace), turn(workspace).router) == ("rules-4", "")
    rollback_router(workspace, found, reason="those twenty were a mistake")
    assert (turn(workspace).router, version(workspace), shown(workspace)["shadow"]["judged"]) == ("", found, 0)


def test_a_pin_to_the_rules_is_an_event_and_nothing_is_learnt_under_it(workspace: Workspace) -> None:
    pin(workspace, pinned=True, reason="audit")
    decide(workspace, 0, 100)
    assert (turn(workspace).router, shown(workspace)["reason"]) == ("", "rules-4: pinned by staff:ann: audit")
    assert shown(workspace)["since"] == events(workspace)[0].at_us
    with pytest.raises(NotAllowed, match="pinned already"):
        pin(workspace, pinned=True, reason="")
    assert pin(workspace, pinned=False, reason="") == "rules-4"
    turn(workspace)
    assert [each.event for each in events(workspace)] == ["pinned", "unpinned", "learned"]


def test_what_the_rules_know_is_refused_with_its_numbers_and_the_way_to_yes(workspace: Workspace) -> None:
    decide(workspace, 0, 100, ruled)
    assert turn(workspace).router.startswith(
        "rules-4 goes on to route: a candidate was right out of fold on 100 of 100"
    )
    [said, _] = events(workspace)
    assert said.gate is not None
    assert (said.event, said.gate.newly_right, said.gate.look, said.decided) == ("refused", 0, 1, 100)
    now = shown(workspace)
    assert now["reason"] == f"rules-4: a candidate was {said.reason}"
    assert now["refused"]["to_yes"].startswith("8 more decided clusters that only the learned router gets right")
    with workspace.store.read() as connection:
        assert len(why(connection, workspace.project, said.subject)["causes"]) == 51
    with pytest.raises(NotAllowed, match="was refused and has never decided"):
        undo(workspace, said.subject)
    decide(workspace, 100, 10, ruled)
    turn(workspace)
    assert [each.gate.look for each in events(workspace) if each.gate is not None] == [1, 2]


def test_the_command_shows_the_version_pins_it_and_says_how_to_go_on(
    workspace: Workspace, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not workspace.settings.store_url.startswith("sqlite"):
        pytest.skip("the command reads the settings of the folder")
    found = learned(workspace)
    monkeypatch.chdir(workspace.settings.home)
    run = runner(capfd)
    said = run("router")[1]
    assert f"in place of rules-4; to take it back: filmroom undo {found}" in said
    assert "shadow: of 0 clusters decided since" in said
    pinned = value(run("router", "--pin", "--reason", "audit", "--json"))
    assert (pinned["router"], pinned["pinned"], pinned["history"][-1]["event"]) == ("rules-4", True, "pinned")
    assert "filmroom router --unpin" in run("router")[1]
    assert value(run("rollback", "rules", "--json"))["next"].startswith("the rules decide; a learned router")
    assert f"and {found} once they do no longer" in run("rollback", found)[1]
    assert value(run("router", "--unpin", "--json"))["router"] == found
    assert value(run("rollback", "rules", "--reason", "a trial", "--json"))["undone"] == [found]
    assert run("rollback", found)[1].startswith("rules-4 no longer routes")
    assert value(run("undo", found, "--reason", "a trial", "--json"))["undone"] == [found]
    assert run("undo", found)[2].count("\n") == 1
