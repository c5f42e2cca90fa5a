"""The log a page at a time: every trace once, whatever is looked for."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from flows.workspace import Workspace
from store.home_page import days
from store.trace_page import TraceFilter, is_mark, trace_page
from tests.console_home import reviewing
from tests.shop_log import DAY_S, START_S, said, take_in, trace


@pytest.fixture
def workspace(tmp_path: Path, store_url: str) -> Iterator[Workspace]:
    with reviewing(tmp_path, url=store_url) as opened:
        undated = [[{"type": "trace", "id": f"n{n}", "input": "no time"}] for n in range(5)]
        take_in(opened, *undated)
        yield opened


def walked(workspace: Workspace, wanted: TraceFilter, limit: int = 7) -> list[list[str]]:
    """The ids of every page, one after the other."""
    pages, start = [], ""
    while True:
        with workspace.store.read() as connection:
            found = trace_page(connection, workspace.project, wanted, start=start, limit=limit)
        pages.append([row["trace"] for row in found.rows])
        if found.following is None:
            return pages
        assert is_mark(found.following)
        start = found.following


def test_every_trace_is_on_one_page_the_newest_first_and_undated_ones_last(workspace: Workspace) -> None:
    pages = walked(workspace, TraceFilter())
    with workspace.store.read() as connection:
        times = [row["started_us"] for row in trace_page(connection, "default", TraceFilter(), limit=100).rows]
    ids = [id_ for page in pages for id_ in page]
    dated = [each for each in times if each is not None]
    assert (len(ids), len(set(ids)), [len(page) for page in pages[:-1]]) == (45, 45, [7] * 6)
    assert (dated, times[40:]) == (sorted(dated, reverse=True), [None] * 5)


def test_filters_are_taken_together(workspace: Workspace) -> None:
    of_user = [id_ for page in walked(workspace, TraceFilter(user="u3")) for id_ in page]
    failed = [id_ for page in walked(workspace, TraceFilter(user="u3", failed="yes")) for id_ in page]
    fine = [id_ for page in walked(workspace, TraceFilter(user="u3", failed="no")) for id_ in page]
    assert set(failed) | set(fine) == set(of_user)
    assert (set(failed) & set(fine), len(failed) > 4) == (set(), True)


def test_words_are_found_in_what_was_asked_and_in_what_a_tool_answered(workspace: Workspace) -> None:
    asked = [id_ for page in walked(workspace, TraceFilter(text="CHANGE my")) for id_ in page]
    tool = [id_ for page in walked(workspace, TraceFilter(text="order_id valid")) for id_ in page]
    assert (len(asked), set(asked) == set(tool)) == (5, True)
    assert walked(workspace, TraceFilter(text="zebra")) == [[]]


def test_a_search_that_takes_too_long_says_how_far_it_got_and_goes_on(workspace: Workspace) -> None:
    ticks = iter(range(1000))
    with workspace.store.read() as connection:
        first = trace_page(connection, "default", TraceFilter(text="no time"), timer=lambda: float(next(ticks)))
    assert (first.looked, len(first.rows)) == (45, 5)
    assert first.looked_back_to_us is None


def test_an_id_is_found_at_once(workspace: Workspace) -> None:
    wanted = walked(workspace, TraceFilter())[2][3]
    with workspace.store.read() as connection:
        found = trace_page(connection, "default", TraceFilter(text=wanted))
    assert [row["trace"] for row in found.rows] == [wanted]


def test_times_bound_what_is_shown(workspace: Workspace) -> None:
    take_in(workspace, [trace(900, day=3, input="late"), said(900, day=3, name="thumb", score=1)])
    at_us = (START_S + 2 * DAY_S) * 1_000_000
    late = walked(workspace, TraceFilter(after_us=at_us))
    early = walked(workspace, TraceFilter(before_us=at_us), limit=100)
    assert (len(late[0]), len(early[0])) == (1, 40)


def test_days_without_traces_are_days_too(workspace: Workspace) -> None:
    take_in(workspace, [trace(900, day=3, input="late")])
    with workspace.store.read() as connection:
        found = days(connection, "default")
    assert [(each.traces, each.failures) for each in found] == [(40, 20), (0, 0), (0, 0), (1, 0)]
