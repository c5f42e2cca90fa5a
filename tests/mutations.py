"""Broken versions of log files: cut off, bytes flipped, fields gone, doubled or of another type, nested deep, odd numbers."""

import json
import random
from collections.abc import Callable
from typing import Any

ODD: tuple[Any, ...] = (
    None, True, -1, 0, 1e308, 2**63, 2**70, float("nan"), float("inf"), "", "NaN", "\0", "\ud800", "a" * 5000, [], {}, [None],
    {"": ""}, [[[]]], {"a": {"b": [1, "x"]}}, "2026-13-45T99:99:99", "[1, 2", '{"a": 1}', '"\\"x\\""', -9_999_999_999_999_999,
)  # fmt: skip
"""Values that stand where others should."""


def mutated(data: bytes, chance: random.Random) -> bytes:
    """The file with one to three mutations."""
    for _ in range(chance.randint(1, 3)):
        data = chance.choice(_WAYS)(data, chance)
    return data


def _cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def _flip(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.randint(1, 8) if changed else 0):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    return bytes(changed)


def _repeat(data: bytes, chance: random.Random) -> bytes:
    """A piece of the file stands twice, as a resend leaves it."""
    start, end = sorted(chance.randrange(len(data) + 1) for _ in range(2))
    return data[:end] + data[start : min(end, start + 100_000)] + data[end:]


def _drop(data: bytes, chance: random.Random) -> bytes:
    start, end = sorted(chance.randrange(len(data) + 1) for _ in range(2))
    return data[:start] + data[min(end, start + 200) :]


def _value(data: bytes, chance: random.Random) -> bytes:
    """A field of a JSON file is gone, or has another value; where the file is no JSON, bytes are flipped."""
    for read, written in ((_whole, _as_whole), (_lines, _as_lines)):
        try:
            value = read(data)
        except (ValueError, RecursionError):
            continue
        return written(_altered(value, chance))
    return _flip(data, chance)


def _deep(data: bytes, chance: random.Random) -> bytes:
    levels = chance.choice((50, 150, 5000))
    return data.replace(b"{}", b"[" * levels + b"]" * levels, 1) if b"{}" in data else b"[" * levels + data


def _whole(data: bytes) -> Any:
    return json.loads(data)


def _lines(data: bytes) -> Any:
    return [json.loads(line) for line in data.splitlines() if line.strip()]


def _as_whole(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")


def _as_lines(value: Any) -> bytes:
    lines = value if isinstance(value, list) else [value]
    return b"\n".join(map(_as_whole, lines))


def _altered(value: Any, chance: random.Random) -> Any:
    """Somewhere in the tree, one thing is different."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(list(value))
        if chance.random() < 0.15:
            return {name: item for name, item in value.items() if name != key}
        return {**value, key: _altered(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.9:
        place = chance.randrange(len(value))
        if chance.random() < 0.1:
            return [*value, value[place]]
        return [_altered(item, chance) if at == place else item for at, item in enumerate(value)]
    return chance.choice(ODD)


_WAYS: tuple[Callable[[bytes, random.Random], bytes], ...] = (_cut, _flip, _repeat, _drop, *([_value] * 6), _deep)
