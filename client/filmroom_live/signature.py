"""The signature of a document: HMAC-SHA256 over its canonical JSON. `filmroom/signature.py` is a link to this file."""

import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

FIELD = "signature"


def canonical(document: Mapping[str, Any]) -> bytes:
    """The document without its signature: JSON with sorted keys, no blanks, ASCII only.

    >>> canonical({"b": 1, "a": "é", "signature": "x"})
    b'{"a":"\\\\u00e9","b":1}'
    """
    bare = {name: value for name, value in document.items() if name != FIELD}
    return json.dumps(bare, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def signed(document: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The document with its signature by `key`."""
    return {**document, FIELD: _signature(document, key)}


def is_signed(document: Mapping[str, Any], key: str) -> bool:
    """Whether the signature is that of `key`, compared in constant time.

    >>> is_signed(signed({"a": 1}, "key"), "key"), is_signed({**signed({"a": 1}, "key"), "a": 2}, "key"), is_signed({}, "key")
    (True, False, False)
    """
    given = document.get(FIELD)
    return isinstance(given, str) and hmac.compare_digest(given.encode(), _signature(document, key).encode())


def _signature(document: Mapping[str, Any], key: str) -> str:
    return "hmac-sha256:" + hmac.new(key.strip().encode(), canonical(document), hashlib.sha256).hexdigest()
