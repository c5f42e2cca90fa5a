"""Tables of predictions and of labels: columns, line numbers, identity, broken rows."""

import json
from pathlib import Path

import pytest

from store.errors import MappingError
from store.records import Feedback, Rejected, Span, Trace
from store.sources import Item, SourceOptions, read, recognise
from store.sources.tabular import guess_columns

DATA = Path(__file__).parent.parent.parent / "shared" / "data"
SAMPLES = DATA.parent / "samples" / "tabular"


def ingest(folder: Path, text: str | bytes, *, name: str = "log.csv", **options: object) -> list[Item]:
    file = folder / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return list(read(file, format="tabular", options=SourceOptions.model_validate(options)))


def rejections(items: list[Item]) -> list[tuple[int | None, str]]:
    return [(item.line, item.reason) for item in items if isinstance(item, Rejected)]


def traces(items: list[Item]) -> list[Trace]:
    return [item for item in items if isinstance(item, Trace)]


def feedback(items: list[Item]) -> list[Feedback]:
    return [item for item in items if isinstance(item, Feedback)]


def test_a_row_is_a_trace_a_prediction_and_a_label(tmp_path: Path) -> None:
    text = "id,timestamp,user_id,text,y_pred,confidence,label,shop\n1,2025-03-01T12:00:00Z,u7,hi,greet,0.9,bye,berlin\n"
    start = 1740830400000000
    assert ingest(tmp_path, text, model="intent") == [
        Trace(
            source="tabular",
            external_id="1",
            started_us=start,
            user="u7",
            input="hi",
            output="greet",
            model="intent",
            attributes={"shop": "berlin"},
        ),
        Span(
            source="tabular",
            trace_external_id="1",
            external_id="predict",
            kind="predict",
            name="intent",
            model="intent",
            started_us=start,
            input="hi",
            output="greet",
            confidence=0.9,
        ),
        Feedback(
            source="tabular",
            trace_external_id="1",
            external_id="label",
            name="label",
            corrected_output="bye",
            source_kind="program",
        ),
    ]


def test_a_row_without_a_label_has_no_feedback(tmp_path: Path) -> None:
    assert feedback(ingest(tmp_path, "id,text,y_pred,label\n1,hi,greet,\n")) == []


def test_a_label_of_a_reviewer_is_a_persons(tmp_path: Path) -> None:
    text = "id,text,y_pred,label,reviewer,comment,label_time\n1,hi,greet,bye,ann,clear,2025-03-01T12:00:00Z\n"
    (label,) = feedback(ingest(tmp_path, text))
    assert (label.source_kind, label.principal, label.comment, label.given_us) == (
        "human",
        "ann",
        "clear",
        1740830400000000,
    )


def test_labels_alone_are_feedback_on_the_trace_of_the_same_id(tmp_path: Path) -> None:
    (trace,) = traces(ingest(tmp_path, "id,text,y_pred\n1,hi,greet\n"))
    text = '{"id": 1, "label_timestamp": "2025-03-20T00:00:00Z", "label": "bye", "batch": 4}'
    (label,) = ingest(tmp_path, text, name="labels.jsonl")
    expected = Feedback(
        source="tabular",
        trace_external_id="1",
        external_id="label",
        name="label",
        corrected_output="bye",
        source_kind="program",
        given_us=1742428800000000,
        attributes={"batch": 4},
    )
    assert label == expected
    assert expected.trace_id == trace.id


def test_a_revised_label_has_the_id_of_the_first(tmp_path: Path) -> None:
    first, second = feedback(ingest(tmp_path, "id,label\n1,bye\n1,greet\n"))
    assert (first.id == second.id, first.corrected_output, second.corrected_output) == (True, "bye", "greet")


def test_a_label_file_names_the_source_whose_traces_it_labels(tmp_path: Path) -> None:
    (label,) = feedback(ingest(tmp_path, "id,text,label\n1,hi,bye\n", source="langfuse", label_only=True))
    assert label.trace_id == Trace(source="langfuse", external_id="1").id


def test_a_label_row_without_an_id_is_rejected(tmp_path: Path) -> None:
    assert rejections(ingest(tmp_path, "id,label\n,bye\n")) == [(2, "id: empty, and a label needs the id of its trace")]


def test_rows_that_repeat_themselves_stay_apart_and_keep_their_ids(tmp_path: Path) -> None:
    text = "text,y_pred,label\nhi,greet,\nhi,greet,\nbye,greet,\n"
    first = [trace.external_id for trace in traces(ingest(tmp_path, text))]
    later = [trace.external_id for trace in traces(ingest(tmp_path, text.replace("greet,\n", "greet,x\n")))]
    assert len(set(first)) == 3
    assert later == first


def test_a_label_that_came_with_the_second_reading_belongs_to_the_first_trace(tmp_path: Path) -> None:
    (trace,) = traces(ingest(tmp_path, "text,y_pred,label\nhi,greet,\n"))
    (label,) = feedback(ingest(tmp_path, "text,y_pred,label\nhi,greet,bye\n"))
    assert label.trace_id == trace.id


def test_columns_of_any_name_are_mapped(tmp_path: Path) -> None:
    columns = {"input": "said", "output": "answer", "label": "truth"}
    trace, span, label = ingest(tmp_path, "said,answer,truth\nhi,greet,bye\n", columns=columns)
    assert isinstance(trace, Trace)
    assert isinstance(span, Span)
    assert isinstance(label, Feedback)
    assert (trace.input, span.output, label.corrected_output) == ("hi", "greet", "bye")


@pytest.mark.parametrize("name", ["log.csv", "log.jsonl"])
def test_a_mapped_column_that_is_not_there_is_an_error(tmp_path: Path, name: str) -> None:
    text = "text,y_pred\nhi,greet\n" if name == "log.csv" else '{"text": "hi", "y_pred": "greet"}'
    message = rf"{name}: columns: label is 'truth', which the file does not have; it has 'text', 'y_pred'"
    with pytest.raises(MappingError, match=message):
        ingest(tmp_path, text, name=name, columns={"label": "truth"})


def test_a_mapped_field_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MappingError, match="there is no field 'colour'; the fields are id, time, user"):
        ingest(tmp_path, "text,y_pred\nhi,greet\n", columns={"colour": "text"})


def test_two_columns_that_could_be_the_answer_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(MappingError, match="'y_pred', 'prediction' could each be the output: say which"):
        ingest(tmp_path, "text,y_pred,prediction\nhi,greet,bye\n")


def test_a_table_without_a_known_label_says_which_columns_it_has(tmp_path: Path) -> None:
    with pytest.raises(MappingError, match=r"no column is known to be the label: .* the file has 'id', 'repaid'"):
        ingest(tmp_path, "id,repaid\n1,0\n")


def test_a_label_that_first_appears_late_in_a_jsonl_file_can_be_mapped(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"id": n, "text": "hi", "y_pred": "greet"} for n in range(50)]
    rows[40]["truth"] = "bye"
    items = ingest(tmp_path, "\n".join(map(json.dumps, rows)), name="log.jsonl", columns={"label": "truth"})
    assert [item.trace_external_id for item in feedback(items)] == ["40"]


def test_the_same_class_is_one_label_in_csv_and_in_json(tmp_path: Path) -> None:
    (csv_label,) = feedback(ingest(tmp_path, "id,label\n7, 1\n"))
    labels = feedback(ingest(tmp_path, '[{"id": 7, "label": 1}, {"id": 7, "label": 1.0}]', name="labels.json"))
    assert {item.corrected_output for item in (csv_label, *labels)} == {"1"}


def test_without_an_input_column_the_other_columns_are_what_the_model_saw(tmp_path: Path) -> None:
    text = "id,age,city,y_pred,y_pred_proba_a,y_pred_proba_b\n1,30,Ulm,b,0.2,0.8\n"
    trace, span = ingest(tmp_path, text)
    assert isinstance(trace, Trace)
    assert isinstance(span, Span)
    assert (span.input, span.confidence) == ({"age": "30", "city": "Ulm"}, 0.8)
    assert trace.attributes == {"y_pred_proba_a": "0.2", "y_pred_proba_b": "0.8"}


def test_y_pred_proba_is_the_probability_of_class_one(tmp_path: Path) -> None:
    items = ingest(tmp_path, "id,text,y_pred,y_pred_proba\n1,a,1,0.75\n2,b,0,0.25\n")
    assert [item.confidence for item in items if isinstance(item, Span)] == [0.75, 0.75]


@pytest.mark.parametrize("score", ["87.5", "high"])
def test_a_score_that_is_no_probability_is_kept_as_an_attribute(tmp_path: Path, score: str) -> None:
    trace, span = ingest(tmp_path, f"id,text,y_pred,score\n1,a,b,{score}\n")
    assert isinstance(trace, Trace)
    assert isinstance(span, Span)
    assert (span.confidence, trace.attributes) == (None, {"score": score})


def test_a_time_without_an_offset_rejects_its_row_until_a_zone_is_set(tmp_path: Path) -> None:
    text = "id,time,text,y_pred\n1,2025-03-01 12:00:00,a,b\n2,2025-03-01T12:00:00Z,a,b\n"
    reason = "time without an offset: '2025-03-01 12:00:00'; set `timezone` for this source"
    assert rejections(ingest(tmp_path, text)) == [(2, reason)]
    assert len({trace.started_us for trace in traces(ingest(tmp_path, text, timezone="UTC"))}) == 1


@pytest.mark.parametrize("separator", [",", ";", "|", "\t"])
def test_the_separator_is_found(tmp_path: Path, separator: str) -> None:
    text = "id,text,y_pred\n1,hi,greet\n".replace(",", separator)
    assert [trace.input for trace in traces(ingest(tmp_path, text))] == ["hi"]


def test_a_quoted_cell_of_several_lines_keeps_line_numbers_right(tmp_path: Path) -> None:
    items = ingest(tmp_path, 'id,text,y_pred\r\n1,"a\r\n\r\nb",x\r\n2,too,many,cells\r\n\r\n3,c,y\r\n')
    assert [trace.input for trace in traces(items)] == ["a\r\n\r\nb", "c"]
    assert rejections(items) == [(5, "4 cells, and the header has 3")]


def test_a_quote_that_is_not_closed_costs_its_own_line_alone(tmp_path: Path) -> None:
    items = ingest(tmp_path, 'id,text,y_pred\n1,"open,x\n2,b,y\n3,"c",z\n4,d,w\n')
    assert [trace.external_id for trace in traces(items)] == ["2", "3", "4"]
    assert [line for line, _ in rejections(items)] == [2]


def test_a_latin_1_row_is_rejected_and_the_rest_is_read(tmp_path: Path) -> None:
    items = ingest(tmp_path, "id,text,y_pred\n1,caf\xe9,x\n2,b,y\n".encode("latin-1"))
    assert [trace.external_id for trace in traces(items)] == ["2"]
    (rejected,) = [item for item in items if isinstance(item, Rejected)]
    assert (rejected.line, rejected.raw) == (2, "1,café,x\n")


def test_a_cell_beyond_the_usual_limit_of_csv_is_read(tmp_path: Path) -> None:
    (trace,) = traces(ingest(tmp_path, f"id,text,y_pred\n1,{'x' * 1_000_000},a\n"))
    assert trace.input == "x" * 1_000_000


def test_nul_and_byte_order_mark_are_mended(tmp_path: Path) -> None:
    (trace,) = traces(ingest(tmp_path, "\ufeffid,text,y_pred\n1,a\0b,x\n"))
    assert (trace.external_id, trace.input) == ("1", "a\ufffdb")


def test_nan_in_a_row_of_json_says_nothing(tmp_path: Path) -> None:
    items = ingest(tmp_path, '{"id": 1, "text": "a", "y_pred": "b", "confidence": NaN, "label": NaN}', name="a.jsonl")
    assert [type(item) for item in items] == [Trace, Span]


def test_the_columns_of_a_table_are_guessed(tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    file.write_text("Sentence,predicted_node,predicted_node_score,Label\n")
    expected = {"input": "Sentence", "output": "predicted_node", "confidence": "predicted_node_score", "label": "Label"}
    assert guess_columns(file) == expected


def test_hint3_is_read_without_a_mapping() -> None:
    file = DATA / "hint3" / "predictions" / "bert_curekart_subset.csv"
    if not file.exists():
        pytest.skip(f"no {file}")
    items = list(read(file))
    assert recognise(file).name == "tabular"
    assert (len(traces(items)), len(feedback(items)), len({trace.id for trace in traces(items)})) == (991, 991, 991)
    assert sum(item.corrected_output == "NO_NODES_DETECTED" for item in feedback(items)) > 100


def test_delayed_labels_join_their_predictions() -> None:
    if not SAMPLES.exists():
        pytest.skip(f"no {SAMPLES}")
    options = SourceOptions(timezone="UTC")
    predictions = list(read(SAMPLES / "derived_predictions_500.jsonl", options=options))
    labels = list(read(SAMPLES / "derived_delayed_labels.jsonl", options=options))
    known = {trace.id for trace in traces(predictions)}
    assert (len(known), rejections(predictions + labels)) == (500, [])
    assert sum(item.trace_id not in known for item in feedback(labels)) == 1
