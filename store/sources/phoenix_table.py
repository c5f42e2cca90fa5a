"""Phoenix's dataframe of spans, saved as CSV, JSONL or Parquet: a row a span, lists nested, times as pandas wrote them."""

import re
from zoneinfo import ZoneInfo

from pydantic import JsonValue

from store.sources.contract import Sample
from store.sources.indexed import untangled
from store.sources.otel import RawSpan
from store.sources.otlp_json import printed_span
from store.sources.parquet import has_columns
from store.sources.payload import decoded

Object = dict[str, JsonValue]

_ATTRIBUTES = "attributes."
_IDS = {"context.span_id", "context.trace_id"}
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
    """Whether it is such a dataframe as Parquet."""
    return has_columns(sample, _IDS)


def _nested(cell: JsonValue) -> JsonValue:
    """A cell's value: in CSV lists and objects are spelt as Python would and counts as 5.0; names inside are dotted."""
    if isinstance(cell, str) and _WHOLE.fullmatch(cell):
        return int(cell.partition(".")[0])
    return untangled(decoded(cell)) if isinstance(cell, (list, dict)) or _is_literal(cell) else cell


def _is_literal(cell: JsonValue) -> bool:
    return isinstance(cell, str) and cell[:2] in ("[{", "['", "{'", "[]")
