"""Native JSONL: every field, what is mended, what is rejected and with which words."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from store.records import Feedback, Rejected, Span, Trace
from store.sources import Item, SourceOptions, read

DOCS = Path(__file__).parent.parent / "docs" / "format.md"


def ingest(folder: Path, *lines: object, options: SourceOptions | None = None) -> list[Item]:
    file = folder / "log.jsonl"
    file.write_text(
        "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines), encoding="utf-8"
    )
    return list(read(file, format="native", options=options))


def only_rejected(items: list[Item]) -> Rejected:
    (item,) = items
    assert isinstance(item, Rejected)
    return item


def test_a_trace_line_becomes_a_trace_with_every_field(tmp_path: Path) -> None:
    line = {
        "type": "trace",
        "id": "t1",
        "source": "shop",
        "started": "2025-03-01T12:00:00.123456789Z",
        "ended": 1740830401,
        "name": "chat",
        "session": "s",
        "user": 7,
        "tenant": "acme",
        "channel": "web",
        "status": "OK",
        "error": None,
        "input": {"text": "hi"},
        "output": "hello",
        "model": "m",
        "release": "rel_1",
        "app_version": 2,
        "prompt_version": "p1",
        "input_tokens": "12",
        "output_tokens": 3.0,
        "cost_usd": "0.5",
        "attributes": {"a": 1},
        "held_apart": {"gold": "x"},
    }
    assert ingest(tmp_path, line) == [
        Trace(
            source="shop",
            external_id="t1",
            started_us=1740830400123456,
            started_ns=789,
            ended_us=1740830401000000,
            name="chat",
            session="s",
            user="7",
            tenant="acme",
            channel="web",
            status="ok",
            input={"text": "hi"},
            output="hello",
            model="m",
            release="rel_1",
            app_version="2",
            prompt_version="p1",
            input_tokens=12,
            output_tokens=3,
            cost_usd=0.5,
            attributes={"a": 1},
            held_apart={"gold": "x"},
        )
    ]


def test_a_span_line_becomes_a_span(tmp_path: Path) -> None:
    line = {
        "type": "span",
        "trace": "t",
        "id": "s",
        "parent": "p",
        "kind": "tool",
        "name": "get",
        "input": {"id": 1},
        "documents": ["d"],
    }
    expected = Span(
        source="native",
        trace_external_id="t",
        external_id="s",
        parent_external_id="p",
        kind="tool",
        name="get",
        input={"id": 1},
        documents=("d",),
    )
    assert ingest(tmp_path, line) == [expected]


def test_a_feedback_line_becomes_feedback(tmp_path: Path) -> None:
    line = {
        "type": "feedback",
        "trace": "t",
        "span": "s",
        "id": "f",
        "name": "thumb",
        "score": True,
        "principal": "ann",
        "given": 1740830400,
    }
    expected = Feedback(
        source="native",
        trace_external_id="t",
        span_external_id="s",
        external_id="f",
        name="thumb",
        score=1.0,
        principal="ann",
        given_us=1740830400000000,
    )
    assert ingest(tmp_path, line) == [expected]


def test_inline_spans_and_feedback_follow_their_trace(tmp_path: Path) -> None:
    line = {
        "type": "trace",
        "id": "t",
        "spans": [{"kind": "llm"}, {"id": "b", "kind": "tool"}],
        "feedback": [{"id": "f", "score": 0}],
    }
    assert ingest(tmp_path, line) == [
        Trace(source="native", external_id="t"),
        Span(source="native", trace_external_id="t", external_id="0", kind="llm", position=0),
        Span(source="native", trace_external_id="t", external_id="b", kind="tool", position=1),
        Feedback(source="native", trace_external_id="t", external_id="f", score=0.0),
    ]


def test_inline_records_of_a_trace_without_an_id_belong_to_it(tmp_path: Path) -> None:
    trace, span = ingest(tmp_path, {"type": "trace", "input": "hi", "spans": [{"kind": "llm"}]})
    assert isinstance(trace, Trace)
    assert isinstance(span, Span)
    assert span.trace_id == trace.id


def test_unknown_fields_go_to_attributes(tmp_path: Path) -> None:
    kinds = ingest(
        tmp_path,
        {"type": "trace", "id": "t", "experiment": "b", "attributes": {"a": 1}},
        {"type": "span", "trace": "t", "id": "s", "depth": 2},
        {"type": "feedback", "trace": "t", "id": "f", "stars": 4},
    )
    assert [item.attributes for item in kinds if not isinstance(item, Rejected)] == [
        {"a": 1, "experiment": "b"},
        {"depth": 2},
        {"stars": 4},
    ]


def test_an_unknown_span_kind_is_other_and_kept(tmp_path: Path) -> None:
    (span,) = ingest(tmp_path, {"type": "span", "trace": "t", "id": "s", "kind": "reranker"})
    assert isinstance(span, Span)
    assert (span.kind, span.attributes) == ("other", {"kind": "reranker"})


def test_the_same_line_twice_without_an_id_is_two_traces(tmp_path: Path) -> None:
    line = {"type": "trace", "input": "hi"}
    ids = [item.external_id for item in ingest(tmp_path, line, line) if isinstance(item, Trace)]
    assert len(set(ids)) == 2
    assert ids == [item.external_id for item in ingest(tmp_path, line, line) if isinstance(item, Trace)]


def test_the_same_id_twice_is_the_same_trace_twice(tmp_path: Path) -> None:
    items = ingest(tmp_path, {"type": "trace", "id": "t", "input": 1}, {"type": "trace", "id": "t", "input": 2})
    assert len({item.id for item in items if isinstance(item, Trace)}) == 1


def test_options_name_project_source_and_time_zone(tmp_path: Path) -> None:
    options = SourceOptions(project="p", source="crm", timezone="Europe/Berlin")
    assert ingest(tmp_path, {"type": "trace", "id": "t", "started": "2025-03-01 13:00:00"}, options=options) == [
        Trace(project="p", source="crm", external_id="t", started_us=1740830400000000)
    ]


def test_bad_values_inside_are_mended(tmp_path: Path) -> None:
    line = '{"type": "trace", "id": "t", "input": {"a\\u0000": NaN, "b": "\\ud83d"}, "cost_usd": Infinity}'
    assert ingest(tmp_path, line) == [Trace(source="native", external_id="t", input={"a�": None, "b": "�"})]


REJECTIONS = {
    "an unknown type": ({"type": "event"}, "type: 'event' is none of trace, span, feedback"),
    "no type": ({"id": "t"}, "type: None is none of trace, span, feedback"),
    "a span without a trace": (
        {"type": "span", "id": "s"},
        "trace: missing; it is the id of the trace that this belongs to",
    ),
    "an unknown status": ({"type": "trace", "id": "t", "status": "meh"}, "status: 'meh' is none of ok, error, unset"),
    "a score that is no number": (
        {"type": "feedback", "trace": "t", "score": "bad"},
        "score: not a number: 'bad'",
    ),
    "a confidence in percent": (
        {"type": "span", "trace": "t", "id": "s", "confidence": 81},
        "confidence: Input should be less than or equal to 1",
    ),
    "a negative token count": (
        {"type": "trace", "id": "t", "input_tokens": -1},
        "input_tokens: not a whole number from 0 to 2^63 - 1: -1",
    ),
    "a time without an offset": (
        {"type": "trace", "id": "t", "started": "2025-03-01 12:00"},
        "started: time without an offset: '2025-03-01 12:00'; set `timezone` for this source",
    ),
    "a field beside and inside attributes": (
        {"type": "trace", "id": "t", "x": 1, "attributes": {"x": 2}},
        "x: stands both in the record and in its attributes",
    ),
    "spans that are no list": ({"type": "trace", "id": "t", "spans": {}}, "spans: not a list: {}"),
}


@pytest.mark.parametrize("case", REJECTIONS)
def test_a_wrong_line_is_rejected_with_its_reason(tmp_path: Path, case: str) -> None:
    line, reason = REJECTIONS[case]
    rejected = only_rejected(ingest(tmp_path, line))
    assert (rejected.line, rejected.reason, json.loads(rejected.raw)) == (1, reason, line)


def test_a_wrong_inline_span_is_rejected_alone_and_can_be_retried(tmp_path: Path) -> None:
    line = {"type": "trace", "id": "t", "spans": [{"id": "a", "status": "meh"}, {"id": "b"}]}
    trace, wrong, span = ingest(tmp_path, line)
    assert isinstance(wrong, Rejected)
    assert wrong.reason == "span inside trace 't': status: 'meh' is none of ok, error, unset"
    assert [type(item) for item in (trace, span)] == [Trace, Span]
    (again,) = ingest(tmp_path, {**json.loads(wrong.raw), "status": "ok"})
    assert isinstance(again, Span)
    assert (again.trace_external_id, again.external_id) == ("t", "a")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", DOCS.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("block", blocks("json"))
def test_every_json_block_of_the_documentation_is_read(tmp_path: Path, block: str) -> None:
    file = tmp_path / "docs.jsonl"
    file.write_text(block, encoding="utf-8")
    items = list(read(file))
    assert items
    assert not [item for item in items if isinstance(item, Rejected)]


@pytest.mark.parametrize("block", blocks("csv"))
def test_every_table_of_the_documentation_is_read(tmp_path: Path, block: str) -> None:
    file = tmp_path / "docs.csv"
    file.write_text(block, encoding="utf-8")
    kinds = Counter(type(item) for item in read(file))
    assert kinds[Rejected] == 0
    assert kinds[Feedback] == 1


def test_the_documentation_names_every_field_of_the_records() -> None:
    words = set(re.findall(r"`([a-z_]+)`", DOCS.read_text(encoding="utf-8")))
    renamed = {"external_id", "trace_external_id", "span_external_id", "parent_external_id", "project"}
    times = {"started_us", "started_ns", "ended_us", "given_us"}
    fields = {*Trace.model_fields, *Span.model_fields, *Feedback.model_fields} - renamed - times
    assert fields - words == set()
