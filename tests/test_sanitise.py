"""Values at the door: what is mended, what is refused, and times."""

import math
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from store.sources.contract import BadRecord
from store.sources.sanitise import MAX_DEPTH, clean, clean_text, parse_json
from store.sources.times import Moment, parse_time

NOON = Moment(1_740_830_400_000_000, 0)
"""2025-03-01T12:00:00Z."""


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


def test_nan_and_infinity_become_none_in_keys_and_values() -> None:
    assert parse_json(b'{"a": [NaN, Infinity, -Infinity, 1e999, 1.5], "b\\u0000": "c\\u0000"}') == {
        "a": [None, None, None, None, 1.5],
        "b�": "c�",
    }


def test_lone_surrogates_become_replacement_characters_and_pairs_stay() -> None:
    assert parse_json(b'{"\\ud83d": "\\ud83d\\ude00 \\ude00"}') == {"�": "\U0001f600 �"}


def test_surrogates_written_as_three_bytes_are_joined() -> None:
    assert parse_json(b'"\xed\xa0\xbd\xed\xb8\x80 \xed\xa0\xbd"') == "\U0001f600 �"


def test_a_raw_nul_inside_a_string_is_replaced() -> None:
    assert parse_json(b'{"a": "x\0y"}') == {"a": "x�y"}


def test_large_integers_are_kept() -> None:
    assert parse_json(b'{"id": 12345678901234567890}') == {"id": 12345678901234567890}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (nested(10_000), "nested deeper than 100 levels"),
        (b'{"a": ' * 10_000 + b"1" + b"}" * 10_000, "nested deeper than 100 levels"),
        (b'{"a": 1', "not JSON: Expecting ',' delimiter (character 8 of 7)"),
        (b"1" * 5_000, "not JSON: Exceeds the limit"),
        (b'{"a": "caf\xe9"}', "not UTF-8: byte 0xe9 at position 11"),
    ],
    ids=["deep list", "deep object", "cut off", "endless number", "Latin-1"],
)
def test_what_is_no_json_value_is_refused_with_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(BadRecord) as error:
        parse_json(data)
    assert str(error.value).startswith(reason)


def test_brackets_inside_strings_are_no_depth() -> None:
    assert parse_json(b'["' + b"[" * 500 + b'"]') == ["[" * 500]


def test_nesting_up_to_the_limit_is_read() -> None:
    assert parse_json(nested(MAX_DEPTH)) is not None


def test_clean_refuses_a_value_nested_too_deep() -> None:
    deep: JsonValue = []
    for _ in range(10_000):
        deep = [deep]
    with pytest.raises(BadRecord, match="nested deeper"):
        clean(deep)


def test_clean_makes_json_of_other_values() -> None:
    assert clean({1: (math.nan, b"x"), "a": {2}}) == {"1": [None, "b'x'"], "a": "{2}"}


@given(st.text(st.characters(codec=None, exclude_categories=())))
def test_clean_text_can_always_be_stored(text: str) -> None:
    cleaned = clean_text(text)
    assert cleaned.encode().decode() == cleaned
    assert "\0" not in cleaned


@pytest.mark.parametrize(
    "value",
    [
        "2025-03-01T12:00:00Z",
        "2025-03-01T13:00:00+01:00",
        "2025-03-01 12:00:00 UTC",
        "20250301T120000Z",
        1740830400,
        1740830400.0,
        "1740830400",
        1740830400000,
        "1740830400000",
        1740830400000000,
        "1740830400000000000",
    ],
)
def test_the_same_moment_is_read_in_every_spelling(value: JsonValue) -> None:
    assert parse_time(value) == NOON


def test_nanoseconds_are_kept() -> None:
    assert parse_time("2025-03-01T12:00:00.123456789Z") == Moment(NOON.us + 123_456, 789)
    assert parse_time(1740830400123456789) == Moment(NOON.us + 123_456, 789)
    assert parse_time("1740830400.1234567") == Moment(NOON.us + 123_456, 700)


def test_digits_that_look_like_a_date_and_an_hour_are_an_epoch() -> None:
    assert parse_time("1712121212123") == Moment(1_712_121_212_123_000, 0)


def test_a_time_without_an_offset_needs_a_zone() -> None:
    assert parse_time("2025-03-01T13:00:00", ZoneInfo("Europe/Berlin")) == NOON
    with pytest.raises(BadRecord, match=r"time without an offset: '2025-03-01T13:00:00'; set `timezone`"):
        parse_time("2025-03-01T13:00:00")


@pytest.mark.parametrize("value", [None, "", " ", 0, "0", 0.0])
def test_what_says_nothing_is_no_time(value: JsonValue) -> None:
    assert parse_time(value) is None


@pytest.mark.parametrize("value", ["yesterday", 5, -1, True, [], {}, 10**30, "2025-13-01T00:00:00Z", "9" * 400])
def test_what_is_no_time_is_refused(value: JsonValue) -> None:
    with pytest.raises(BadRecord, match="not a time"):
        parse_time(value)
