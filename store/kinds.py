"""How traces, spans and feedback are laid out: the columns that are filtered on, and the body with the rest."""

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from operator import attrgetter
from typing import Any, NamedTuple

from sqlalchemy import Table

from store.bodies import json_bytes, pack
from store.records import AssembledTrace, Feedback, Span, Trace
from store.redaction import Redactor, redacted_json
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
_PERSONAL = ("name", "session", "user", "tenant", "principal", "label")
"""Columns that may name a person."""
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


def lay_out(record: Any, project: str, redactor: Redactor) -> tuple[Row, int]:
    """The record's row in `project`, and how many texts in it were redacted."""
    kind = kind_of(record)
    if record.project != project:
        record = record.model_copy(update={"project": project})
    said: dict[str, Any] = {}
    for name, value in zip(kind.text, kind.texts(record), strict=True):
        if value or value not in (None, {}, ()):
            said[name] = value
    if isinstance(record, AssembledTrace):
        said[ORIGIN] = SPANS
    body, redacted = redacted_json(redactor, said)
    values = kind.values(record)
    if redactor.is_personal:
        values, more = _redacted_values(kind, values, redactor)
        redacted += more
    id_ = record.id
    trace_id = id_ if kind.table is traces else record.trace_id
    return Row(id_, trace_id, values, digest_of(values, body), pack(body)), redacted


def _redacted_values(kind: Kind, values: tuple[Any, ...], redactor: Redactor) -> tuple[tuple[Any, ...], int]:
    """Names of people are redacted like texts are, so that what belongs to one user still does."""
    found = 0
    kept = list(values)
    for place, name in enumerate(kind.columns):
        if name in _PERSONAL and kept[place] is not None:
            kept[place], count = redactor.text(kept[place])
            found += count
    return tuple(kept), found


def row_of(id_: str, trace_id: str, values: tuple[Any, ...], texts: dict[str, Any]) -> Row:
    """A row with these columns and this body."""
    body = json_bytes(texts)
    return Row(id_, trace_id, values, digest_of(values, body), pack(body))


def digest_of(values: tuple[Any, ...], body: bytes) -> str:
    """Twenty digits over columns and body: two records with the same one say the same."""
    return blake2b(json_bytes(values) + body, digest_size=10).hexdigest()
