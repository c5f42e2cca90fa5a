"""What real logs do wrong, worst first, and the test that holds each: here, or where the format it is known from is tested."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from store.records import Span, Trace
from store.sources import Item, SourceOptions, read
from store.sources.otlp import decode_request
from tests.otlp_requests import attributes, span

HERE = Path(__file__).parent
START = "2026-03-01T10:00:00Z"

QUIRKS: dict[str, tuple[str, ...]] = {
    "NaN and Infinity as bare tokens inside JSON strings": (
        "test_otlp.test_nan_inside_the_json_of_an_attribute_becomes_null_and_is_marked",
        "test_mlflow.test_numbers_that_are_none_become_null_and_leave_a_mark",
        "test_sanitise.test_nan_and_infinity_become_none_in_keys_and_values",
    ),
    "NaN as a text where a number belongs": (
        "test_otlp.test_a_number_that_is_none_becomes_null_and_does_not_lose_the_span",
    ),
    "U+0000 and lone surrogates": (
        "test_sanitise.test_lone_surrogates_become_replacement_characters_and_pairs_stay",
        "test_sanitise.test_a_raw_nul_inside_a_string_is_replaced",
        "test_tabular.test_nul_and_byte_order_mark_are_mended",
    ),
    "ids in hexadecimal or base64, names in snake or camel case, Go's values, the scope's old name": (
        "test_otlp.test_every_spelling_of_an_id_is_the_same_id",
        "test_otlp.test_hexadecimal_text_that_was_read_as_base64_is_mended",
        "test_otlp.test_every_spelling_of_a_value_is_read",
        "test_quirks.test_every_spelling_of_a_scope_is_read",
    ),
    "JSON in an attribute that was cut off": (
        "test_otlp.test_json_that_was_cut_off_is_kept_as_text_and_marked",
        "test_langfuse.test_a_value_that_was_cut_off_is_kept_as_text_and_marked",
        "test_mlflow.test_a_trace_without_spans_has_the_copy_and_says_that_it_was_cut",
    ),
    "a limit that dropped the oldest attributes": (
        "test_otlp.test_dropped_attributes_are_counted_on_the_trace",
    ),
    "indices that are sparse, count from one, are sorted as text, or share their prefix with a value": (
        "test_openinference.test_numbered_messages_are_rebuilt_in_the_order_of_their_numbers",
        "test_quirks.test_indices_with_gaps_from_one_in_the_order_of_texts_are_a_list",
        "test_quirks.test_a_name_that_is_a_value_and_a_branch_is_the_branch",
    ),
    "JSON in JSON, twice or three times": (
        "test_quirks.test_json_is_unwrapped_three_times_and_a_plain_text_stays",
        "test_otlp.test_user_and_session_lose_the_quotes_around_them",
    ),
    "a field of a different type in each record": ("test_quirks.test_a_field_may_have_any_type",),
    "no root, a missing middle, the root last": (
        "test_otlp.test_the_root_is_the_earliest_span_whose_parent_is_not_there",
        "test_otlp.test_spans_that_arrive_in_any_order_end_in_the_same_trace",
        "test_langfuse.test_a_trace_without_its_root_is_still_a_trace",
    ),
    "input and output on the root alone, on the trace alone, or on neither": (
        "test_openinference.test_a_trace_without_input_of_its_own_has_the_question_and_the_answer_of_its_models",
        "test_mlflow.test_a_trace_has_the_input_of_its_root_and_not_the_copy_that_was_cut",
    ),
    "records in no order": (
        "test_langfuse.test_observations_are_put_in_order_below_their_root",
        "test_openai_anthropic.test_answers_of_a_batch_are_joined_to_their_requests_in_any_order",
    ),
    "records that come again": (
        "test_otlp.test_a_request_sent_again_changes_nothing",
        "test_otlp.test_of_two_versions_of_a_span_the_one_that_ended_later_stays",
        "test_phoenix.test_an_annotation_sent_again_is_a_duplicate_and_a_later_one_revises_it",
        "test_mlflow.test_an_assessment_that_was_superseded_is_left_out",
    ),
    "cached tokens inside or beside the input": (
        "test_openinference.test_cached_tokens_count_once_whether_the_input_has_them_or_not",
        "test_openai_anthropic.test_tokens_that_anthropic_read_from_its_cache_are_input",
        "test_mlflow.test_cached_tokens_that_are_beside_the_input_are_added_to_it",
    ),
    "no trace id, or one that is not the root's": (
        "test_quirks.test_an_observation_without_a_trace_id_is_a_trace_by_itself",
        "test_quirks.test_a_run_whose_trace_id_names_no_run_belongs_to_the_root_of_its_order",
        "test_langsmith.test_a_parent_that_is_missing_is_found_in_the_dotted_order",
    ),
    "no end": (
        "test_phoenix.test_an_end_in_1970_is_no_end",
        "test_mlflow.test_a_trace_that_is_still_running_has_no_end_and_no_status",
        "test_otlp.test_a_span_that_has_not_ended_has_no_end",
    ),
    "CSV with fused rows, or cells beyond Python's limit": (
        "test_langfuse.test_a_row_of_csv_that_was_fused_is_rejected_with_its_line",
        "test_tabular.test_a_cell_beyond_the_usual_limit_of_csv_is_read",
    ),
    "a server that says 200 and drops": (
        "test_serve.test_what_cannot_be_read_is_counted_with_its_reason_and_kept",
        "test_serve.test_a_partial_success_is_in_the_encoding_of_the_request",
        "test_quirks.test_bytes_in_an_attribute_do_not_lose_the_span",
    ),
    "pictures and other blobs": (
        "test_otlp.test_a_picture_is_kept_as_its_digest_and_size",
        "test_langfuse.test_pictures_are_kept_as_their_digest",
        "test_openai_anthropic.test_long_signatures_and_redacted_thinking_are_kept_as_digests",
    ),
    "a tool call that repeats the user's words as its text": (
        "test_openinference.test_older_openllmetry_is_read_and_its_echo_of_the_user_is_dropped",
    ),
}  # fmt: skip
"""Each quirk, and the tests that hold it: file and function."""


@pytest.mark.parametrize("quirk", QUIRKS)
def test_a_quirk_has_the_tests_that_are_named(quirk: str) -> None:
    for named in QUIRKS[quirk]:
        file, _, function = named.partition(".")
        source = (HERE / f"{file}.py").read_text(encoding="utf-8")
        assert re.search(rf"^def {function}\(", source, re.MULTILINE), named


def otlp(value: object) -> list[Item]:
    return decode_request(json.dumps(value).encode(), content_type="application/json", options=SourceOptions())


def one_span(flat: dict[str, Any]) -> Span:
    (found,) = (item for item in otlp({"resourceSpans": [{"scopeSpans": [{"spans": [span(1, flat)]}]}]})
                if isinstance(item, Span))  # fmt: skip
    return found


def load(folder: Path, *rows: object, format: str) -> list[Item]:
    file = folder / "log.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return list(read(file, format=format))


def observation(number: int, **fields: Any) -> dict[str, Any]:
    said = {"id": f"o{number}", "trace_id": f"t{number}", "project_id": "p", "type": "SPAN", "name": "step"}
    return said | {"parent_observation_id": None, "start_time": START, "level": "DEFAULT", **fields}


@pytest.mark.parametrize("scope", ["scopeSpans", "scope_spans", "instrumentationLibrarySpans"])
def test_every_spelling_of_a_scope_is_read(scope: str) -> None:
    items = otlp({"resourceSpans": [{scope: [{"spans": [span(1)]}]}]})
    assert [item.external_id for item in items if isinstance(item, Span)] == [f"{1:016x}"]


def test_indices_with_gaps_from_one_in_the_order_of_texts_are_a_list() -> None:
    said = {1: "a", 10: "c", 2: "b"}
    flat = {f"llm.input_messages.{n}.message.content": text for n, text in said.items()}
    flat |= {f"llm.input_messages.{n}.message.role": "user" for n in said}
    found = one_span({"openinference.span.kind": "LLM", **flat}).input
    assert found == [{"role": "user", "content": text} for text in "abc"]


@pytest.mark.parametrize("first", [True, False])
def test_a_name_that_is_a_value_and_a_branch_is_the_branch(first: bool) -> None:
    value = {"llm.input_messages": "[cut]"}
    branch = {"llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "hi"}
    both = value | branch if first else branch | value
    assert one_span({"openinference.span.kind": "LLM", **both}).input == [{"role": "user", "content": "hi"}]


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_json_is_unwrapped_three_times_and_a_plain_text_stays(tmp_path: Path, layers: int) -> None:
    text: Any = {"question": "where"}
    for _ in range(layers):
        text = json.dumps(text)
    items = load(tmp_path, observation(1, input=text, output="where"), format="langfuse")
    assert [(item.input, item.output) for item in items if isinstance(item, Span)] == [({"question": "where"}, "where")]


def test_a_field_may_have_any_type(tmp_path: Path) -> None:
    given = ['{"a": 1}', '["a"]', "plain", {"a": 1}, ["a"], None, 7]
    items = load(tmp_path, *(observation(n, input=value) for n, value in enumerate(given, 1)), format="langfuse")
    found = {item.external_id: item.input for item in items if isinstance(item, Span)}
    assert list(found.values()) == [{"a": 1}, ["a"], "plain", {"a": 1}, ["a"], None, 7]


def test_an_observation_without_a_trace_id_is_a_trace_by_itself(tmp_path: Path) -> None:
    sent = [{"id": f"e{n}", "type": "span-create", "timestamp": START,
             "body": {"id": f"o{n}", "traceId": None, "name": "step", "startTime": START}} for n in (1, 2)]  # fmt: skip
    items = load(tmp_path, {"batch": sent}, format="langfuse")
    assert [item.external_id for item in items if isinstance(item, Trace)] == ["o1", "o2"]


def test_a_run_whose_trace_id_names_no_run_belongs_to_the_root_of_its_order(tmp_path: Path) -> None:
    run = "0198c2b0-0000-7000-8000-000000000001"
    row = {"id": run, "trace_id": "a header's value", "dotted_order": f"20260818T100000000000Z{run}",
           "parent_run_id": None, "name": "litellm", "run_type": "llm", "start_time": START}  # fmt: skip
    items = load(tmp_path, row, format="langsmith")
    assert [item.external_id for item in items if isinstance(item, Trace)] == [run]


def test_bytes_in_an_attribute_do_not_lose_the_span() -> None:
    sent = span(1) | {"attributes": [{"key": "raw", "value": {"bytesValue": "AAE="}}, *attributes({"n": 5})]}
    (found,) = (
        item for item in otlp({"resourceSpans": [{"scopeSpans": [{"spans": [sent]}]}]}) if isinstance(item, Span)
    )
    assert found.attributes["n"] == 5
    assert "raw" in found.attributes
