"""Signals add up by hand-set weights, and by weights fitted to audits once these predict better."""

import random
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from flows.audit import judge_trace, report
from flows.detector import DETECTOR
from flows.pickup import pickup
from flows.workspace import Workspace
from models.combination import HAND, LEARNS_FROM, choose_combination, probability, strongest
from models.detector import BEHAVIOURAL
from store.audit_stream import signals_without_audit
from store.failures import count_failures
from store.ledger import events_of
from store.records import Signal
from tests.shop_log import take_in, trace, working_in

END_US = 1_768_000_000_000_000


def escalations(traces: int, *, bad_share: float) -> tuple[list[dict[str, float]], list[bool]]:
    """Half of the traces were escalated; of those so many were bad, of the others none."""
    draw = random.Random(0)
    rows = [{"escalation+": 1.0} if n % 2 else {} for n in range(traces)]
    return rows, [bool(row) and draw.random() < bad_share for row in rows]


def test_few_audits_leave_the_hand_set_weights() -> None:
    rows, bad = escalations(LEARNS_FROM - 1, bad_share=1.0)
    found = choose_combination(rows, bad)
    assert (found.combination, "fitted weights need 60" in found.reason) == (HAND, True)


def test_a_signal_that_audits_confirm_gains_weight_and_one_nobody_saw_keeps_its_own() -> None:
    found = choose_combination(*escalations(200, bad_share=0.95)).combination
    assert found.version.startswith("fitted-")
    assert probability({"escalation+": 1.0}, found) > 0.5 > probability({"escalation+": 1.0})
    assert found.factors.get("feedback+", 1.0) == 1.0


def test_weights_that_predict_no_better_are_not_taken() -> None:
    draw = random.Random(1)
    rows = [{"refusal+": 1.0} if n % 2 else {} for n in range(80)]
    bad = [draw.random() < probability(row) for row in rows]
    found = choose_combination(rows, bad)
    assert found.combination == HAND


def test_the_same_audits_give_the_same_version() -> None:
    assert choose_combination(*escalations(100, bad_share=0.9)) == choose_combination(*escalations(100, bad_share=0.9))


def test_what_repeats_itself_counts_once_and_a_passed_evaluation_silences_behaviour() -> None:
    errors = [
        Signal(trace_id="trc_1", detector="tool_error", detector_version=1, weight=each, at_us=None)
        for each in (0.4, 2.5)
    ]
    passed = errors[0].model_copy(update={"detector": "evaluation", "weight": -4.0})
    assert strongest(errors, behavioural=BEHAVIOURAL) == {"tool_error+": 2.5}
    assert strongest([*errors, passed], behavioural=BEHAVIOURAL) == {"evaluation-": -4.0}


@pytest.fixture
def workspace(tmp_path: Path, store_url: str) -> Iterator[Workspace]:
    """Escalated traces, which by hand are no failures, and others."""
    with working_in(tmp_path, url=store_url) as opened:
        ticks = count(END_US)
        yield opened.acting(clock=lambda: next(ticks))


def test_audits_teach_pickup_and_the_version_is_an_event(workspace: Workspace) -> None:
    step = {"id": "h", "kind": "tool", "name": "transfer_to_human_agents", "input": {}, "output": "ok"}

    def lines(start: int) -> list[dict[str, object]]:
        return [trace(n, user=f"v{n}", day=-7 * (n % 3), input=f"question {n}", output="done", spans=[step] if n % 2 else [])
                for n in range(start, start + 80)]  # fmt: skip

    take_in(workspace, lines(0))
    pickup(workspace)
    with workspace.store.read() as connection:
        assert count_failures(connection, workspace.project) == 0
    waiting = report(workspace).waiting
    with workspace.store.read() as connection:
        escalated = signals_without_audit(connection, waiting)
    for trace_id in waiting:
        judge_trace(workspace, trace_id, good=trace_id not in escalated)
    assert report(workspace).detector == "hand-1"
    take_in(workspace, lines(200))
    seen = pickup(workspace)
    found = report(workspace)
    assert found.detector.startswith("fitted-")
    assert seen.failures >= 40
    with workspace.store.read() as connection:
        [event] = events_of(connection, workspace.project, DETECTOR)
    assert event["detail"]["combination"]["version"] == found.detector
