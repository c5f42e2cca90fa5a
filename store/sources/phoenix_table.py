"""Phoenix's dataframe of spans, saved as CSV, JSONL or Parquet: a row a span, lists nested, times as pandas wrote them."""

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import JsonValue

from store.errors import InputError
from store.sources.contract import Sample
from store.sources.indexed import untangled
from store.sources.json_records import JsonRecord
from store.sources.otel import RawSpan
from store.sources.otlp_json import printed_span
from store.sources.payload import decoded
from store.sources.sanitise import clean

Object = dict[str, JsonValue]

_ATTRIBUTES = "attributes."
_IDS = {"context.span_id", "context.trace_id"}
_MAGIC = b"PAR1"
_FOOTER_BYTES = 1024 * 1024
_ROWS = 200
_WHOLE = re.compile(r"\d{1,18}\.0")


def is_row(value: Object) -> bool:
    """Whether these are the columns of such a dataframe."""
    return value.keys() >= _IDS


def row_span(row: Object, zone: ZoneInfo | None) -> RawSpan:
    """The span of a row. Raises BadRecord where it has no id."""
    attributes: Object = {}
    for column, cell in row.items():
        if column.startswith(_ATTRIBUTES) and cell not in (None, ""):
            attributes[column.removeprefix(_ATTRIBUTES)] = _nested(cell)
    events = decoded(row.get("events"))
    return printed_span(
        {
            **{
                name: row.get(name) or None
                for name in ("name", "span_kind", "parent_id", "status_code", "status_message")
            },
            "context": {"trace_id": row["context.trace_id"], "span_id": row["context.span_id"]},
            "start_time": row.get("start_time"),
            "end_time": row.get("end_time"),
            "attributes": attributes,
            "events": events if isinstance(events, list) else [],
        },
        zone,
    )


def is_parquet(sample: Sample) -> bool:
    """Whether it is such a dataframe as Parquet: the columns' names stand as they are at the file's end."""
    if not sample.head.startswith(_MAGIC):
        return False
    with sample.path.open("rb") as file:
        file.seek(max(0, file.seek(0, 2) - _FOOTER_BYTES))
        footer = file.read()
    return all(name.encode() in footer for name in _IDS)


def parquet_rows(path: Path) -> Iterator[JsonRecord]:
    """The rows of a Parquet file, numbered from 1. Raises InputError where `pyarrow` is not there, or the file is damaged."""
    try:
        from pyarrow import ArrowInvalid, parquet
    except ImportError as error:
        raise InputError(
            f"{path}: reading Parquet takes pyarrow: install filmroom[parquet], or export the file as JSONL"
        ) from error
    number = 0
    try:
        for batch in parquet.ParquetFile(path).iter_batches(batch_size=_ROWS):
            for row in batch.to_pylist():
                number += 1
                value: Any = {column: _plain(cell) for column, cell in row.items()}
                yield JsonRecord(number, value, repr(value).encode("utf-8", "replace"))
    except (ArrowInvalid, OSError) as error:
        raise InputError(f"{path}: the Parquet file is damaged after {number} rows: {error}") from error


def _nested(cell: JsonValue) -> JsonValue:
    """A cell's value: in CSV lists and objects are spelt as Python would and counts as 5.0; names inside are dotted."""
    if isinstance(cell, str) and _WHOLE.fullmatch(cell):
        return int(cell.partition(".")[0])
    return untangled(decoded(cell)) if isinstance(cell, (list, dict)) or _is_literal(cell) else cell


def _is_literal(cell: JsonValue) -> bool:
    return isinstance(cell, str) and cell[:2] in ("[{", "['", "{'", "[]")


def _plain(cell: Any) -> JsonValue:
    """A cell of Arrow as JSON; what a structure lacks in this row is left out."""
    if isinstance(cell, datetime):
        return cell.isoformat()
    if isinstance(cell, dict):
        return {str(name): _plain(item) for name, item in cell.items() if item is not None}
    if isinstance(cell, list):
        return [_plain(item) for item in cell]
    return clean(cell)
