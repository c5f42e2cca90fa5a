"""`filmroom review` in a terminal: a key a verdict."""

from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from filmroom.terminal_review import review_by_keys
from flows.workspace import Workspace
from store.corrections import correction, waiting
from tests.console_home import correction_in, reviewing


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with reviewing(tmp_path, tools=2) as opened:
        yield opened


def typed(workspace: Workspace, keys: str, answer: str = "") -> tuple[int, str]:
    """Verdicts given and what was on the screen, for these keys and then `q`."""
    screen, pressed = Console(file=StringIO(), width=140, highlight=False), iter([*keys, *"qqqqqq"])
    given = review_by_keys(workspace, screen, read=lambda: next(pressed), ask=lambda _: answer)
    shown = screen.file
    assert isinstance(shown, StringIO)
    return given, shown.getvalue()


def state_of(workspace: Workspace, id_: str) -> str:
    with workspace.store.read() as connection:
        return correction(connection, workspace.project, id_).state


def queue(workspace: Workspace) -> list[str]:
    with workspace.store.read() as connection:
        return [found.id for found, _, _ in waiting(connection, workspace.project)]


def test_each_key_gives_its_verdict_and_goes_on(workspace: Workspace) -> None:
    first, second, third, *_ = queue(workspace)
    given, shown = typed(workspace, "rda")
    assert given == 3
    assert [state_of(workspace, id_) for id_ in (first, second)] == ["rejected", "deferred"]
    assert state_of(workspace, third) in ("applied", "approved")
    assert ("queued 6" in shown, "queued 5" in shown, "why: " in shown) == (True, True, True)


def test_u_takes_the_last_verdict_back(workspace: Workspace) -> None:
    first = queue(workspace)[0]
    typed(workspace, "ru")
    assert state_of(workspace, first) == "proposed"


def test_what_needs_an_answer_asks_for_it(workspace: Workspace) -> None:
    rule = correction_in(workspace, "context")
    steps = "j" * queue(workspace).index(rule)
    typed(workspace, steps + "a", answer="")
    before = state_of(workspace, rule)
    typed(workspace, steps + "a", answer="Always offer a voucher first.")
    assert (before, state_of(workspace, rule)) == ("proposed", "applied")


def test_a_digit_reroutes_and_an_unknown_key_shows_the_keys(workspace: Workspace) -> None:
    fact = correction_in(workspace, "memory")
    steps = "j" * queue(workspace).index(fact)
    _, shown = typed(workspace, steps + "x1")
    with workspace.store.read() as connection:
        found = correction(connection, workspace.project, fact)
    assert found.proposal is not None
    assert (found.proposal.target, "a approve" in shown) == ("context", True)


def test_w_shows_the_ways_to_yes(workspace: Workspace) -> None:
    given, shown = typed(workspace, "w")
    assert (given, "shortest way to a certificate: " in shown) == (0, True)
    assert "filmroom review show cor_" in shown or "filmroom why trc_" in shown


def test_an_empty_queue_says_so(workspace: Workspace) -> None:
    given, shown = typed(workspace, "r" * 6)
    assert (given, queue(workspace)) == (6, [])
    assert "rejected" in shown
