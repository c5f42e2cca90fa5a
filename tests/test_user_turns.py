"""Signals in a user's later turns: asking again, objecting, leaving after an error."""

import pytest

from models.detector import detect, is_failure
from store.records import Episode, Feedback, Span, Trace

KEY = {"source": "s", "trace_external_id": "1"}


def conversation(*turns: str, output: str | None = "fine", error: str | None = None, passed: bool = False) -> Episode:
    spans = [Span(**KEY, external_id=str(at), position=at, kind="user", input=text) for at, text in enumerate(turns)]
    if error:
        spans.append(Span(**KEY, external_id="t", position=99, kind="tool", name="pay", input={"a": 1}, error=error))
    said = (Feedback(**KEY, external_id="f", name="reward", score=1.0),) if passed else ()
    return Episode(trace=Trace(source="s", external_id="1", output=output), spans=tuple(spans), feedback=said)


def names(episode: Episode) -> set[str]:
    return {signal.detector for signal in detect(episode, meanings={})}


@pytest.mark.parametrize(
    "turn",
    ["No, I meant the blue one", "that's not what I asked", "You didn't understand me", "Nein, ich meinte morgen"],
)
def test_an_objection_in_a_later_turn_is_a_failure(turn: str) -> None:
    episode = conversation("I want a lamp", turn)
    assert "objection" in names(episode)
    assert is_failure(detect(episode, meanings={}))


@pytest.mark.parametrize("turn", ["no", "No thanks, that is all", "yes, I meant that one", "thank you", "谢谢"])
def test_what_is_no_objection_is_left_alone(turn: str) -> None:
    assert "objection" not in names(conversation("I want a lamp", turn))


def test_the_first_turn_objects_to_nothing() -> None:
    assert "objection" not in names(conversation("No, I meant it: send me a lamp"))


def test_asking_again_in_other_words_is_a_hint_and_twice_a_failure() -> None:
    once = conversation("where is my order 104 please", "where is order 104")
    twice = conversation("where is my order 104 please", "where is order 104", "so where is order 104 now")
    assert ["user_retry" in names(each) for each in (once, twice)] == [True, True]
    assert [is_failure(detect(each, meanings={})) for each in (once, twice)] == [False, True]


def test_a_passed_evaluation_outranks_a_retry_and_an_objection() -> None:
    episode = conversation("where is my order", "No, I meant order 104", passed=True)
    assert not is_failure(detect(episode, meanings={}))


def test_leaving_after_an_error_is_a_signal_of_its_own() -> None:
    assert "abandoned" in names(conversation("pay it", output=None, error="HTTP 503"))
    assert "abandoned" not in names(conversation("pay it", output="paid", error="HTTP 503"))
