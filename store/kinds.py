"""How traces, spans and feedback are laid out: the columns that are filtered on, and the body with the rest."""

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from operator import attrgetter
from typing import Any, NamedTuple

from sqlalchemy import Table

from store.bodies import json_bytes, pack
from store.records import AssembledTrace, Feedback, Span, Trace
from store.tables import feedback, spans, traces


@dataclass
class Kind:
    """How one kind of record is laid into its table and its body."""

    name: str
    table: Table
    text: tuple[str, ...]
    """Fields that go to the body."""
    columns: tuple[str, ...] = field(init=False)
    values: Callable[[Any], tuple[Any, ...]] = field(init=False)
    """A record's values in the order of `columns`."""
    texts: Callable[[Any], tuple[Any, ...]] = field(init=False)
    """A record's values in the order of `text`."""

    def __post_init__(self) -> None:
        self.columns = tuple(column.name for column in self.table.columns if column.name not in {"id", "digest"})
        self.values = attrgetter(*self.columns)
        self.texts = attrgetter(*self.text)


KINDS: dict[type, Kind] = {
    Trace: Kind("trace", traces, ("input", "output", "error", "attributes", "held_apart")),
    Span: Kind("span", spans, ("input", "output", "error", "documents", "memories", "attributes")),
    Feedback: Kind("feedback", feedback, ("comment", "corrected_output", "attributes")),
}


def kind_of(record: Any) -> Kind:
    """The kind of a trace, span or feedback."""
    return KINDS[Trace] if isinstance(record, Trace) else KINDS[type(record)]


ORIGIN = "origin"
"""Entry of a body beside the record's own: what it was merged from (`store.merging`); absent: it is as one record said it."""
SPANS = "spans"
"""The origin of a trace that was put together from spans."""


class Row(NamedTuple):
    """One record as it is stored."""

    id: str
    trace_id: str
    values: tuple[Any, ...]
    """In the order of its kind's columns."""
    digest: str
    body: bytes


def lay_out(record: Any, project: str) -> Row:
    """The record's row, in `project`."""
    kind = kind_of(record)
    if record.project != project:
        record = record.model_copy(update={"project": project})
    texts = zip(kind.text, kind.texts(record), strict=True)
    said = {name: value for name, value in texts if value not in (None, {}, ())}
    if isinstance(record, AssembledTrace):
        said[ORIGIN] = SPANS
    id_ = record.id
    return row_of(id_, id_ if kind.table is traces else record.trace_id, kind.values(record), said)


def row_of(id_: str, trace_id: str, values: tuple[Any, ...], texts: dict[str, Any]) -> Row:
    """A row with these columns and this body."""
    body = json_bytes(texts)
    return Row(id_, trace_id, values, digest_of(values, body), pack(body))


def digest_of(values: tuple[Any, ...], body: bytes) -> str:
    """Twenty digits over columns and body: two records with the same one say the same."""
    return blake2b(repr(values).encode("utf-8", "surrogatepass") + body, digest_size=10).hexdigest()
