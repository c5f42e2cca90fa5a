"""The same user asks the same again in another trace: a hint about the first answer, and the second time a failure."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from flows.pickup import pickup
from flows.workspace import Workspace
from store.tables import failures, signals, traces
from tests.shop_log import START_S, take_in, trace, working_in

WORDS = ["where is my parcel 17", "where is my parcel now", "so where is my parcel"]


def asked(number: int, second: float, *, text: str | None = None, **values: Any) -> list[dict[str, Any]]:
    line = trace(number, input=text or WORDS[number % 3], output="Please wait.", **values)
    return [{**line, "started": START_S + second}]


@pytest.fixture
def workspace(tmp_path: Path, store_url: str) -> Iterator[Workspace]:
    with working_in(tmp_path, url=store_url) as opened:
        yield opened


def found(workspace: Workspace) -> tuple[list[tuple[str, str]], list[str]]:
    """The signals by trace, and the traces that failed, under the names of the log."""
    with workspace.store.read() as connection:
        named = dict(connection.execute(select(traces.c.id, traces.c.external_id)).all())
        said = connection.execute(select(signals.c.trace_id, signals.c.detector)).all()
        failed = connection.execute(select(failures.c.trace_id)).scalars()
        return sorted((named[row.trace_id], row.detector) for row in said), sorted(named[each] for each in failed)


def test_once_more_is_a_hint_and_twice_a_failure(workspace: Workspace) -> None:
    take_in(workspace, asked(0, 0, user="ann"), asked(1, 60, user="ann"), asked(2, 120, user="ann"))
    pickup(workspace)
    assert found(workspace) == ([("t0", "asked_again"), ("t0", "asked_twice"), ("t1", "asked_again")], ["t0"])


def test_a_trace_that_was_seen_before_is_looked_at_again(workspace: Workspace) -> None:
    for number in range(3):
        take_in(workspace, asked(number, 60 * number, user="ann"))
        pickup(workspace)
    assert found(workspace)[1] == ["t0"]


@pytest.mark.parametrize(
    "others",
    [
        [asked(1, 60, user="bob"), asked(2, 120, user="eve")],
        [
            asked(1, 60, user="ann", text="I want to return a blender"),
            asked(2, 120, user="ann", text="thanks, all is well"),
        ],
        [asked(1, 1, user="ann"), asked(2, 2, user="ann")],
        [asked(1, 3600, user="ann"), asked(2, 7200, user="ann")],
        [asked(n, 20 * n, user="ann") for n in range(1, 20)],
    ],
    ids=["other users", "other words", "a program's pace", "hours later", "a busy program"],
)
def test_what_is_no_retry_says_nothing(workspace: Workspace, others: list[list[dict[str, Any]]]) -> None:
    take_in(workspace, asked(0, 0, user="ann"), *others)
    pickup(workspace)
    assert "t0" not in found(workspace)[1]
    assert ("t0", "asked_again") not in found(workspace)[0]


def test_without_a_user_the_session_tells(workspace: Workspace) -> None:
    lines = [line for n in range(3) for line in asked(n, 60 * n, session="s")]
    take_in(workspace, [{**line, "user": None} for line in lines])
    pickup(workspace)
    assert found(workspace)[1] == ["t0"]
