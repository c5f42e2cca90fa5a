"""Recognising and reading files and folders, good and bad; and the first look at them."""

import gzip
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

from store.errors import InputError, SourceEmpty, SourceMissing, UnknownFormat
from store.records import Rejected, Trace
from store.settings import SourceSection
from store.sources import FORMATS, READERS, Item, Sample, SourceOptions, read, recognise
from store.sources import files as source_files
from store.sources import json_records as source_json_records
from store.sources import registry as source_registry
from store.sources.files import skipped_in
from store.sources.json_records import JsonRecord, json_records
from store.sources.sniff import sniff

SAMPLES = Path(__file__).parent.parent.parent / "shared" / "samples"


def trace_line(number: int, **fields: object) -> str:
    return json.dumps({"type": "trace", "id": str(number), **fields}) + "\n"


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def outcome(items: list[Item]) -> list[str | tuple[int | None, str]]:
    """Trace ids, and the line and first words of what was rejected."""
    return [
        (item.line, item.reason.split(":")[0]) if isinstance(item, Rejected) else getattr(item, "external_id", "")
        for item in items
    ]


def test_every_reader_fulfils_the_contract() -> None:
    empty = Sample(Path("x"), b"", "")
    assert len(set(FORMATS)) == len(READERS)
    assert [reader.recognise(empty) for reader in READERS] == [None] * len(READERS)


def test_no_reader_takes_a_file_of_another_system() -> None:
    if not SAMPLES.exists():
        pytest.skip(f"no samples at {SAMPLES}")
    ours = ("native", "chat_runs", "tabular")
    taken = {}
    for file in (path for path in SAMPLES.rglob("*") if path.is_file() and path.parent.name != "tabular"):
        try:
            reader = recognise(file)
        except InputError:
            continue
        if reader.name in ours:
            taken[file.name] = reader.name
    assert taken == {}


def test_options_are_those_of_the_settings() -> None:
    section = SourceSection(columns={"input": "q"}, model="m", timezone="UTC", source="crm", label_only=True)
    expected = SourceOptions(
        project="p", columns={"input": "q"}, model="m", timezone="UTC", source="crm", label_only=True
    )
    assert SourceOptions.of(section, project="p") == expected


def test_an_unknown_time_zone_is_an_error(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", trace_line(1))
    with pytest.raises(InputError, match="timezone 'Mars/Olympus': not an IANA name"):
        list(read(file, options=SourceOptions(timezone="Mars/Olympus")))


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a"])
def test_gzip_is_known_by_its_bytes_whatever_the_name(tmp_path: Path, name: str) -> None:
    file = write(tmp_path / name, gzip.compress(trace_line(1).encode()))
    assert outcome(list(read(file))) == ["1"]


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SourceMissing, match=r"none\.jsonl: no such file"):
        list(read(tmp_path / "none.jsonl"))
    with pytest.raises(SourceMissing):
        recognise(tmp_path / "none.jsonl")


@pytest.mark.parametrize("content", [b"", b" \n\n", gzip.compress(b"", mtime=0), b"\xef\xbb\xbf"])
@pytest.mark.parametrize("format", ["auto", "native"])
def test_an_empty_file_is_an_error(tmp_path: Path, content: bytes, format: str) -> None:
    with pytest.raises(SourceEmpty):
        list(read(write(tmp_path / "a.jsonl", content), format=format))


def test_an_unknown_format_says_what_was_seen(tmp_path: Path) -> None:
    with pytest.raises(UnknownFormat, match=r"its JSON objects have the fields a, b; the formats are native, "):
        recognise(write(tmp_path / "a.json", '{"a": 1, "b": 2}'))
    with pytest.raises(UnknownFormat, match="a table with the columns x, z: map them"):
        recognise(write(tmp_path / "a.csv", "x,z\n1,2\n"))
    with pytest.raises(UnknownFormat, match="there is no format 'xml'; the formats are auto, native"):
        list(read(tmp_path / "a.csv", format="xml"))


@pytest.mark.parametrize(
    ("content", "seen"),
    [
        (bytes(range(256)) * 40, "it is binary, and no log that is read: export it as JSONL or CSV$"),
        (b"id,text,y_pred\n" + bytes(range(256)), "it is binary, and no log that is read: export it as JSONL or CSV$"),
        (b"PAR1\x00\x01", "it is a Parquet file of no system that is known; export it"),
        ("a,b".encode("utf-16"), "it is UTF-16 text; convert it"),
        (gzip.compress(gzip.compress(b"x", mtime=0), mtime=0), "it is gzip inside gzip"),
    ],
)
def test_what_is_no_text_is_named(tmp_path: Path, content: bytes, seen: str) -> None:
    for name in ("a.jsonl", "a.csv"):
        with pytest.raises(UnknownFormat, match=seen):
            list(read(write(tmp_path / name, content)))


def test_a_file_that_two_readers_recognise_is_ambiguous(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = ModuleType("other")
    vars(other).update(name="other", recognise=lambda sample: "anything", read=lambda path, options: iter(()))
    monkeypatch.setattr(source_registry, "READERS", (*READERS, other))
    with pytest.raises(
        UnknownFormat, match=r"it could be native \(objects of type trace\); other \(anything\); name one with --format"
    ):
        recognise(write(tmp_path / "a.jsonl", trace_line(1)))


def test_a_folder_is_every_file_in_it_in_name_order(tmp_path: Path) -> None:
    (tmp_path / "day2").mkdir()
    write(tmp_path / "day2" / "a.jsonl", trace_line(3))
    write(tmp_path / "b.csv", "id,text,y_pred\n2,hi,greet\n")
    write(tmp_path / "a.jsonl", trace_line(1))
    write(tmp_path / "empty.jsonl", "")
    write(tmp_path / ".hidden.jsonl", trace_line(9))
    traces = [item.external_id for item in read(tmp_path) if isinstance(item, Trace)]
    assert traces == ["1", "2", "3"]


def test_a_file_of_a_folder_that_is_not_recognised_is_rejected_as_a_whole(tmp_path: Path) -> None:
    write(tmp_path / "README", "# Logs")
    write(tmp_path / "a.jsonl", trace_line(1))
    rejected, trace = read(tmp_path)
    assert isinstance(rejected, Rejected)
    assert (Path(rejected.path).name, rejected.line) == ("README", None)
    assert isinstance(trace, Trace)


def test_a_table_of_a_folder_whose_columns_are_in_doubt_is_rejected_as_a_whole(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "text,y_pred,prediction\nhi,x,y\n")
    write(tmp_path / "b.jsonl", trace_line(1))
    rejected, trace = read(tmp_path)
    assert isinstance(rejected, Rejected)
    assert "could each be the output" in rejected.reason
    assert isinstance(trace, Trace)


def test_a_folder_with_nothing_readable_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing readable in this folder, it holds no files"):
        list(read(tmp_path))
    write(tmp_path / "notes.txt", "hello")
    with pytest.raises(InputError, match=r"nothing readable in this folder; .*notes\.txt: not recognised"):
        list(read(tmp_path))


def test_a_broken_line_in_the_middle_is_rejected_and_the_rest_is_read(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", trace_line(1) + '{"type": "trace", "id": "2\n' + "\n" + trace_line(3))
    items = list(read(file))
    assert outcome(items) == ["1", (2, "not JSON"), "3"]
    assert isinstance(items[1], Rejected)
    assert items[1].raw == '{"type": "trace", "id": "2\n'


def test_a_broken_first_line_is_rejected_and_the_rest_is_read(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", '{"type": "trace", "id": "1\n' + trace_line(2))
    assert outcome(list(read(file))) == [(1, "not JSON"), "2"]


def test_a_truncated_gzip_gives_what_was_intact(tmp_path: Path) -> None:
    whole = gzip.compress("".join(trace_line(n, input=f"{n * 7919:x}" * 20) for n in range(500)).encode())
    items = list(read(write(tmp_path / "a.jsonl.gz", whole[: len(whole) // 2])))
    assert [isinstance(item, Trace) for item in items] == [True] * (len(items) - 1) + [False]
    assert len(items) > 100
    last = items[-1]
    assert isinstance(last, Rejected)
    assert (last.line, last.reason.split("(")[0]) == (len(items), "the gzip stream is damaged or ends early ")


def test_binary_rubbish_read_by_name_is_rejected_and_can_be_stored(tmp_path: Path) -> None:
    items = list(read(write(tmp_path / "a.bin", b"\x00\xff\xfe\n\x80\x81"), format="native"))
    assert outcome(items) == [(1, "not UTF-8"), (2, "not UTF-8")]
    assert all("\0" not in item.raw for item in items if isinstance(item, Rejected))


def test_a_byte_order_mark_and_windows_line_ends_are_ignored(tmp_path: Path) -> None:
    content = "\ufeff" + trace_line(1).replace("\n", "\r\n") + trace_line(2).replace("\n", "\r\n")
    assert outcome(list(read(write(tmp_path / "a.jsonl", content)))) == ["1", "2"]


def test_a_latin_1_line_is_rejected_and_kept_readable(tmp_path: Path) -> None:
    wrong = trace_line(2, input="?").replace("?", "café").encode("latin-1")
    first, rejected, last = read(write(tmp_path / "a.jsonl", trace_line(1).encode() + wrong + trace_line(3).encode()))
    assert isinstance(rejected, Rejected)
    assert "café" in rejected.raw
    assert outcome([first, last]) == ["1", "3"]


def test_a_deeply_nested_line_is_rejected(tmp_path: Path) -> None:
    deep = '{"type": "trace", "id": "2", "input": ' + "[" * 10_000 + "]" * 10_000 + "}\n"
    items = list(read(write(tmp_path / "a.jsonl", trace_line(1) + deep + trace_line(3))))
    assert outcome(items) == ["1", (2, "nested deeper than 100 levels"), "3"]


def test_a_line_of_a_megabyte_is_read(tmp_path: Path) -> None:
    (item,) = read(write(tmp_path / "a.jsonl", trace_line(1, input="x" * 1_000_000)))
    assert isinstance(item, Trace)
    assert item.input == "x" * 1_000_000


def test_a_line_that_is_too_long_is_rejected_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_files, "MAX_RECORD_BYTES", 1000)
    lines = trace_line(1) + "x" * 5000 + "\n" + trace_line(3)
    items = list(read(write(tmp_path / "a.jsonl", lines), format="native"))
    too_long = "the line is longer than 0 MiB; it was not read, and its beginning is kept"
    assert outcome(items) == ["1", (2, too_long), "3"]


@pytest.mark.parametrize(
    "inside", ['"' + "x" * 5000 + '"', "[" + "1," * 3000 + "1]", '{"a": "' + "\\\\" * 3001 + '\\""}']
)
def test_a_record_that_is_too_long_is_rejected_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: str
) -> None:
    monkeypatch.setattr(source_json_records, "MAX_RECORD_BYTES", 1000)
    monkeypatch.setattr(
        source_json_records, "read_chunks", lambda path: iter(re.findall(b"(?s).{1,701}", path.read_bytes()))
    )
    records = (
        f'[\n{{"type": "trace", "id": 1}},\n{{"type": "trace", "input": {inside}}},\n{{"type": "trace", "id": 3}}]'
    )
    items = list(read(write(tmp_path / "a.json", records), format="native"))
    assert [item if isinstance(item, str) else item[0] for item in outcome(items)] == ["1", 3, "3"]


def test_files_that_are_no_logs_by_their_names_are_left_out_of_a_folder(tmp_path: Path) -> None:
    for name in ("filmroom.db", "filmroom.toml", "shot.PNG", "notes.md"):
        write(tmp_path / name, trace_line(1))
    write(tmp_path / "a.jsonl", trace_line(2))
    assert outcome(list(read(tmp_path, format="native"))) == ["2"]
    assert [path.name for path in skipped_in(tmp_path)] == ["filmroom.db", "filmroom.toml", "notes.md", "shot.PNG"]


def test_a_database_under_another_name_is_not_read_as_lines(tmp_path: Path) -> None:
    (tmp_path / "store").write_bytes(b"SQLite format 3\0" + b"\n" * 100)
    write(tmp_path / "a.jsonl", trace_line(2))
    trace, rejected = read(tmp_path, format="native")
    assert isinstance(rejected, Rejected)
    assert "an SQLite database" in rejected.reason
    assert isinstance(trace, Trace)


def test_one_array_is_read_like_lines_whatever_its_layout(tmp_path: Path) -> None:
    traces = [{"type": "trace", "id": str(n), "input": {"text": 'a "]}" \\ b', "list": [1, [2]]}} for n in range(3)]
    for text in (
        json.dumps(traces),
        json.dumps(traces, indent=2),
        "\n".join(json.dumps(one, indent=1) for one in traces),
    ):
        assert outcome(list(read(write(tmp_path / "a.json", text)))) == ["0", "1", "2"]


def test_records_of_an_array_know_their_line(tmp_path: Path) -> None:
    file = write(tmp_path / "a.json", '[\n {"a": 1},\n {"a":\n 2}, {"a": 3}\n,\n\n{"a": 4}]')
    assert [record.line for record in json_records(file) if isinstance(record, JsonRecord)] == [2, 3, 4, 7]


def test_a_broken_element_of_an_array_is_rejected_alone(tmp_path: Path) -> None:
    file = write(
        tmp_path / "a.json", '[{"type": "trace", "id": "1"},\n{"type": oops},\n7,\n{"type": "trace", "id": "2"}]'
    )
    assert outcome(list(read(file))) == ["1", (2, "not JSON"), (3, "not a JSON object"), "2"]


def test_an_array_that_is_cut_off_gives_its_whole_elements(tmp_path: Path) -> None:
    file = write(tmp_path / "a.json", '[{"type": "trace", "id": "1"},\n{"type": "trace", "id": "2')
    assert outcome(list(read(file))) == ["1", (2, "not JSON")]


def test_an_array_larger_than_the_chunks_is_read_piece_by_piece(tmp_path: Path) -> None:
    text = json.dumps([json.loads(trace_line(n, input="é" * 300_000)) for n in range(12)], ensure_ascii=False)
    assert outcome(list(read(write(tmp_path / "a.json", text)))) == [str(n) for n in range(12)]


def test_sniff_finds_feedback_tools_models_and_what_is_missing(tmp_path: Path) -> None:
    spans = [
        {"kind": "predict", "model": "intent", "output": "refund"},
        {"kind": "tool", "name": "get_order", "input": {"order_id": "1"}},
    ]
    feedback = [{"name": "stars", "score": 4}, {"name": "x7", "score": 1, "source_kind": "judge"}]
    line = trace_line(1, user="u", started="2025-03-01T12:00:00Z", spans=spans, feedback=feedback)
    found = sniff(write(tmp_path / "a.jsonl", line + "broken\n"))
    assert (found.format, found.complete, found.traces, found.spans, found.feedback, found.rejected) == (
        "native",
        True,
        1,
        2,
        2,
        1,
    )
    assert [(name.name, name.kind, name.good, name.threshold) for name in found.feedback_names] == [
        ("stars", "person", "high", 3.0),
        ("x7", "evaluation", None, 0.5),
    ]
    assert (found.tools, found.models) == ({"get_order": ("order_id",)}, {"intent": {"refund": 1}})
    assert [unknown.what for unknown in found.unknowns] == [
        "pieces that cannot be read: 1, first line 2: not JSON: Expecting value (character 1 of 7)",
        'whether a high `x7` is good: `good = "high"` is a guess',
        "what should have been answered: no corrected outputs",
        "which traces belong together: no sessions",
        "what the model was trained on",
        "the tools' schemas",
        "how to run the agent again",
    ]


def test_sniff_reads_times_without_an_offset_as_utc_and_says_so(tmp_path: Path) -> None:
    found = sniff(write(tmp_path / "a.csv", "id,text,y_pred,timestamp\n1,hi,greet,2025-03-01 12:00:00\n"))
    assert (found.traces, found.with_time, found.without_offset, found.rejected) == (1, 1, True, 0)
    assert found.columns == {"id": "id", "time": "timestamp", "input": "text", "output": "y_pred"}
    assert found.unknowns[0].to_do.endswith('`timezone = "Europe/Berlin"` in place of `"UTC"`')


def test_sniff_looks_at_the_beginning_of_a_long_log(tmp_path: Path) -> None:
    found = sniff(write(tmp_path / "a.jsonl", "".join(trace_line(n) for n in range(2_500))))
    assert (found.traces, found.complete) == (2_000, False)


def test_times_without_an_offset_are_found_beside_other_faults_and_in_feedback_alone(tmp_path: Path) -> None:
    bad = '{"type": "trace", "id": "2", "started": "2026-01-05T10:00:00", "feedback": [{"score": "x"}]}\n'
    given = '{"type": "feedback", "trace": "1", "score": 1, "given": "2026-01-05 10:00"}\n'
    for line in (bad, given):
        found = sniff(write(tmp_path / "log.jsonl", trace_line(1, started="2026-01-05T10:00:00Z") + line))
        assert found.without_offset
        assert not any("is rejected" in unknown.switches_off for unknown in found.unknowns)
