"""Phoenix's pages, annotations and dataframes; feedback that waits for its span."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from store.database import Store, open_store
from store.errors import InputError
from store.ingest import ingest
from store.records import AssembledTrace, Feedback, Rejected, Span, Trace, derived_id
from store.sources import Item, SourceOptions, read
from store.sources.phoenix import items_of_page
from store.traces import count_traces, episodes


def span(number: int, *, parent: int | None = None, trace: int = 1, **fields: Any) -> dict[str, Any]:
    return {
        "id": f"node {number}",
        "name": f"span {number}",
        "context": {"trace_id": f"{trace:032x}", "span_id": f"{number:016x}"},
        "span_kind": "CHAIN",
        "parent_id": f"{parent:016x}" if parent else None,
        "start_time": f"2025-03-01T12:00:0{number}+00:00",
        "end_time": f"2025-03-01T12:00:0{number}.5+00:00",
        "status_code": "OK",
        "status_message": "",
        "attributes": {},
        "events": [],
        **fields,
    }


def annotation(**fields: Any) -> dict[str, Any]:
    return {
        "id": "node",
        "created_at": "2025-03-02T12:00:00+00:00",
        "updated_at": "2025-03-02T12:00:00+00:00",
        "source": "API",
        "user_id": None,
        "name": "thumb",
        "annotator_kind": "HUMAN",
        "result": {"label": "down", "score": 0.0, "explanation": None},
        "metadata": {},
        "identifier": "",
        **fields,
    }


def page(*elements: dict[str, Any]) -> list[Item]:
    return items_of_page({"data": list(elements), "next_cursor": None}, SourceOptions())


def only_feedback(**fields: Any) -> Feedback:
    (found,) = page(annotation(**fields))
    assert isinstance(found, Feedback)
    return found


@pytest.fixture
def store(tmp_path: Path) -> Any:
    opened = open_store(f"sqlite:///{tmp_path / 'x.db'}", create=True)
    yield opened
    opened.close()


def feedback_in(store: Store, trace: int = 1) -> list[tuple[str, str | None]]:
    """Name and label of the feedback on a trace."""
    with store.read() as connection:
        (found,) = episodes(connection, [derived_id("trc", "default", "phoenix", f"{trace:032x}")])
    return [(item.name, item.label) for item in found.feedback]


def test_a_page_of_spans_becomes_spans_and_their_trace() -> None:
    items = page(span(2, parent=1, span_kind="LLM"), span(1))
    assert [getattr(item, "kind", "trace") for item in items] == ["chain", "llm", "trace"]
    trace = items[-1]
    assert isinstance(trace, AssembledTrace)
    assert (trace.source, trace.name, trace.status, trace.span_count) == ("phoenix", "span 1", "ok", 2)


def test_a_page_of_spans_as_otlp_is_read() -> None:
    ids = {"trace_id": f"{1:032x}", "span_id": f"{1:016x}", "parent_span_id": None}
    found, trace = page({**ids, "name": "x", "attributes": [], "start_time_unix_nano": 1_740_830_400_000_000_001})
    assert isinstance(found, Span)
    assert (found.started_us, found.started_ns) == (1_740_830_400_000_000, 1)
    assert isinstance(trace, Trace)


def test_an_end_in_1970_is_no_end() -> None:
    found, _ = page(span(1, end_time="1970-01-01T00:00:00+00:00"))
    assert isinstance(found, Span)
    assert found.ended_us is None


def test_metadata_that_phoenix_spread_over_names_is_one_object_again() -> None:
    document = {"content": "x", "metadata.src": "kb", "metadata.page": 3}
    plain = {f"retrieval.documents.0.document.{name}": value for name, value in document.items()}
    found, trace = page(
        span(1, span_kind="RETRIEVER", attributes=plain | {"metadata.tier": "gold", "metadata.user_id": "u"})
    )
    assert isinstance(found, Span)
    assert isinstance(trace, Trace)
    assert found.documents == ({"content": "x", "metadata": {"src": "kb", "page": 3}},)
    assert (trace.user, trace.attributes) == ("u", {"metadata": {"tier": "gold"}})


def test_an_annotation_is_known_by_target_name_and_identifier() -> None:
    found = only_feedback(trace_id="a" * 32, identifier="user:7", user_id="anna", metadata={"why": "x"})
    assert found.external_id == "a" * 32 + ":thumb:user:7"
    assert (found.score, found.label, found.principal, found.given_us) == (0.0, "down", "anna", 1_740_916_800_000_000)
    assert found.attributes == {"identifier": "user:7", "metadata": {"why": "x"}, "via": "API"}


@pytest.mark.parametrize(("kind", "source_kind"), [("HUMAN", "human"), ("LLM", "judge"), ("CODE", "program")])
def test_the_annotator_is_a_person_a_judge_or_a_program(kind: str, source_kind: str) -> None:
    assert only_feedback(trace_id="a" * 32, annotator_kind=kind).source_kind == source_kind


def test_a_note_is_feedback_with_its_text_as_comment() -> None:
    result = {"label": None, "score": None, "explanation": "called back angry"}
    found = only_feedback(trace_id="a" * 32, name="note", result=result)
    assert (found.name, found.score, found.label, found.comment) == ("note", None, None, "called back angry")


@pytest.mark.parametrize("first", ["span", "annotation"])
@pytest.mark.parametrize("target", [{"span_id": f"{1:016x}"}, {"session_id": "s"}, {"trace_id": f"{1:032x}"}])
def test_an_annotation_finds_its_trace_whichever_comes_first(store: Store, first: str, target: dict[str, Any]) -> None:
    parts = [page(span(1, attributes={"session.id": "s"})), page(annotation(**target))]
    for part in parts if first == "span" else parts[::-1]:
        ingest(store, part)
    assert feedback_in(store) == [("thumb", "down")]
    with store.read() as connection:
        assert count_traces(connection, "default") == {"traces": 1, "spans": 1, "feedback": 1}


def test_an_annotation_whose_span_never_comes_waits_and_is_counted(store: Store) -> None:
    tally = ingest(store, page(annotation(span_id=f"{9:016x}")))
    assert (tally.stored, tally.feedback, tally.quarantined) == (1, 1, 0)
    assert ingest(store, page(span(1))).stored == 2
    assert feedback_in(store) == []


def test_an_annotation_sent_again_is_a_duplicate_and_a_later_one_revises_it(store: Store) -> None:
    ingest(store, page(span(1)))
    given = annotation(span_id=f"{1:016x}")
    later = given | {"updated_at": "2025-03-03T12:00:00+00:00", "result": {"label": "up", "score": 1.0}}
    assert [ingest(store, page(each)).stored for each in (given, given, later, given)] == [1, 0, 1, 0]
    assert feedback_in(store) == [("thumb", "up")]


def test_feedback_on_a_conversation_goes_to_its_newest_trace(store: Store) -> None:
    ingest(store, page(*(span(number, trace=number, attributes={"session.id": "s"}) for number in (1, 2))))
    ingest(store, page(annotation(session_id="s")))
    assert (feedback_in(store, 1), feedback_in(store, 2)) == ([], [("thumb", "down")])


def test_feedback_of_another_source_does_not_take_the_span(store: Store) -> None:
    ingest(store, page(span(1)))
    (other,) = items_of_page(annotation(span_id=f"{1:016x}"), SourceOptions(source="elsewhere"))
    ingest(store, [other])
    assert feedback_in(store) == []


def test_what_is_neither_span_nor_annotation_is_rejected_alone() -> None:
    found, trace, rejected = page({"hello": 1}, span(1))
    assert isinstance(rejected, Rejected)
    assert (rejected.reason, json.loads(rejected.raw)) == ("neither a span nor an annotation of Phoenix", {"hello": 1})
    assert isinstance(found, Span)
    assert isinstance(trace, Trace)


def test_traces_without_their_spans_say_what_to_export_instead() -> None:
    (rejected,) = page({"id": "x", "trace_id": "a" * 32, "project_id": "p", "spans": None})
    assert isinstance(rejected, Rejected)
    assert rejected.reason == "a trace without its spans: nothing to learn from it alone, export the spans"


def test_a_dataframe_as_csv_is_read_with_the_lists_that_pandas_wrote(tmp_path: Path) -> None:
    file = tmp_path / "spans.csv"
    messages = "\"[{'message.role': 'user', 'message.content': 'it\"\"s'}]\""
    file.write_text(
        "context.span_id,context.trace_id,name,span_kind,parent_id,start_time,end_time,status_code,"
        "attributes.llm.input_messages,attributes.llm.token_count.prompt\n"
        f"{1:016x},{1:032x},chat,LLM,,2025-03-01 12:00:00+00:00,,OK,{messages},7.0\n",
        encoding="utf-8",
    )
    found, trace = read(file)
    assert isinstance(found, Span)
    assert isinstance(trace, Trace)
    assert (found.input, found.input_tokens, found.ended_us) == ([{"role": "user", "content": 'it"s'}], 7, None)


def test_parquet_without_pyarrow_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "spans.parquet"
    file.write_bytes(b"PAR1....context.span_id context.trace_id PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"install filmroom\[parquet\], or export the file as JSONL"):
        list(read(file))


def test_a_damaged_parquet_file_is_an_error(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    file = tmp_path / "spans.parquet"
    file.write_bytes(b"PAR1....context.span_id context.trace_id PAR1")
    with pytest.raises(InputError, match="the Parquet file is damaged after 0 rows"):
        list(read(file))
