"""The blind audit: a bet against the certificate, and what an alarm does."""

from models.abstention import Certificate, NotCertified
from models.audit_monitor import AUDITED, audit, is_audited, tightened

GIVEN = Certificate(threshold=0.8, clusters=40, wrong=1, bound=0.09, coverage=0.5, risk=0.1, confidence=0.9)


def test_about_a_tenth_is_drawn_and_always_the_same() -> None:
    drawn = [f"cor_{n}" for n in range(4000) if is_audited(f"cor_{n}", seed=0)]
    assert abs(len(drawn) / 4000 - AUDITED) < 0.02
    assert all(is_audited(each, seed=0) for each in drawn)


def test_right_decisions_never_alarm() -> None:
    assert not audit([True] * 500, risk=0.1).alarms


def test_many_wrong_decisions_alarm_and_only_surer_ones_go_alone() -> None:
    found = audit([True] * 5 + [False] * 5, risk=0.1)
    after = tightened(GIVEN, found, [0.85, 0.9])
    assert found.alarms
    assert isinstance(after, Certificate)
    assert 0.9 < after.threshold < 0.91


def test_a_wrong_decision_that_was_as_sure_as_can_be_ends_the_certificate() -> None:
    found = audit([False] * 5, risk=0.1)
    assert isinstance(tightened(GIVEN, found, [1.0]), NotCertified)


def test_without_an_alarm_the_certificate_stands() -> None:
    assert tightened(GIVEN, audit([True, False], risk=0.1), [0.95]) == GIVEN
