"""Text of people, one row an owner: the only table that erasure changes."""

import json
import zlib
from collections.abc import Iterable
from typing import Any

import orjson
from sqlalchemy import Connection, bindparam, delete, select

from store.database import insert_or_ignore, upsert
from store.tables import bodies

COMPRESS_FROM = 512
"""Bytes; below it compression costs more than it saves."""

PLAIN, DEFLATED = b"j", b"z"


def encode(value: Any) -> bytes:
    """JSON bytes with one leading byte for the codec."""
    try:
        data = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except (TypeError, orjson.JSONEncodeError):
        data = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    if len(data) < COMPRESS_FROM:
        return PLAIN + data
    return DEFLATED + zlib.compress(data, 1)


def decode(data: bytes) -> Any:
    """The value that `encode` was given.

    >>> decode(encode({"a": [1, None]}))
    {'a': [1, None]}
    """
    plain = zlib.decompress(data[1:]) if data[:1] == DEFLATED else data[1:]
    try:
        return orjson.loads(plain)
    except orjson.JSONDecodeError:
        return json.loads(plain)


def put_body(connection: Connection, project: str, owner: str, value: Any) -> None:
    """Store `value` as the body of `owner`, in place of an earlier one."""
    upsert(connection, bodies, {"id": owner, "project": project, "data": encode(value)})


def put_new_bodies(connection: Connection, project: str, values: dict[str, Any]) -> None:
    """Store the bodies of owners that have none yet."""
    rows = [{"id": owner, "project": project, "data": encode(value)} for owner, value in values.items()]
    insert_or_ignore(connection, bodies, rows)


def bodies_of(connection: Connection, owners: Iterable[str]) -> dict[str, Any]:
    """The bodies of those owners that have one."""
    found: dict[str, Any] = {}
    statement = select(bodies.c.id, bodies.c.data).where(bodies.c.id.in_(bindparam("ids", expanding=True)))
    for part in in_parts(list(owners)):
        found.update({row.id: decode(row.data) for row in connection.execute(statement, {"ids": part})})
    return found


def body_of(connection: Connection, owner: str) -> Any:
    """The body of one owner; None: it has none."""
    return bodies_of(connection, [owner]).get(owner)


def drop_bodies(connection: Connection, owners: Iterable[str]) -> None:
    """Remove the bodies of these owners."""
    for part in in_parts(list(owners)):
        connection.execute(delete(bodies).where(bodies.c.id.in_(part)))


def in_parts(values: list[str], size: int = 5000) -> Iterable[list[str]]:
    """The values in lists short enough for one statement.

    >>> list(in_parts(["a", "b", "c"], 2))
    [['a', 'b'], ['c']]
    """
    return (values[start : start + size] for start in range(0, len(values), size))
