"""How traces, spans and feedback are laid out: the columns that are filtered on, and the body with the rest."""

from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from operator import attrgetter
from typing import Any, NamedTuple

from sqlalchemy import Table

from store.bodies import json_bytes, pack
from store.records import Feedback, Span, Trace
from store.tables import feedback, spans, traces


@dataclass
class Kind:
    """How one kind of record is laid into its table and its body."""

    name: str
    table: Table
    text: tuple[str, ...]
    """Fields that go to the body."""
    revised_by: str | None = None
    """The time that says which of two records with one id is the later; None: the one that arrives later."""
    columns: tuple[str, ...] = field(init=False)
    values: Callable[[Any], tuple[Any, ...]] = field(init=False)
    """A record's values in the order of `columns`."""
    texts: Callable[[Any], tuple[Any, ...]] = field(init=False)
    """A record's values in the order of `text`."""

    def is_outdated(self, values: tuple[Any, ...], known_us: int | None) -> bool:
        """Whether these values are older than what is known, whose time is `known_us`.

        A span that is still open is older than one that has ended; feedback without a time is taken as it comes.
        """
        if self.revised_by is None or known_us is None:
            return False
        said_us = values[self.columns.index(self.revised_by)]
        return said_us < known_us if said_us is not None else self.table is spans

    def __post_init__(self) -> None:
        self.columns = tuple(column.name for column in self.table.columns if column.name not in {"id", "digest"})
        self.values = attrgetter(*self.columns)
        self.texts = attrgetter(*self.text)


KINDS: dict[type, Kind] = {
    Trace: Kind("trace", traces, ("input", "output", "error", "attributes", "held_apart")),
    Span: Kind(
        "span", spans, ("input", "output", "error", "documents", "memories", "attributes"), revised_by="ended_us"
    ),
    Feedback: Kind("feedback", feedback, ("comment", "corrected_output", "attributes"), revised_by="given_us"),
}


def kind_of(record: Any) -> Kind:
    """The kind of a trace, span or feedback."""
    return KINDS[Trace] if isinstance(record, Trace) else KINDS[type(record)]


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
    values = kind.values(record)
    texts = zip(kind.text, kind.texts(record), strict=True)
    body = json_bytes({name: value for name, value in texts if value not in (None, {}, ())})
    digest = blake2b(repr(values).encode("utf-8", "surrogatepass") + body, digest_size=10).hexdigest()
    id_ = record.id
    return Row(id_, id_ if kind.table is traces else record.trace_id, values, digest, pack(body))
