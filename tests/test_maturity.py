"""How late labels come, with those that have not come yet."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flows.opinions import give_opinion
from flows.turn import turn
from flows.verify import verify
from models.maturity import arrived_share, matures_after, share_in
from store.changes import holds_of
from store.corrections import waiting
from tests.shop_log import DAY_S, START_S, bad_argument, said, satisfied, take_in, trace, working_in


def test_without_waiting_traces_it_is_the_plain_share() -> None:
    delays = [1.0, 2.0, 2.0, 5.0]
    assert [round(share, 9) for _, share in arrived_share(delays, [])] == [0.25, 0.75, 1.0]


def test_labels_that_may_still_come_make_a_window_mature_later() -> None:
    delays = [float(n) for n in range(1, 11)]
    assert matures_after(delays, []) == 9.0
    assert matures_after(delays, [0.5] * 5) == 9.0
    assert matures_after(delays, [6.0] * 10) == 10.0


def test_the_estimate_finds_the_quantile_behind_the_censoring() -> None:
    rng = np.random.default_rng(0)
    delay, age = rng.exponential(1.0, 3000), rng.uniform(0, 5, 3000)
    found = matures_after(list(delay[delay <= age]), list(age[delay > age]))
    assert found is not None
    assert abs(found - 2.303) < 0.3


def test_without_labels_nothing_is_said() -> None:
    assert matures_after([], [1.0, 2.0]) is None


def test_what_is_younger_than_late_labels_is_not_in_yet() -> None:
    delays = [0.0] * 10 + [5.0] * 10
    assert [share_in([age] * 3, delays, []) for age in (1.0, 5.0, 9.0)] == [0.5, 1.0, 1.0]
    assert share_in([], delays, []) is None


def order(number: int, *, day: int, late: bool) -> list[dict[str, Any]]:
    """A tool call that succeeded, its thumb given within a minute or after five days."""
    call = {"id": "c", "kind": "tool", "name": "update_order", "input": {"order_id": f"#{number}"}, "output": "changed"}
    thumb = said(number, day=day, name="thumb", score=1)
    given = thumb["given"] + (5 * DAY_S if late else 0)
    return [trace(number, day=day, input="change my order", output="done", spans=[call]), {**thumb, "given": given}]


@pytest.mark.parametrize(("days_later", "state"), [(1, "holding"), (9, "held")])
def test_a_hold_is_not_held_before_the_late_labels_could_have_come(tmp_path: Path, days_later: int, state: str) -> None:
    now_us = [(START_S + 8 * DAY_S) * 1_000_000]
    with working_in(tmp_path) as opened:
        workspace = opened.acting(clock=lambda: now_us[0])
        take_in(workspace, *(bad_argument(n) for n in range(12)), *(satisfied(n) for n in range(20, 24)),
                *(order(n, day=0, late=n % 2 == 0) for n in range(40, 60)))  # fmt: skip
        turn(workspace)
        with workspace.store.read() as connection:
            [(correction, _, _)] = waiting(connection, workspace.project)
        give_opinion(workspace, correction.id, "approve")
        take_in(workspace, *(order(n, day=9, late=False) for n in range(100, 150)))
        now_us[0] = (START_S + (9 + days_later) * DAY_S) * 1_000_000
        verify(workspace)
        with workspace.store.read() as connection:
            assert [len(holds_of(connection, workspace.project, each)) for each in ("holding", "held")] == (
                [1, 0] if state == "holding" else [0, 1]
            )
