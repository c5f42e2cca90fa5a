"""Ids: typed prefixes, derived from what a thing is, so that doing a step twice changes nothing."""

import hashlib
import json
from typing import Any


def canonical_json(value: Any) -> str:
    """The one spelling of a JSON value: sorted keys, no spaces, ASCII.

    >>> canonical_json({"b": 1, "a": "ü"})
    '{"a":"\\\\u00fc","b":1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def content_hash(value: Any) -> str:
    """SHA-256 of the canonical JSON of `value`: 64 hexadecimal digits. For versions."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def short_hash(*parts: str) -> str:
    """80 bits over the parts, as 20 hexadecimal digits; parts are length-delimited, so that none can run into the next.

    >>> short_hash("a", "bc") == short_hash("ab", "c")
    False
    """
    pieces: list[bytes] = []
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        pieces += (len(data).to_bytes(8, "big"), data)
    return hashlib.blake2b(b"".join(pieces), digest_size=10).hexdigest()


def derived_id(prefix: str, *parts: str) -> str:
    """An id that follows from its parts: `prefix`, an underscore, 20 hexadecimal digits.

    >>> derived_id("trc", "default", "native", "42").startswith("trc_")
    True
    """
    return f"{prefix}_{short_hash(*parts)}"
