"""The files that a model is trained and judged on: one labelled input a row."""

import math
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from pydantic import JsonValue

from store.errors import MappingError
from store.records import DatasetRow, Rejected
from store.sources.json_records import take_sample
from store.sources.registry import recognise
from store.sources.rows import read_rows

Record = dict[str, JsonValue]


@lru_cache(maxsize=8)
def rows_of(
    path: Path, _modified_ns: int, _size: int, tabular: bool, input_: str, inputs: tuple[str, ...], output: str
) -> tuple[DatasetRow, ...]:
    """The rows of a CSV or JSONL file. Raises MappingError, naming file and column."""
    sample = take_sample(path)
    if not sample.head:
        recognise(path)
    given: list[JsonValue] = []
    labels: list[str] = []
    for row in read_rows(path, sample):
        if isinstance(row, Rejected):
            raise MappingError(f"{path}:{row.line}: {row.reason}")
        wanted = (*inputs, output) if tabular else (input_, output)
        missing = [column for column in wanted if column not in row.cells]
        if missing:
            raise MappingError(f"{path}: no column {missing[0]!r}; it has {', '.join(map(repr, row.cells))}")
        given.append(_record(row.cells, input_, inputs, output) if tabular else row.cells[input_])
        labels.append(str(row.cells[output]))
    if tabular:
        given = [*with_numbers([each for each in given if isinstance(each, dict)])]
    return tuple(
        DatasetRow(input=value, label=label, source="base") for value, label in zip(given, labels, strict=True)
    )


def _record(cells: Record, input_: str, inputs: tuple[str, ...], output: str) -> Record:
    whole = cells.get(input_)
    if isinstance(whole, dict) and not inputs:
        return whole
    return {name: cells[name] for name in (inputs or cells) if name != output}


def with_numbers(records: Sequence[Record]) -> list[Record]:
    """A table's texts as the numbers that they are: column by column, where each value of it is one; empty is missing.

    >>> with_numbers([{"age": "40", "city": "Ulm"}, {"age": "", "city": "7"}])
    [{'age': 40.0, 'city': 'Ulm'}, {'age': None, 'city': '7'}]
    """
    names = {name for record in records for name in record}
    numeric = {name for name in names if all(_is_number(record.get(name)) for record in records)}
    return [{name: _value(value, name in numeric) for name, value in record.items()} for record in records]


def _is_number(value: JsonValue) -> bool:
    if not isinstance(value, str):
        return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
    try:
        return not value.strip() or math.isfinite(float(value))
    except ValueError:
        return False


def _value(value: JsonValue, is_numeric: bool) -> JsonValue:
    if isinstance(value, str) and not value.strip():
        return None
    return float(value) if is_numeric and isinstance(value, str) else value
