"""Predictions of a small model as a table, with labels in it or in a file of their own that comes later.

A row is a trace with one `predict` span, and, where a label is filled in, a `label` feedback whose corrected output is
that label. A table with ids and labels alone yields feedback only: on the trace of the same id and source.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from store.errors import MappingError
from store.records import Feedback, Rejected, Span, Trace
from store.records.identity import canonical_json
from store.sources.columns import Columns, choose_columns
from store.sources.contract import BadRecord, Item, Sample, SourceOptions
from store.sources.fields import Occurrences, as_id, as_number, as_text, make
from store.sources.files import reject
from store.sources.json_records import take_sample
from store.sources.rows import Row, header_of, read_rows
from store.sources.times import parse_time

name = "tabular"

_LABEL_FIELDS = ("label", "comment", "reviewer", "label_time")
"""What is said of a prediction later: no part of its identity."""
_CLASS_PROBABILITY = "y_pred_proba"
"""By convention the probability of class 1, or of the class whose name is appended to it."""


def recognise(sample: Sample) -> str | None:
    """Recognises an input or an id beside a prediction or a label, by their usual column names."""
    present = columns_of(sample)
    if _is_nested(sample):
        return None
    try:
        columns = choose_columns(present, {})
    except MappingError:
        # Read, a table whose columns are in doubt says which to choose; that helps more than "unknown format".
        return f"a table with the columns {', '.join(present[:12])}" if sample.suffix in (".csv", ".tsv") else None
    if not ({"id", "input"} & columns.keys() and {"output", "label"} & columns.keys()):
        return None
    return "a table with the columns " + ", ".join(present[:12])


def columns_of(sample: Sample) -> list[str]:
    """The columns of a table: its header, or the keys of its first JSON objects in the order they come."""
    if sample.objects:
        return list(dict.fromkeys(key for value in sample.objects for key in value))
    return [column.strip() for column in header_of(sample)]


def guess_columns(path: Path) -> Columns:
    """Our field to the column that would be taken for it. Raises MappingError where that is in doubt."""
    return choose_columns(columns_of(take_sample(path)), {})


def read(path: Path, options: SourceOptions) -> Iterator[Item]:
    """The predictions and labels of a table. Raises MappingError where the columns do not fit it."""
    sample = take_sample(path)
    try:
        table = _Table(_present(path, sample, options), options)
    except MappingError as error:
        raise MappingError(f"{path}: {error}") from error
    for row in read_rows(path, sample):
        if isinstance(row, Rejected):
            yield row
            continue
        try:
            items = table.items(row)
        except BadRecord as error:
            yield reject(path, row.line, str(error), row.data)
            continue
        yield from items


def _present(path: Path, sample: Sample, options: SourceOptions) -> list[str]:
    """The table's columns; those mapped ones that its first JSON objects lack, as labels may, are looked for further on."""
    present = columns_of(sample)
    missing = set(options.columns.values()) - set(present)
    if not missing or not sample.objects:
        return present
    for row in read_rows(path, sample):
        if isinstance(row, Row):
            present += sorted(missing & row.cells.keys())
            missing -= row.cells.keys()
        if not missing:
            break
    return present


def _is_nested(sample: Sample) -> bool:
    """Whether it holds messages or spans, which are other formats' matter."""
    return any(
        isinstance(value, list) and value and isinstance(value[0], dict)
        for row in sample.objects
        for value in row.values()
    )


class _Table:
    """Makes our records of the rows of one table."""

    def __init__(self, present: list[str], options: SourceOptions) -> None:
        self._columns: Columns = choose_columns(present, options.columns)
        self._options = options
        self._zone = options.zone
        self._owner = {"project": options.project, "source": options.source or name}
        self._occurrences = Occurrences()
        columns = self._columns
        self.labels_only = options.label_only or not {"input", "output"} & columns.keys()
        if self.labels_only and not {"id", "label"} <= columns.keys():
            missing = "label" if "id" in columns else "id" if "label" in columns else "input"
            raise MappingError(
                f"no column is known to be the {missing}: name it, `columns = {{ {missing} = ... }}`; the file has "
                + ", ".join(repr(column) for column in present)
            )

    def items(self, row: Row) -> list[Item]:
        cells = row.cells
        if self.labels_only:
            external_id = as_id(self._cell(cells, "id"))
            if external_id is None:
                raise BadRecord(f"{self._columns['id']}: empty, and a label needs the id of its trace")
            return self._labels(cells, external_id)
        external_id = as_id(self._cell(cells, "id")) or self._occurrences.id_of(self._prediction_part(cells))
        return [*self._prediction(cells, external_id), *self._labels(cells, external_id)]

    def _cell(self, cells: dict[str, JsonValue], field: str) -> JsonValue:
        """The value of a field; None where it has no column or the cell is empty."""
        column = self._columns.get(field)
        value = None if column is None else cells.get(column)
        return None if value == "" else value

    def _prediction_part(self, cells: dict[str, JsonValue]) -> dict[str, JsonValue]:
        later = {self._columns.get(field) for field in _LABEL_FIELDS}
        return {column: value for column, value in cells.items() if column not in later}

    def _prediction(self, cells: dict[str, JsonValue], external_id: str) -> list[Item]:
        model = as_text(self._cell(cells, "model")) or self._options.model
        answer = _as_label(self._cell(cells, "output"))
        rest = {column: value for column, value in cells.items() if column not in self._columns.values()}
        seen = self._cell(cells, "input")
        if "input" not in self._columns:
            seen = {column: value for column, value in rest.items() if not column.startswith(_CLASS_PROBABILITY)}
            rest = {column: value for column, value in rest.items() if column not in seen}
        confidence, unusual = self._confidence(cells, answer)
        common = {**self._owner, **self._times(cells), "input": seen, "output": answer, "model": model}
        trace = common | {
            field: as_text(self._cell(cells, field)) for field in ("user", "session", "tenant", "channel")
        }
        trace |= {
            "external_id": external_id,
            "app_version": as_text(self._cell(cells, "version")),
            "attributes": rest | unusual,
        }
        items: list[Item] = [make(Trace, trace)]
        if "output" in self._columns:
            span = common | {"trace_external_id": external_id, "external_id": "predict", "kind": "predict"}
            items.append(make(Span, span | {"name": model, "confidence": confidence}))
        return items

    def _times(self, cells: dict[str, JsonValue]) -> dict[str, int]:
        moment = parse_time(self._cell(cells, "time"), self._zone)
        return {} if moment is None else {"started_us": moment.us, "started_ns": moment.ns}

    def _confidence(self, cells: dict[str, JsonValue], answer: str | None) -> tuple[float | None, dict[str, JsonValue]]:
        """The probability of the answer, and the cell as an attribute where it is none."""
        column = self._columns.get("confidence", f"{_CLASS_PROBABILITY}_{answer}")
        value = cells.get(column)
        try:
            number = as_number(value)
        except BadRecord:
            return None, {column: value}
        if number is None or not 0 <= number <= 1:
            return None, {} if value in (None, "") else {column: value}
        against = column == _CLASS_PROBABILITY and answer in ("0", "false", "False")
        return (1 - number if against else number), {}

    def _labels(self, cells: dict[str, JsonValue], external_id: str) -> list[Item]:
        label = _as_label(self._cell(cells, "label"))
        comment = as_text(self._cell(cells, "comment"))
        if label is None and comment is None:
            return []
        reviewer = as_text(self._cell(cells, "reviewer"))
        given = self._cell(cells, "label_time")
        if given is None and self.labels_only:
            given = self._cell(cells, "time")
        moment = parse_time(given, self._zone)
        values: dict[str, Any] = {
            **self._owner,
            "trace_external_id": external_id,
            "external_id": "label" if reviewer is None else f"label:{reviewer}",
            "name": "label",
            "corrected_output": label,
            "comment": comment,
            "source_kind": "program" if reviewer is None else "human",
            "principal": reviewer,
            "given_us": moment.us if moment else None,
            "attributes": self._beside_label(cells) if self.labels_only else {},
        }
        return [make(Feedback, values)]

    def _beside_label(self, cells: dict[str, JsonValue]) -> dict[str, JsonValue]:
        said = {self._columns.get(field) for field in ("id", "time", *_LABEL_FIELDS)}
        return {column: value for column, value in cells.items() if column not in said}


def _as_label(value: JsonValue) -> str | None:
    """A class as text, the same in CSV and in JSON: 1, 1.0 and "1" are one class; None: there is none."""
    if isinstance(value, str):
        return value.strip() or None
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return canonical_json(value)
