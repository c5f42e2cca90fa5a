"""The write gate of the memory: what is refused, what is held for a person, and what replaces what."""

from typing import Any

import pytest

from models.write_gate import GateVerdict, contradict, is_about_everybody, judge_write, stale_ids
from store.records import Fact


def fact(id_: str = "fact_new", **given: Any) -> Fact:
    base = {"scope_id": "ann", "subject": "ann", "predicate": "shop", "value": "Elm Street", "source": "ann"}
    return Fact(id=id_, **{**base, **given})


def verdict(new: Fact, *known: Fact, **given: Any) -> tuple[str, str | None, str | None]:
    found = judge_write(new, known, **given)
    return found.verdict, found.check, found.supersedes


def test_a_first_fact_is_written() -> None:
    assert judge_write(fact(), ()) == GateVerdict(verdict="write")


def test_what_is_known_already_is_refused_whatever_its_case() -> None:
    assert verdict(fact(value="elm street."), fact("fact_old")) == ("refuse", "duplicate", None)


def test_the_newest_of_the_same_authority_supersedes_by_name() -> None:
    assert verdict(fact(value="Oak Street"), fact("fact_old")) == ("write", None, "fact_old")


def test_an_older_word_of_the_same_authority_does_not_win() -> None:
    old = fact("fact_old", valid_from_us=20)
    assert verdict(fact(value="Oak Street", valid_from_us=10), old) == ("refuse", "contradiction", None)


@pytest.mark.parametrize("staff_first", [True, False])
def test_staff_and_a_user_who_differ_are_held_for_a_person(staff_first: bool) -> None:
    staff: dict[str, Any] = {"source": "staff:bob", "authority": True}
    old, new = (
        (fact("fact_old", **staff), fact(value="Oak"))
        if staff_first
        else (fact("fact_old"), fact(value="Oak", **staff))
    )
    assert verdict(new, old) == ("hold", "authority", None)


def test_a_reviewer_who_writes_the_fact_settles_it() -> None:
    new = fact(value="Oak", source="staff:ann", authority=True)
    assert verdict(new, fact("fact_old"), decided_by="staff:ann") == ("write", None, "fact_old")


def test_what_staff_said_of_everybody_is_not_overruled_by_one_user() -> None:
    wide = fact("fact_all", scope="global", scope_id="*", subject="*", source="staff:bob", authority=True)
    assert verdict(fact(value="Oak"), wide) == ("hold", "authority", None)


def test_two_values_in_one_change_contradict_each_other() -> None:
    assert verdict(fact(value="Oak"), beside=[fact("fact_first")]) == ("refuse", "contradiction", None)


SECRETS = ["my password is hunter2", "api_key=abcdef123456", "4111 1111 1111 1111", "sk-proj-abcdefghij0123456789",
           "ghp_abcdefghijklmnopqrstuvwxyz012345", "-----BEGIN RSA PRIVATE KEY-----", "https://bob:pw@host/x",
           "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"]  # fmt: skip


@pytest.mark.parametrize("value", SECRETS)
def test_a_secret_is_refused(value: str) -> None:
    assert verdict(fact(value=value)) == ("refuse", "secret", None)


def test_a_field_that_would_hold_a_secret_is_refused_and_its_value_not_repeated() -> None:
    found = judge_write(fact(predicate="wifi_password", value="xyzzy"), ())
    assert (found.verdict, found.check) == ("refuse", "secret")
    assert "xyzzy" not in found.reason


@pytest.mark.parametrize(
    "value", ["order #W4111111", "+49 170 1234567", "2026-01-05", "Elm Street 12", "I pin my hopes on it"]
)
def test_what_is_no_secret_is_written(value: str) -> None:
    assert verdict(fact(value=value)) == ("write", None, None)


@pytest.mark.parametrize(
    "given",
    [{"source": "bob"}, {"value": "My wife said that she likes tea"}, {"value": "I heard that the shop is closed"},
     {"scope": "global", "scope_id": "*"}],
)  # fmt: skip
def test_hearsay_is_refused(given: dict[str, Any]) -> None:
    assert verdict(fact(**given)) == ("refuse", "hearsay", None)


def test_words_about_everybody_are_no_fact_about_one_user() -> None:
    found = judge_write(fact(predicate="said", value="All customers get free returns"), ())
    assert (found.verdict, found.check) == ("refuse", "scope")
    assert "reroute it to context" in found.reason


def test_what_a_user_says_stands_beside_what_they_said_unless_it_denies_it() -> None:
    old = fact("fact_old", predicate="said", value="I eat meat.")
    assert verdict(fact(predicate="said", value="I live in Rome."), old) == ("write", None, None)
    assert verdict(fact(predicate="said", value="I do not eat meat"), old) == ("write", None, "fact_old")


def test_answers_to_different_questions_stand_beside_each_other() -> None:
    old = fact("fact_old", predicate="answer", value={"asked": "Which shop?", "answer": "Elm"})
    assert verdict(fact(predicate="answer", value={"asked": "Which size?", "answer": "42"}), old)[2] is None
    assert verdict(fact(predicate="answer", value={"asked": "which shop", "answer": "Oak"}), old)[2] == "fact_old"


def test_facts_that_rest_on_one_no_longer_in_force_are_stale() -> None:
    facts = [fact("fact_c", depends_on=("fact_b",)), fact("fact_b", depends_on=("fact_a",)), fact("fact_d")]
    assert stale_ids(facts) == {"fact_b", "fact_c"}
    assert stale_ids([*facts, fact("fact_a")]) == set()


@pytest.mark.parametrize(
    "text",
    ["Every user must log in", "alle Kunden zahlen bar", "everybody wants this", "customers should get a receipt"],
)
def test_words_about_everybody_are_recognised(text: str) -> None:
    assert is_about_everybody(text)


@pytest.mark.parametrize("text", ["I want all of it", "my customer number is 12", "this customer prefers tea"])
def test_words_about_one_are_not(text: str) -> None:
    assert not is_about_everybody(text)


def test_a_negation_alone_contradicts() -> None:
    assert contradict("Send me mails", "Never send me mails")
    assert not contradict("I like tea", "I like tea very much")
