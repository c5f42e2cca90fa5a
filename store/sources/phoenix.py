"""Phoenix: pages of its REST API (spans, spans as OTLP, annotations of spans, traces and sessions), and its dataframes.

A trace is put together from its spans. An annotation is known by its target, name and identifier: the same three again
revise it, as in Phoenix. One of a span or a session names no trace; it goes to the span's trace, and to the newest trace
of the session.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from store.addresses import of_session, of_span
from store.records import Feedback, Rejected
from store.sources.contract import BadRecord, Item, Sample, SourceOptions
from store.sources.fields import as_text, make
from store.sources.files import reject
from store.sources.json_records import JsonRecord, json_records, take_sample
from store.sources.otlp_json import printed_span, raw_span
from store.sources.parquet import parquet_rows
from store.sources.payload import object_of
from store.sources.phoenix_table import is_parquet, is_row, row_span
from store.sources.rows import Row, header_of, read_rows
from store.sources.span_feedback import annotator, score_of
from store.sources.span_window import SpanWindow
from store.sources.times import parse_time

name = "phoenix"

Object = dict[str, JsonValue]

_TARGETS = ("span_id", "trace_id", "session_id")


def recognise(sample: Sample) -> str | None:
    """Recognises pages of Phoenix's API, their elements, and its dataframes."""
    for value in sample.objects:
        if is_row(value):
            return "a dataframe of Phoenix's spans"
        for element in _elements(value):
            found = isinstance(element, dict) and _kind(element)
            if found and (found != "otlp span" or element is not value):
                return f"Phoenix: {found}s"
    if is_row(dict.fromkeys(header_of(sample))) or is_parquet(sample):
        return "a dataframe of Phoenix's spans"
    return None


def read(path: Path, options: SourceOptions) -> Iterator[Item]:
    """The spans and annotations of a file, each trace after its spans; what is wrong is rejected alone.

    Raises InputError for a Parquet file where `pyarrow` is not installed.
    """
    reading = _Reading(path, options)
    for record in _records(path):
        yield from [record] if isinstance(record, Rejected) else reading.items(record)
        yield from reading.window.overflow()
    yield from reading.window.flush()


def items_of_page(page: JsonValue, options: SourceOptions, *, place: str = "phoenix") -> list[Item]:
    """The records of one page of the REST API; what cannot be read comes as `Rejected` with `place` as its path."""
    reading = _Reading(Path(place), options)
    if not isinstance(page, dict):
        return [reject(Path(place), None, "not a JSON object", as_text(page) or "")]
    rejected = reading.items(JsonRecord(1, page, b""))
    return [*reading.window.flush(), *rejected]


def _records(path: Path) -> Iterable[JsonRecord | Rejected]:
    sample = take_sample(path)
    if is_parquet(sample):
        return parquet_rows(path)
    if sample.values:
        return json_records(path)
    rows = read_rows(path, sample)
    return (JsonRecord(row.line, row.cells, row.data) if isinstance(row, Row) else row for row in rows)


_SAID = {"name", "type", "op_name"}
"""What the spans, runs and scores of other systems say beside a project and a trace, and Phoenix's listings do not."""


def _elements(value: Object) -> list[JsonValue]:
    """The elements of a page; a record that is no page is its own element."""
    found = value.get("data")
    return found if isinstance(found, list) and "next_cursor" in value else [value]


def _kind(element: Object) -> str | None:
    """What an element of a page is; None: none of Phoenix's."""
    if "annotator_kind" in element and any(target in element for target in _TARGETS):
        return "annotation"
    if isinstance(element.get("context"), dict) and "span_kind" in element:
        return "span"
    if isinstance(element.get("attributes"), list) and "span_id" in element and "start_time_unix_nano" in element:
        return "otlp span"
    if "project_id" in element and ("trace_id" in element or "session_id" in element) and not _SAID & element.keys():
        return "trace without its span" if "trace_id" in element else "session without its span"
    return None


class _Reading:
    """The elements of one file."""

    def __init__(self, path: Path, options: SourceOptions) -> None:
        self._path = path
        self._zone = options.zone
        self._owner: dict[str, Any] = {"project": options.project, "source": options.source or name}
        self.window = SpanWindow(self._owner)

    def items(self, record: JsonRecord) -> list[Item]:
        """Annotations and what cannot be read; spans are held in the window."""
        items: list[Item] = []
        elements = _elements(record.value)
        for element in elements:
            try:
                items += self._element(element, len(record.data) // max(1, len(elements)))
            except BadRecord as error:
                raw = record.data if len(elements) == 1 and record.data else as_text(element) or ""
                items.append(reject(self._path, record.line, str(error), raw))
        return items

    def _element(self, element: JsonValue, size: int) -> list[Item]:
        if not isinstance(element, dict):
            raise BadRecord("not an object")
        if is_row(element):
            self.window.add(row_span(element, self._zone), size)
            return []
        kind = _kind(element)
        if kind == "annotation":
            return [self._annotation(element)]
        if kind == "span":
            self.window.add(printed_span(element), size)
        elif kind == "otlp span":
            self.window.add(raw_span(element, {}), size)
        elif kind is not None and isinstance(element.get("spans"), list):
            return [item for span in element["spans"] or [] for item in self._element(span, size)]  # type: ignore[union-attr]
        elif kind is not None:
            raise BadRecord(f"a {kind}s: nothing to learn from it alone, export the spans")
        else:
            raise BadRecord("neither a span nor an annotation of Phoenix")
        return []

    def _annotation(self, said: Object) -> Feedback:
        """An annotation as feedback; a note is one whose text is its comment."""
        result = object_of(said.get("result"))
        span_id, trace_id, session_id = (as_text(said.get(target)) for target in _TARGETS)
        name = as_text(said.get("name", said.get("annotation_name"))) or "annotation"
        identifier = as_text(said.get("identifier")) or ""
        moment = parse_time(said.get("updated_at") or said.get("created_at"), self._zone)
        target = span_id or trace_id or session_id or ""
        rest = {"identifier": identifier, "metadata": said.get("metadata"), "via": said.get("source")}
        return make(
            Feedback,
            {
                **self._owner,
                "trace_external_id": trace_id or (of_span(target) if span_id else of_session(target)),
                "span_external_id": span_id,
                "external_id": f"{target}:{name}:{identifier}",
                "name": name,
                "score": score_of(_result(said, result, "score")),
                "label": as_text(_result(said, result, "label")),
                "comment": as_text(_result(said, result, "explanation")),
                "source_kind": annotator(said.get("annotator_kind")),
                "principal": as_text(said.get("user_id")),
                "given_us": moment.us if moment else None,
                "attributes": {key: value for key, value in rest.items() if value not in (None, "", {})},
            },
        )


def _result(said: Object, result: Object, field: str) -> JsonValue:
    """A field of the result, in an object of its own or, in a dataframe, beside the others."""
    return next(
        (place[key] for place, key in ((result, field), (said, f"result.{field}"), (said, field)) if key in place), None
    )
