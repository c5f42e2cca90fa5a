"""What past verdicts and holds allow: a certificate, or the reason why there is none."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from filmroom.router_view import described
from flows.calibration import Calibration, calibrate, expected_calibration_error
from flows.route import _drawn
from flows.turn import turn
from flows.workspace import Workspace
from models.abstention import Certificate, NotCertified
from models.router import PRIOR, Decision, decide
from store.changes import put_change, put_hold
from store.corrections import put_correction, put_review, put_route
from store.failures import cluster_for
from store.ledger import events_of
from store.records import Change, Correction, Fingerprint, Hold, Proposal, Review, Route, Target, Verdict
from store.review_queue import _value
from store.router_log import ROUTER
from tests.shop_log import bad_argument, satisfied, take_in, working_in

BROKEN = {"schema_violation": 1.0, "normalisable": 1.0}


@pytest.fixture
def workspace(tmp_path: Path, store_url: str) -> Iterator[Workspace]:
    with working_in(tmp_path, url=store_url) as opened:
        yield opened


def judged(
    workspace: Workspace,
    number: int,
    verdict: Verdict = "approve",
    *,
    to: Target | None = None,
    reviewer: str = "staff:ann",
    hold: Literal["held", "failed"] | None = None,
) -> None:
    """A correction that was routed to tooling on clear evidence, and reviewed."""
    print_ = Fingerprint(version=1, component=f"tool_{number}", kind="tool", error_class="validation")
    with workspace.write() as connection:
        cluster_id = cluster_for(connection, workspace.project, print_, "c", 0)
        place = to or "tooling"
        found = Correction(
            cluster_id=cluster_id, created_us=number, state="applied", proposal=Proposal(target=place, summary="s")
        )
        put_correction(connection, found)
        put_route(connection, route(found, number))
        put_review(
            connection,
            Review(correction_id=found.id, verdict=verdict, target=to, reviewer=reviewer, authority=True, at_us=number),
        )
        if hold:
            change = Change(correction_id=found.id, target=place, before="a", after="b", release_id="rel_1",
                            applied_us=number, actor="staff:ann", probation=True)  # fmt: skip
            put_change(connection, change)
            put_hold(connection, Hold(change_id=change.id, cluster_id=cluster_id, state=hold, baseline=None, since_us=number,
                                      updated_us=number))  # fmt: skip


def route(found: Correction, number: int) -> Route:
    return Route(
        correction_id=found.id, cluster_id=found.cluster_id, decided_us=number, probabilities={"tooling": 1.0},
        target="tooling", runner_up=None, certified=False, reason="", to_yes="", evidence=BROKEN, failures=2, router="r",
    )  # fmt: skip


def calibration(workspace: Workspace) -> Calibration:
    with workspace.store.read() as connection:
        return calibrate(workspace, connection)


def test_without_verdicts_nothing_is_certified(workspace: Workspace) -> None:
    found = calibration(workspace)
    assert (found.router, found.decided, found.coverage()) == (PRIOR, (), 0.0)
    assert all(isinstance(each, NotCertified) for each in found.certificates.values())


def test_twenty_two_right_verdicts_certify_a_target(workspace: Workspace) -> None:
    for number in range(21):
        judged(workspace, number)
    assert isinstance(calibration(workspace).certificates["tooling"], NotCertified)
    judged(workspace, 21)
    found = calibration(workspace).certificates["tooling"]
    assert isinstance(found, Certificate)
    assert (found.clusters, found.wrong) == (22, 0)
    assert calibration(workspace).coverage() == 1.0


def test_a_reroute_a_rejection_and_a_fix_that_failed_are_wrong(workspace: Workspace) -> None:
    judged(workspace, 0, "reroute", to="context")
    judged(workspace, 1, "reject")
    judged(workspace, 2, hold="failed")
    judged(workspace, 3, hold="held")
    found = calibration(workspace)
    assert [(each.place, each.held) for each in found.decided] == [
        ("context", None), (None, None), ("tooling", False), ("tooling", True),
    ]  # fmt: skip
    assert found.counts["tooling"] == 4


def test_what_the_router_approved_itself_counts_only_once_its_hold_has_ended(workspace: Workspace) -> None:
    judged(workspace, 0, reviewer="router")
    judged(workspace, 1, reviewer="router", hold="held")
    assert [each.held for each in calibration(workspace).decided] == [True]


def test_a_deferral_is_no_verdict(workspace: Workspace) -> None:
    judged(workspace, 0, "defer")
    assert calibration(workspace).decided == ()


def certified(evidence: dict[str, float | None], failures: int = 4, threshold: float = 0.9) -> Any:
    from models.deployment import Deployment
    from store.records import Policy

    given = Certificate(threshold=threshold, clusters=30, wrong=0, bound=0.07, coverage=0.5, risk=0.1, confidence=0.9)
    return decide(
        evidence, deployment=Deployment(), policy=Policy(), failures=failures, certificates={"tooling": given}
    )


def test_a_certified_decision_says_what_is_guaranteed() -> None:
    found = certified(dict(BROKEN))
    assert found.certified
    assert (
        "with probability at least 90% over the calibration draw, at most 10% of auto-routed clusters" in found.reason
    )
    assert found.to_yes.startswith("nothing is needed: with probability")


def test_below_the_threshold_a_person_decides() -> None:
    found = certified(dict(BROKEN), threshold=0.99)
    assert not found.certified
    assert found.reason.endswith("A person decides: it is below 0.99, from where tooling is certified.")


def test_a_single_failure_and_a_contradiction_are_never_certified() -> None:
    assert not certified(dict(BROKEN), failures=1).certified
    assert not certified({**BROKEN, "batch_silence": 1.0, "contradiction": 0.5}).certified


def test_a_turn_applies_what_is_certified_and_says_so(workspace: Workspace) -> None:
    for number in range(30):
        judged(workspace, number)
    take_in(workspace, *(satisfied(n) for n in range(40)), *(bad_argument(n) for n in range(40, 45)))
    assert turn(workspace).routes["review"] == 0
    assert calibration(workspace).counts["tooling"] == 30


def test_router_describes_itself(workspace: Workspace) -> None:
    judged(workspace, 0)
    found = described(calibration(workspace))
    assert (found["router"], found["decided"], found["coverage"]) == ("rules-4", 1, 0.0)
    assert found["reason"] == "rules-4: 1 decided clusters, a learned router needs 100"
    assert found["targets"]["tooling"] == {
        "clusters": 1, "certified": False, "threshold": None,
        "statement": "not certified: 1 calibration clusters, 21 more are needed for the first test",
        "audit": "0 of 0 certified decisions in the blind audit were wrong (E = 1.0)",
    }  # fmt: skip
    assert found["learnt_last"][0]["target"] == "tooling"


def test_what_was_said_is_set_against_what_was_right() -> None:
    assert expected_calibration_error([(0.9, True)] * 9 + [(0.9, False)]) == 0.0
    assert expected_calibration_error([(0.9, False)] * 4) == 0.9
    assert expected_calibration_error([]) is None


def test_the_router_in_force_is_an_event_once(workspace: Workspace) -> None:
    take_in(workspace, bad_argument(1), bad_argument(2))
    turn(workspace)
    take_in(workspace, bad_argument(3), bad_argument(4), bad_argument(5))
    turn(workspace)
    with workspace.store.read() as connection:
        events = events_of(connection, workspace.project, ROUTER)
    assert [each["detail"]["router"] for each in events] == ["rules-4"]


def test_the_settings_bring_the_rules_back(workspace: Workspace) -> None:
    policy = workspace.settings.policy.model_copy(update={"router": "rules"})
    pinned = workspace.acting(settings=workspace.settings.model_copy(update={"policy": policy}))
    assert calibration(pinned).reason == "rules-4: `[policy] router` says rules"


def test_a_certified_decision_drawn_for_the_audit_looks_like_any_other(workspace: Workspace) -> None:
    decision = Decision(
        probabilities={"tooling": 1.0}, target="tooling", runner_up=None, certified=True, router="r", to_yes="nothing",
        reason="tooling at 0.99: why. It goes without a person, at or above 0.80: s",
    )  # fmt: skip
    corrections = [Correction(cluster_id=f"clu_{n}", created_us=0) for n in range(100)]
    found = [_drawn(workspace, each, decision) for each in corrections]
    shown = {each.reason for each, audited in found if audited}
    assert (shown, 2 < sum(audited for _, audited in found) < 25) == ({"tooling at 0.99: why. A person decides."}, True)
    assert not any(each.certified for each, audited in found if audited)


def test_the_queue_shows_first_what_is_most_worth_a_verdict() -> None:
    sure = route(Correction(cluster_id="clu_1", created_us=0), 1)
    unsure = sure.model_copy(update={"probabilities": {"context": 0.5, "memory": 0.5}})
    known = sure.model_copy(update={"probabilities": {"context": 1.0}})
    assert _value(unsure, 10) > _value(unsure, 9) > _value(known, 10) == 1.0
