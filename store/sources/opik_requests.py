"""Requests of Opik's SDK recorded as files, whose names carry the address: an update says there what it is of."""

import re
from pathlib import Path
from typing import NamedTuple

from store.addresses import of_span
from store.errors import InputError
from store.sources.contract import BadRecord
from store.sources.fields import as_id
from store.sources.files import read_head
from store.sources.payload import Object, list_of, object_of
from store.sources.sanitise import parse_json

_NAME = re.compile(
    r"(?P<method>POST|PATCH|PUT)_.*?(?P<of>spans|traces)_?(?P<rest>batch|feedback-scores|[0-9a-fA-F-]{36})?\.json$"
)
_LARGEST = 64 * 1024 * 1024


class Address(NamedTuple):
    """What a file's name says of the request in it."""

    method: str
    of: str
    """`spans` or `traces`."""
    id: str | None
    """Of an update: what it is of."""


def address_of(path: Path) -> Address | None:
    """The address in a file's name; None: it carries none.

    >>> address_of(Path("0041_POST_api_v1_private_spans_batch.json"))
    Address(method='POST', of='spans', id=None)
    """
    found = _NAME.search(path.name)
    if found is None:
        return None
    rest = found["rest"] or ""
    return Address(found["method"], found["of"], rest if len(rest) == 36 else None)


class Recorded:
    """The other recorded requests of a file's folder; empty for a file whose name is no address."""

    def __init__(self, path: Path) -> None:
        self._own = address_of(path)
        self._updates: dict[str, Object] = {}
        self._traces: dict[str, str] = {}
        """Span to its trace."""
        self._made: set[str] = set()
        """What some file of the folder creates."""
        if self._own is not None:
            self._look(path)

    def joined(self, value: Object) -> Object | None:
        """The object with what its updates say, or with what it is of; None: another file of the folder has it."""
        if self._own is None:
            return value
        if self._own.method == "PATCH":
            return None if self._own.id in self._made else {**value, "id": self._own.id}
        id_ = as_id(value.get("id")) or ""
        if self._own.method == "PUT":
            return self._with_trace(value, id_) if self._own.of == "spans" else value
        return {**value, **self._updates.get(id_, {})}

    def _with_trace(self, score: Object, span: str) -> Object:
        return {**score, "trace_id": self._traces.get(span) or of_span(span), "span_id": span}

    def _look(self, path: Path) -> None:
        for file in sorted(path.parent.iterdir()):
            address = address_of(file)
            if address is None or address.method == "PUT":
                continue
            value = _object(file)
            if address.id is not None:
                said = {key: item for key, item in value.items() if item is not None}
                self._updates[address.id] = {**self._updates.get(address.id, {}), **said}
                continue
            for item in list_of(value.get(address.of)):
                self._note(object_of(item), address.of)

    def _note(self, made: Object, of: str) -> None:
        """Remember what is created; what has no proper id is rejected where its file is read."""
        id_, trace = made.get("id"), made.get("trace_id")
        if isinstance(id_, str):
            self._made.add(id_)
            if of == "spans" and isinstance(trace, str):
                self._traces[id_] = trace


def _object(file: Path) -> Object:
    try:
        value = parse_json(read_head(file, _LARGEST))
    except (BadRecord, InputError):
        return {}
    return value if isinstance(value, dict) else {}
