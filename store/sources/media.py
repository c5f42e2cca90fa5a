"""Images, sound and ciphertext anywhere in a record, kept as their digest and size.

The same picture often stands in a record twice and is of no use to any step; its digest still tells equal from different.
"""

import base64
import binascii
import hashlib
import re

from pydantic import JsonValue

_DATA_URI = re.compile(r"data:([\w.+/\\-]{0,100}?)(?:;[\w=.-]{1,60}){0,4};base64,([A-Za-z0-9+/_\\-]{48,})={0,2}")
_LONG = 256
_BLOB_KEYS = frozenset(
    ("data", "signature", "thoughtSignature", "thought_signature", "encrypted_content", "b64_json", "base64")
)
"""Fields of OpenAI, Anthropic and Gemini that hold base64."""
_MARKS = (b";base64,", b"ignature", b'"data"', b"encrypted_content", b"b64_json", b'"base64"')


def may_hold_media(data: bytes) -> bool:
    """Whether it is worth looking for media in a record, by its bytes."""
    return any(mark in data for mark in _MARKS)


def shortened(value: JsonValue) -> JsonValue:
    """The value with every data: URI and every long blob in a known field as its digest and size in bytes.

    >>> shortened({"url": "data:image/png;base64," + "iVBORw0KGgoA" * 8})
    {'url': 'data:image/png;sha256=fa7d76f3d03ed2ef;bytes=72'}
    """
    if isinstance(value, str):
        return without_blobs(value)
    if isinstance(value, list):
        return [shortened(item) for item in value]
    if isinstance(value, dict):
        return {key: _field(key, item) for key, item in value.items()}
    return value


def without_blobs(text: str) -> str:
    """`text` with every base64 `data:` URI as its media type, SHA-256 (16 digits) and size in bytes.

    >>> without_blobs("see data:image/png;base64," + "AAAA" * 20 + " here")
    'see data:image/png;sha256=5dcc1b5872dd9ff1;bytes=60 here'
    """
    if "base64," not in text:
        return text
    return _DATA_URI.sub(lambda found: _digest(found.group(1), found.group(2)), text)


def blob_digest(data: str) -> str:
    """What stands for a blob that is its own value: signatures, redacted thinking, inline media; short texts stay.

    >>> blob_digest("abc"), blob_digest("QUFB" * 100)
    ('abc', 'data:;sha256=4daeb9ac8be20328;bytes=300')
    """
    return data if len(data) <= _LONG else _digest("", data)


def _field(key: str, value: JsonValue) -> JsonValue:
    if key in _BLOB_KEYS and isinstance(value, str) and " " not in value:
        return blob_digest(value)
    return shortened(value)


def _digest(media: str, encoded: str) -> str:
    plain = encoded.replace("\\/", "/").rstrip("\\").replace("-", "+").replace("_", "/").rstrip("=")
    try:
        data = base64.b64decode(plain + "=" * (-len(plain) % 4))
    except (binascii.Error, ValueError):
        data = encoded.encode()
    return f"data:{media};sha256={hashlib.sha256(data).hexdigest()[:16]};bytes={len(data)}"
