"""Text of people, one row an owner: the only table that erasure changes."""

import json
import sys
import zlib
from collections.abc import Iterable
from typing import Any

import orjson
from sqlalchemy import Connection, bindparam, delete, select

from store.database import insert_or_ignore, upsert
from store.tables import bodies

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

COMPRESS_FROM = 512
"""Bytes; below it compression costs more than it saves."""

PLAIN, DEFLATED, ZSTANDARD = b"j", b"z", b"s"

_COMPRESSOR = zstd.ZstdCompressor(level=1)
"""Kept, since making one costs more than compressing a body; zlib takes three times as long for the same size."""


def encode(value: Any) -> bytes:
    """JSON bytes with one leading byte for the codec."""
    return pack(json_bytes(value))


def json_bytes(value: Any) -> bytes:
    """The value as JSON with sorted keys."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except (TypeError, orjson.JSONEncodeError):
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def pack(data: bytes) -> bytes:
    """JSON bytes as they are stored: one leading byte for the codec, compressed where it is worth it."""
    if len(data) < COMPRESS_FROM:
        return PLAIN + data
    return ZSTANDARD + _COMPRESSOR.compress(data, zstd.ZstdCompressor.FLUSH_FRAME)


def decode(data: bytes) -> Any:
    """The value that `encode` was given.

    >>> decode(encode({"a": [1, None]}))
    {'a': [1, None]}
    """
    plain = _unpacked(data[:1], data[1:])
    try:
        return orjson.loads(plain)
    except orjson.JSONDecodeError:
        return json.loads(plain)


def _unpacked(codec: bytes, data: bytes) -> bytes:
    if codec == ZSTANDARD:
        return zstd.decompress(data)
    return zlib.decompress(data) if codec == DEFLATED else data


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
