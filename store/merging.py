"""Two records with one id become one, in whatever order and however often they come.

A field of a trace or span is what the later record that says it says: the one that ended later, else started later, else
says more; what it does not say stands as an earlier one said it, so that an old export never takes anything away. What was
put together from spans gives way to what a log says of the trace itself. Of feedback one record stands as a whole, since a
revised verdict must not keep the reason of the one before: the later given one; without times the later revision of its file,
else the one that says more, else the one with the greater digest, so that no order of reading decides.
"""

from functools import partial
from typing import Any

from store.bodies import decode, json_bytes
from store.kinds import ORIGIN, SPANS, Kind, Row, digest_of, row_of
from store.revisions import revision_of
from store.tables import feedback

Key = list[Any]
"""Orders records: end, start (-1: not said), fields, bytes, digest. Empty: put together from spans."""
State = dict[str, tuple[Key, Any]]
"""What is known: field to the key of the record that says it, and what it says. `attributes.x` is a field of its own."""

_IDENTITY = frozenset({"project", "source", "trace_id", "trace_external_id", "external_id"})
_BY_KEY = ("attributes", "held_apart")
_UNSAID: dict[str, Any] = {"status": "unset", "kind": "other", "position": 0, "started_ns": 0}


def merged(kind: Kind, known: Row, incoming: Row) -> Row:
    """The row of what both say. `known` itself where `incoming` says nothing that is new."""
    if kind.table is feedback:
        return _later(kind, known, incoming)
    before, after = _state(kind, known), _state(kind, incoming)
    if any(not key for key, _ in after.values()):
        before = {name: said for name, said in before.items() if said[0]}
    for name, said in before.items():
        if name not in after or after[name][0] < said[0]:
            after[name] = said
    row = _row(kind, incoming, after)
    return known if row.digest == known.digest else row


def _state(kind: Kind, row: Row) -> State:
    texts = decode(row.body) if row.body else {}
    origin = texts.pop(ORIGIN, None)
    said = _said(kind, row.values, texts)
    if origin == SPANS:
        return {name: (_value_key(value) if _is_apart(name) else [], value) for name, value in said.items()}
    if origin is None:
        own = _key(said, len(json_bytes(texts)), row.digest)
        return {name: (own, value) for name, value in said.items()}
    fields, key = origin["fields"], origin["key"]
    return {name: (fields.get(name, key), value) for name, value in said.items()}


def _said(kind: Kind, values: tuple[Any, ...], texts: dict[str, Any]) -> dict[str, Any]:
    """What a record says, without what stands for not saying it."""
    said = {
        name: value
        for name, value in zip(kind.columns, values, strict=True)
        if value is not None and name not in _IDENTITY and _UNSAID.get(name, _IDENTITY) != value
    }
    rest = said.pop("started_ns", 0)
    if "started_us" in said:
        said["started_us"] = [said["started_us"], rest]
    for name, text in texts.items():
        if name in _BY_KEY:
            said |= {f"{name}.{key}": value for key, value in text.items()}
        else:
            said[name] = text
    return said


def _key(said: dict[str, Any], size: int, digest: str) -> Key:
    return [said.get("ended_us", -1), said.get("started_us", [-1])[0], len(said), size, digest]


def _value_key(value: Any) -> Key:
    """Of evaluation data beside spans: they say nothing of when."""
    data = json_bytes(value)
    return [-1, -1, 0, len(data), data.decode()]


def _is_apart(name: str) -> bool:
    return name.startswith("held_apart.")


def _row(kind: Kind, like: Row, state: State) -> Row:
    """The row of a state, with the identity of `like`. Of one record it is that record's row."""
    said = {name: value for name, (_, value) in state.items()}
    us, ns = said.pop("started_us", (None, 0))
    found = {**_UNSAID, **said, "started_us": us, "started_ns": ns}
    values = tuple(
        value if name in _IDENTITY else found.get(name) for name, value in zip(kind.columns, like.values, strict=True)
    )
    texts: dict[str, Any] = {name: said[name] for name in kind.text if name in said}
    for name in _BY_KEY:
        inner = {key.partition(".")[2]: value for key, value in said.items() if key.startswith(name + ".")}
        texts |= {name: inner} if inner else {}
    origin = _origin(state)
    return row_of(like.id, like.trace_id, values, texts if origin is None else {**texts, ORIGIN: origin})


def _origin(state: State) -> Any:
    """What must be remembered of where the fields are from; None: all are one record's."""
    if all(key == (_value_key(value) if _is_apart(name) else []) for name, (key, value) in state.items()):
        return SPANS
    latest = max((key for key, _ in state.values()), default=[])
    fields = {name: key for name, (key, _) in state.items() if key != latest}
    return {"key": latest, "fields": fields} if fields else None


def _later(kind: Kind, known: Row, incoming: Row) -> Row:
    """Of two records of one feedback the later one, as a whole."""
    return max(known, incoming, key=partial(_feedback_key, kind.columns.index("given_us")))


def _feedback_key(given: int, row: Row) -> tuple[int, int, int, int, str]:
    """Orders records of one feedback: time (-1: not said), revision, fields, bytes, digest."""
    texts = decode(row.body) if row.body else {}
    texts.pop(ORIGIN, None)
    body = json_bytes(texts)
    moment = row.values[given] if row.values[given] is not None else -1
    said = sum(value is not None for value in row.values)
    return moment, revision_of(texts.get("attributes")), said, len(body), digest_of(row.values, body)
