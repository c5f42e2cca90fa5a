"""Several reviewers of one correction: nothing is done before enough agree; the review's own functions do it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.opinions import (
    ask_reviewers,
    claim,
    give_opinion,
    give_opinions,
    overall,
    pairwise,
    panel,
    take_back,
    unclaim,
)
from flows.workspace import Workspace
from store.corrections import correction, reviews_of
from store.errors import NotAllowed
from store.opinions import all_opinions, next_for
from store.queue_page import QueueFilter, items, matching, queue_counts
from store.saved_filters import drop_filter, filters_for, save_filter
from tests.console_home import correction_in, reviewing


@pytest.fixture
def workspace(tmp_path: Path, store_url: str) -> Iterator[Workspace]:
    """Two blind reviewers a correction."""
    with reviewing(tmp_path, tools=4, url=store_url, reviewers=2) as opened:
        yield opened


def as_(workspace: Workspace, name: str) -> Workspace:
    return workspace.acting(actor=f"staff:{name}")


def state_of(workspace: Workspace, id_: str) -> str:
    with workspace.store.read() as connection:
        return correction(connection, workspace.project, id_).state


def seen_by(workspace: Workspace, name: str, id_: str) -> tuple[str, int, list[str]]:
    with workspace.store.read() as connection:
        found = panel(connection, as_(workspace, name), id_)
    return found.stage, found.count, [each.reviewer for each in found.given]


def ids_of(workspace: Workspace, wanted: QueueFilter, me: str = "staff:ann", cap: int = 200) -> list[str]:
    with workspace.store.read() as connection:
        return matching(connection, workspace.project, wanted, cap=cap, reviewers=2, me=me, now_us=workspace.clock())


def test_the_second_who_agrees_has_it_done(workspace: Workspace) -> None:
    id_ = correction_in(workspace, "tooling")
    first = give_opinion(as_(workspace, "ann"), id_, "approve")
    between = state_of(workspace, id_)
    second = give_opinion(as_(workspace, "bob"), id_, "approve")
    with workspace.store.read() as connection:
        verdicts = [(each.reviewer, each.verdict) for each in reviews_of(connection, id_)]
    assert (first.change, between, second.live, state_of(workspace, id_)) == (None, "proposed", True, "applied")
    assert verdicts == [("staff:bob", "approve")]


def test_those_who_disagree_wait_for_a_third_who_settles_it(workspace: Workspace) -> None:
    id_ = correction_in(workspace, "tooling")
    give_opinion(as_(workspace, "ann"), id_, "approve")
    second = give_opinion(as_(workspace, "bob"), id_, "reject", reason="their own mistake")
    before = state_of(workspace, id_)
    give_opinion(as_(workspace, "eva"), id_, "reject")
    with workspace.store.read() as connection:
        given = all_opinions(connection, workspace.project)
    assert ("disagree" in second.next, before, state_of(workspace, id_)) == (True, "proposed", "rejected")
    assert [(each.reviewer, each.decides) for each in given] == [
        ("staff:ann", False), ("staff:bob", False), ("staff:eva", True),
    ]  # fmt: skip


def test_a_blind_reviewer_sees_others_after_their_own(workspace: Workspace) -> None:
    id_ = correction_in(workspace, "tooling")
    give_opinion(as_(workspace, "ann"), id_, "approve")
    before = seen_by(workspace, "bob", id_)
    give_opinion(as_(workspace, "bob"), id_, "reject")
    assert before == ("more", 1, [])
    assert seen_by(workspace, "bob", id_) == ("disagreed", 2, ["staff:ann", "staff:bob"])


def test_nobody_counts_twice(workspace: Workspace) -> None:
    id_ = correction_in(workspace, "tooling")
    give_opinion(as_(workspace, "ann"), id_, "approve")
    with pytest.raises(NotAllowed, match="undo that first"):
        give_opinion(as_(workspace, "ann"), id_, "approve")
    assert state_of(workspace, id_) == "proposed"


def test_an_opinion_is_withdrawn_and_given_anew(workspace: Workspace) -> None:
    id_ = correction_in(workspace, "tooling")
    give_opinion(as_(workspace, "ann"), id_, "approve")
    take_back(as_(workspace, "ann"), id_)
    give_opinion(as_(workspace, "ann"), id_, "reject")
    give_opinion(as_(workspace, "bob"), id_, "reject")
    assert state_of(workspace, id_) == "rejected"


def test_a_correction_that_is_opened_again_starts_without_opinions(workspace: Workspace) -> None:
    id_ = correction_in(workspace, "tooling")
    for name in ("ann", "bob"):
        give_opinion(as_(workspace, name), id_, "reject")
    take_back(as_(workspace, "ann"), id_)
    assert (state_of(workspace, id_), seen_by(workspace, "ann", id_)) == ("proposed", ("first", 0, []))


def test_what_could_never_be_done_is_no_opinion(workspace: Workspace) -> None:
    id_ = correction_in(workspace, "context")
    with pytest.raises(NotAllowed, match="needs an answer first"):
        give_opinion(as_(workspace, "ann"), id_, "approve")
    assert seen_by(workspace, "bob", id_) == ("first", 0, [])


def test_one_reviewer_suffices_where_that_is_asked_for(workspace: Workspace) -> None:
    id_ = correction_in(workspace, "tooling")
    ask_reviewers(workspace, [id_], 1)
    give_opinion(as_(workspace, "ann"), id_, "approve")
    assert state_of(workspace, id_) == "applied"
    with pytest.raises(NotAllowed, match="between 1 and 9"):
        ask_reviewers(workspace, [id_], 10)


def test_a_claim_keeps_as_many_out_as_there_are_places_and_ends_by_itself(workspace: Workspace) -> None:
    id_ = correction_in(workspace, "tooling")
    now = [workspace.clock()]
    clocked = workspace.acting(clock=lambda: now[0])
    claim(as_(clocked, "ann"), id_)
    claim(as_(clocked, "bob"), id_)
    with pytest.raises(NotAllowed, match="someone else is at"):
        claim(as_(clocked, "eva"), id_)
    unclaim(as_(clocked, "bob"), id_)
    claim(as_(clocked, "eva"), id_)
    now[0] += 16 * 60_000_000
    assert claim(as_(clocked, "bob"), id_) == now[0] + 15 * 60_000_000


def test_the_next_one_is_one_nobody_is_at_and_one_has_not_judged(workspace: Workspace) -> None:
    first, second, third, *_ = ids = ids_of(workspace, QueueFilter())
    give_opinion(as_(workspace, "ann"), first, "reject")
    claim(as_(workspace, "bob"), second)
    with workspace.store.read() as connection:
        found = next_for(connection, workspace.project, ids, "staff:ann", now_us=workspace.clock())
    assert found == third


def test_counts_are_true_whatever_happened(workspace: Workspace) -> None:
    first, second, third, *rest = ids_of(workspace, QueueFilter())
    give_opinion(as_(workspace, "ann"), first, "reject")
    give_opinion(as_(workspace, "bob"), first, "reroute", to="tooling")
    give_opinion(as_(workspace, "ann"), second, "reject")
    give_opinion(as_(workspace, "ann"), third, "defer")
    with workspace.store.read() as connection:
        counts = queue_counts(connection, workspace.project, cap=2, reviewers=2)
    assert counts.total == 3 + len(rest)
    assert (counts.queued, counts.deferred, counts.second, counts.adjudicate) == (2, 1, 1, 1)
    assert ids_of(workspace, QueueFilter(show="held"), cap=2) == [
        each for each in ids_of(workspace, QueueFilter(show="queued")) if each not in
        ids_of(workspace, QueueFilter(show="queued"), cap=2)
    ]  # fmt: skip


def test_a_filter_finds_by_place_words_and_size(workspace: Workspace) -> None:
    memory = correction_in(workspace, "memory")
    with workspace.store.read() as connection:
        (shown,) = items(connection, workspace.project, [memory], now_us=workspace.clock())
    assert ids_of(workspace, QueueFilter(target="memory")) == [memory]
    assert memory in ids_of(workspace, QueueFilter(text=shown["name"][:12].upper()))
    assert ids_of(workspace, QueueFilter(text="100%_no such")) == []
    assert memory in ids_of(workspace, QueueFilter(min_failures=shown["failures"]))
    assert ids_of(workspace, QueueFilter(min_failures=1000)) == []
    claim(as_(workspace, "ann"), memory)
    assert ids_of(workspace, QueueFilter(mine=True)) == [memory]


def test_a_verdict_on_many_names_what_it_could_not_do(workspace: Workspace) -> None:
    tool, rule = correction_in(workspace, "tooling"), correction_in(workspace, "context")
    ask_reviewers(workspace, [tool, rule], 1)
    done = give_opinions(as_(workspace, "ann"), [tool, rule], "approve")
    assert [each.correction for each in done.done] == [tool]
    assert list(done.failed) == [rule]
    assert "needs an answer" in done.failed[rule]


def test_agreement_is_counted_over_what_both_judged(workspace: Workspace) -> None:
    for number, id_ in enumerate(ids_of(workspace, QueueFilter(target="tooling"))[:4]):
        give_opinion(as_(workspace, "ann"), id_, "approve", seconds=12.0)
        give_opinion(as_(workspace, "bob"), id_, "approve" if number else "reject")
    with workspace.store.read() as connection:
        given = all_opinions(connection, workspace.project)
    both = pairwise(given)[("staff:ann", "staff:bob")]
    assert (both.items, both.observed, overall(given).items) == (4, 0.75, 4)
    assert [each.seconds for each in given if each.reviewer == "staff:ann"] == [12.0] * 4


def test_a_filter_is_kept_for_oneself_or_for_all(workspace: Workspace) -> None:
    with workspace.store.write() as connection:
        mine = save_filter(connection, "default", "staff:ann", "tools", "target=tooling", shared=False, now_us=1)
        save_filter(connection, "default", "staff:ann", "all", "show=all", shared=True, now_us=1)
        seen = [each["name"] for each in filters_for(connection, "default", "staff:bob")]
        drop_filter(connection, "default", "staff:ann", mine)
        left = [each["name"] for each in filters_for(connection, "default", "staff:ann")]
    assert (seen, left) == (["all"], ["all"])
