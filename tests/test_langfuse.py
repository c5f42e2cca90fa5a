"""Langfuse by every route: rows of exports, pages of the API, downloads, scores; its quirks, and large files."""

import json
import subprocess
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from store.errors import InputError
from store.records import Feedback, Rejected, Span, Trace
from store.sources import Item, SourceOptions, grouping, read, recognise
from store.sources.langfuse import items_of_page

OPTIONS = SourceOptions()
START = "2026-03-01 10:00:00.000000"
START_US = 1772359200000000


def observation(number: int, **fields: Any) -> dict[str, Any]:
    """A row of the enriched observations, which carry what their trace says."""
    return {
        "id": f"o{number}",
        "trace_id": "t1",
        "project_id": "p",
        "type": "SPAN",
        "parent_observation_id": "o1" if number > 1 else None,
        "start_time": f"2026-03-01 10:00:{number - 1:02d}.000000",
        "end_time": None,
        "name": f"step {number}",
        "level": "DEFAULT",
        "input": None,
        "output": None,
        "metadata": {},
        "user_id": "u7",
        "session_id": "s3",
        "trace_name": "support",
        **fields,
    }


def legacy(number: int, **fields: Any) -> dict[str, Any]:
    row = observation(number, **fields)
    return {key: value for key, value in row.items() if key not in ("user_id", "session_id", "trace_name")}


def load(folder: Path, *rows: object, name: str = "log.jsonl") -> list[Item]:
    file = folder / name
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert recognise(file).name == "langfuse"
    return list(read(file))


def trace_of(items: list[Item]) -> Trace:
    (found,) = [item for item in items if isinstance(item, Trace)]
    return found


def spans_of(items: list[Item]) -> list[Span]:
    return [item for item in items if isinstance(item, Span)]


def everything_but_held_apart(items: list[Item]) -> str:
    return json.dumps([item.model_dump(mode="json", exclude={"held_apart"}) for item in items])


def test_enriched_observations_are_a_trace_with_its_people(tmp_path: Path) -> None:
    rows = [observation(2, type="GENERATION", provided_model_name="m", output="hi"), observation(1, input='"hello"')]
    trace = trace_of(load(tmp_path, *rows))
    assert (trace.name, trace.user, trace.session, trace.started_us) == ("support", "u7", "s3", START_US)
    assert (trace.input, trace.output, trace.model) == ("hello", "hi", "m")


def test_observations_without_trace_fields_leave_the_trace_to_its_own_row(tmp_path: Path) -> None:
    items = load(tmp_path, legacy(1), legacy(2))
    assert [type(item) for item in items] == [Span, Span]


def test_a_trace_row_of_an_export_is_a_trace_in_utc(tmp_path: Path) -> None:
    row = {"id": "t1", "timestamp": START, "name": "support", "project_id": "p", "user_id": "u7", "session_id": None}
    trace = trace_of(load(tmp_path, row | {"release": "1.2", "tags": ["a"], "input": '{"q": 1}', "output": None}))
    assert (trace.started_us, trace.user, trace.app_version, trace.input) == (START_US, "u7", "1.2", {"q": 1})
    assert trace.attributes == {"tags": ["a"]}


def test_observations_are_put_in_order_below_their_root(tmp_path: Path) -> None:
    items = load(tmp_path, observation(3), observation(2), observation(1))
    assert [(span.name, span.position) for span in spans_of(items)] == [("step 1", 0), ("step 2", 1), ("step 3", 2)]


def test_a_trace_without_its_root_is_still_a_trace(tmp_path: Path) -> None:
    row = observation(2, type="GENERATION", input='[{"role": "user", "content": "hi"}]', output='"hello"')
    trace = trace_of(load(tmp_path, row))
    assert (trace.input, trace.output, trace.user) == ("hi", "hello", "u7")


def test_rows_that_do_not_fit_into_memory_are_put_together_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        observation(place, trace_id=f"t{trace}", id=f"{trace}-{place}") for place in (3, 1, 2) for trace in (1, 2, 3)
    ]
    at_once = load(tmp_path, *rows)
    monkeypatch.setattr(grouping, "MEMORY_BYTES", 100)
    assert sorted(load(tmp_path, *rows), key=repr) == sorted(at_once, key=repr)


def test_an_error_is_the_status_its_text_and_its_class(tmp_path: Path) -> None:
    (span,) = spans_of(load(tmp_path, legacy(1, level="ERROR", status_message="KeyError: 'ORD-404'", type="TOOL")))
    assert (span.status, span.error, span.error_type, span.kind) == ("error", "KeyError: 'ORD-404'", "KeyError", "tool")


def test_a_tool_call_without_a_step_gets_one_with_its_result(tmp_path: Path) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "get_order", "arguments": '{"id": "7"}'}}
    asked = json.dumps({"role": "assistant", "content": None, "tool_calls": [call]})
    answered = json.dumps([{"role": "tool", "tool_call_id": "c1", "content": "Error: order not found"}])
    items = load(
        tmp_path,
        observation(1),
        observation(2, type="GENERATION", output=asked),
        observation(3, type="GENERATION", input=answered, output='"sorry"'),
    )
    (tool,) = [span for span in spans_of(items) if span.kind == "tool"]
    assert (tool.name, tool.input, tool.tool_call_id) == ("get_order", {"id": "7"}, "c1")
    assert (tool.output, tool.status, tool.parent_external_id) == ("Error: order not found", "error", "o2")


def test_documents_of_a_retriever_are_its_documents(tmp_path: Path) -> None:
    (span,) = spans_of(load(tmp_path, legacy(1, type="RETRIEVER", output='[{"id": "d1", "content": "30 days"}]')))
    assert span.documents == ({"id": "d1", "content": "30 days"},)


def test_usage_that_adds_up_and_usage_that_repeats_are_told_apart(tmp_path: Path) -> None:
    parts = {"input": 5, "input_cached_tokens": 100, "output": 7, "total": 112}
    (span,) = spans_of(load(tmp_path, legacy(1, type="GENERATION", usage_details=parts, cost_details={"total": 0.5})))
    assert (span.input_tokens, span.output_tokens, span.cost_usd) == (105, 7, 0.5)
    assert span.attributes["cache_read_tokens"] == 100


def test_a_value_that_was_cut_off_is_kept_as_text_and_marked(tmp_path: Path) -> None:
    (span,) = spans_of(load(tmp_path, legacy(1, input='{"messages": [{"role": "us')))
    assert (span.input, span.attributes) == ('{"messages": [{"role": "us', {"truncated": ["input"]})


def test_pictures_are_kept_as_their_digest(tmp_path: Path) -> None:
    picture = "data:image/png;base64," + "iVBORw0KGgoA" * 50
    (span,) = spans_of(load(tmp_path, legacy(1, input=json.dumps([{"image_url": {"url": picture}}]))))
    assert span.input == [{"image_url": {"url": "data:image/png;sha256=91b567a062fa808c;bytes=450"}}]


def test_a_row_of_csv_that_was_fused_is_rejected_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "observations.csv"
    rows = ["id,trace_id,project_id,type,start_time,name,input"]
    rows += [f'o1,t1,p,TOOL,{START},get,"{{""id"": 7}}"', f"o2,t1,p,SPAN,{START},ao3,t1,p,SPAN,{START},b,", ""]
    file.write_text("\n".join(rows))
    rejected, span = read(file)
    assert isinstance(rejected, Rejected)
    assert (rejected.line, rejected.reason) == (3, "12 cells, and the header has 7")
    assert isinstance(span, Span)
    assert (span.name, span.input) == ("get", {"id": 7})


def test_columns_of_a_batch_export_that_hold_lists_are_scores(tmp_path: Path) -> None:
    row = {"id": "t1", "timestamp": START + "Z", "name": "a", "userId": "u", "bookmarked": False, "tags": ["x"]}
    items = load(tmp_path, row | {"latency": 1.5, "accuracy": [0.95], "user-mood": ["angry", "calm"]})
    given = [(item.name, item.score, item.label) for item in items if isinstance(item, Feedback)]
    assert given == [("accuracy", 0.95, None), ("user-mood", None, "angry"), ("user-mood", None, "calm")]


def score(**fields: Any) -> dict[str, Any]:
    return {"id": "s1", "projectId": "p", "name": "n", "source": "API", "timestamp": START + "Z", **fields}


def test_a_page_of_scores_is_typed_by_its_data_type() -> None:
    trace = {"subject": {"kind": "trace", "id": "t1"}}
    page: dict[str, Any] = {
        "data": [
            score(dataType="NUMERIC", value=0.25, **trace),
            score(dataType="BOOLEAN", value=True, subject={"kind": "observation", "id": "o2", "traceId": "t1"}),
            score(dataType="CATEGORICAL", value="rude", source="EVAL", **trace),
            score(dataType="CORRECTION", value="No: 30 days.", source="ANNOTATION", authorUserId="ann", **trace),
        ],
        "meta": {"limit": 50},
    }
    given = [item for item in items_of_page(page, OPTIONS) if isinstance(item, Feedback)]
    assert [(item.score, item.label, item.corrected_output, item.source_kind) for item in given] == [
        (0.25, None, None, "program"),
        (1.0, None, None, "program"),
        (None, "rude", None, "judge"),
        (None, None, "No: 30 days.", "human"),
    ]
    assert [item.span_external_id for item in given] == [None, "o2", None, None]
    assert given[3].principal == "ann"


def test_a_score_of_an_experiment_is_rejected_and_the_rest_of_the_page_is_read() -> None:
    bad = score(dataType="NUMERIC", value=1, subject={"kind": "experiment", "id": "e1"})
    good = score(dataType="NUMERIC", value=1, subject={"kind": "session", "id": "s3"})
    rejected, given = items_of_page({"data": [bad, good], "meta": {}}, OPTIONS, place="page 1")
    assert isinstance(rejected, Rejected)
    assert (rejected.path, rejected.reason[:26]) == ("page 1", "a score of experiment 'e1'")
    assert isinstance(given, Feedback)
    assert given.trace_external_id == "?session:s3"


def test_a_category_without_a_configuration_has_no_number() -> None:
    (given,) = items_of_page([score(dataType="CATEGORICAL", value=0, stringValue="bad", traceId="t1")], OPTIONS)
    assert isinstance(given, Feedback)
    assert (given.label, given.score) == ("bad", None)


def test_a_page_of_observations_needs_only_its_core_fields() -> None:
    row: dict[str, Any] = {
        "id": "o1",
        "traceId": "t1",
        "startTime": "2026-03-01T10:00:00Z",
        "endTime": None,
        "projectId": "p",
    }
    span, trace = items_of_page({"data": [row | {"parentObservationId": None, "type": "AGENT"}], "meta": {}}, OPTIONS)
    assert isinstance(span, Span)
    assert isinstance(trace, Trace)
    assert (span.kind, span.started_us, trace.external_id, trace.ended_us) == ("agent", START_US, "t1", None)


def test_one_trace_of_the_api_comes_with_its_scores() -> None:
    body: dict[str, Any] = {
        "id": "t1",
        "timestamp": START + "Z",
        "name": "a",
        "input": {"q": 1},
        "observations": [],
        "scores": [],
    }
    body["scores"] = [score(dataType="BOOLEAN", value=0, traceId="t1")]
    trace, given = items_of_page(body, OPTIONS, whole=True)
    assert isinstance(trace, Trace)
    assert isinstance(given, Feedback)
    assert (trace.input, given.score, given.trace_id) == ({"q": 1}, 0.0, trace.id)


def test_what_was_expected_of_a_dataset_item_is_held_apart_and_nowhere_else(tmp_path: Path) -> None:
    metadata = {"dataset_item": {"expectedOutput": "SECRET-1"}, "langfuse.experiment.item.expected_output": "SECRET-2"}
    root = observation(1, metadata=metadata, input='{"input": "q", "expected": "SECRET-3"}')
    items = load(tmp_path, root, observation(2, experiment_item_expected_output='"SECRET-4"'))
    kept = {str(said).strip('"') for said in trace_of(items).held_apart.values()}
    assert kept == {"SECRET-1", "SECRET-2", "SECRET-3", "SECRET-4"}
    assert "SECRET" not in everything_but_held_apart(items)


def test_a_large_array_of_rows_is_read_in_little_memory(tmp_path: Path) -> None:
    file = tmp_path / "observations.json"
    with file.open("w") as out:
        for number in range(30_000):
            row = observation(1, id=f"o{number}", trace_id=f"t{number % 7919}", input="word " * 200)
            out.write(("[" if number == 0 else ",\n") + json.dumps(row))
        out.write("]")
    code = (
        "import re, sys; from pathlib import Path; from store.sources import read;"
        "count = sum(1 for _ in read(Path(sys.argv[1])));"
        "peak = re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text());"
        "print(count, int(peak[1]) // 1024)"
    )
    root = Path(__file__).resolve().parent.parent
    done = subprocess.run([sys.executable, "-c", code, file], cwd=root, capture_output=True, text=True, check=True)
    read_items, megabytes = map(int, done.stdout.split())
    assert read_items == 30_000 + 7919
    assert megabytes < 250


def test_an_export_to_a_bucket_as_parquet_reads_like_its_jsonl(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = [
        observation(1, metadata={"a": "b"}, usage_details={"input": 5, "output": 7}),
        observation(
            2,
            metadata={"a": "c"},
            usage_details={"input": 1, "output": 2},
            type="GENERATION",
            input='[{"role": "user", "content": "hi"}]',
            output='"hello"',
        ),
    ]
    table = pyarrow.Table.from_pylist(rows)
    parquet.write_table(table, tmp_path / "observations.parquet")
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert recognise(tmp_path / "observations.parquet").name == "langfuse"
    assert list(read(tmp_path / "observations.parquet")) == list(read(tmp_path / "rows.jsonl"))


def test_maps_decimals_and_times_of_parquet_are_read_as_they_are_meant(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {
        "id": ["t1"], "timestamp": pyarrow.array([datetime(2026, 1, 5, 10, tzinfo=UTC)], pyarrow.timestamp("ms")),
        "name": ["support"], "project_id": ["p"], "user_id": ["u7"], "session_id": ["s"], "tags": [["a"]],
        "total_cost": [Decimal("0.5")],
        "metadata": pyarrow.array([[("plan", "pro")]], pyarrow.map_(pyarrow.string(), pyarrow.string())),
    }  # fmt: skip
    parquet.write_table(pyarrow.table(columns), tmp_path / "traces.parquet")
    [trace] = read(tmp_path / "traces.parquet")
    assert isinstance(trace, Trace)
    assert (trace.started_us, trace.user) == (1_767_607_200_000_000, "u7")
    assert trace.attributes["metadata"] == {"plan": "pro"}


def test_a_parquet_file_whose_text_is_damaged_is_refused_with_the_row(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    file = tmp_path / "observations.parquet"
    row = observation(1, metadata={"a": "b"}, input="MARK-MARK-MARK")
    parquet.write_table(pyarrow.Table.from_pylist([row]), file, compression="none", use_dictionary=False)
    file.write_bytes(file.read_bytes().replace(b"MARK-MARK-MARK", b"\xd4ARK-MARK-MARK"))
    with pytest.raises(InputError, match="the Parquet file is damaged"):
        list(read(file))
