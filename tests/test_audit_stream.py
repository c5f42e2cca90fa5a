"""The audit stream: a uniform draw, and what its verdicts say of failure rate, recall and precision."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from filmroom.main import main
from flows.audit import A_WEEK, judge_trace, report
from flows.turn import turn
from flows.workspace import Workspace
from store.errors import NotFound
from store.failures import newest_failing
from tests.shop_log import bad_argument, satisfied, take_in, working_in

DAY_US = 86_400_000_000
END_US = 1_768_000_000_000_000
"""January 2026, some days after the log's traces."""


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with working_in(tmp_path) as opened:
        ticks = count(END_US)
        yield opened.acting(clock=lambda: next(ticks))


def log(traces: int) -> list[list[dict[str, Any]]]:
    return [bad_argument(n) if n % 4 == 0 else satisfied(n) for n in range(traces)]


def test_a_week_is_drawn_uniformly_and_always_alike(workspace: Workspace) -> None:
    take_in(workspace, *log(80))
    assert report(workspace).waiting == report(workspace).waiting
    assert len(report(workspace).waiting) == A_WEEK


def test_without_audits_nothing_is_measured(workspace: Workspace) -> None:
    take_in(workspace, *log(8))
    found = report(workspace)
    assert (found.failure_rate.text, found.recall.text) == ("not measured", "not measured")
    assert found.to_yes == "judge these 8 traces (about 5 minutes)"


def test_recall_counts_what_was_picked_up_before_the_audit(workspace: Workspace) -> None:
    take_in(workspace, *log(8))
    turn(workspace)
    with workspace.store.read() as connection:
        failing = set(newest_failing(connection, workspace.project, 10))
    for trace_id in report(workspace).waiting:
        judge_trace(workspace, trace_id, good=False)
    turn(workspace)
    found = report(workspace)
    assert (found.recall.hits, found.recall.of, found.precision.hits) == (len(failing), 8, len(failing))
    assert found.waiting == ()


def test_an_unknown_trace_is_refused(workspace: Workspace) -> None:
    with pytest.raises(NotFound, match="filmroom audit"):
        judge_trace(workspace, "trc_0", good=True)


def test_the_command_takes_a_verdict_and_shows_what_it_means(
    tmp_path: Path, workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    take_in(workspace, *log(4))
    settings = ["--settings", str(tmp_path / "filmroom.toml")]
    assert main([*settings, "audit"]) == 0
    assert "recall       not measured" in capsys.readouterr().out
    assert main([*settings, "audit", "trc_0"]) == 2
    assert main([*settings, "audit", "trc_0", "--good"]) == 1
