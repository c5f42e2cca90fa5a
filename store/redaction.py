"""Redaction at the door: keys and tokens, and what is personal where the settings say so, never reach the store.

The same text becomes the same placeholder, so that what repeats can still be seen to repeat. The digest in it is keyed, since
a plain digest of a telephone number is found by trying them all.
"""

import hashlib
import re
import secrets
from collections.abc import Iterable, Mapping
from typing import Any

from store.bodies import body_of, json_bytes, put_new_bodies
from store.database import Store
from store.redaction_patterns import KEYS, NAME_HINTS, NAMES, PERSONAL, Pattern
from store.settings import PolicySection

_NAMED = re.compile(rf"(?i:{NAMES})")
_PLACEHOLDER = "[redacted "
_TOKEN_BYTES = bytes(120 if (chr(each).isalnum() and each < 128) or each in b"_-." else 32 for each in range(256))
_LONG = b"x" * 16
"""Every key has so many token characters in a row: what has not is not looked at further."""
_DIGITS = re.compile(rb"\d(?:[ ./()-]{0,2}\d){7}|[A-Z]{2}\d{2} ?[A-Z0-9]{4}")


class Redactor:
    """Replaces what must not be kept in the texts of a JSON value. Redacting twice changes nothing."""

    def __init__(
        self, kinds: Iterable[str] = ("keys",), patterns: Mapping[str, str] | None = None, *, key: str = ""
    ) -> None:
        wanted = tuple(kinds)
        self._keys = "keys" in wanted
        self._own = tuple(Pattern(kind, re.compile(expression)) for kind, expression in (patterns or {}).items())
        self._personal = tuple(pattern for kind, pattern in PERSONAL.items() if kind in wanted)
        self._patterns = (KEYS if self._keys else ()) + self._personal + self._own
        self._key = key.encode()

    @property
    def is_personal(self) -> bool:
        """Whether it looks for more than keys: then names of users are looked at too."""
        return bool(self._personal or self._own)

    def suspects(self, data: bytes, fields: int) -> bool:
        """Whether the JSON of an object with so many fields may hold something to redact; quick, and never wrong in saying no."""
        if self._own or (self._personal and (b"@" in data or _DIGITS.search(data))):
            return True
        if not self._keys:
            return False
        if _LONG in data.translate(_TOKEN_BYTES) or (b"://" in data and b"@" in data):
            return True
        if data.count(b":") <= fields and b"=" not in data:
            return False
        lowered = data.lower()
        return any(hint in lowered for hint in NAME_HINTS)

    def clean(self, value: Any) -> tuple[Any, int]:
        """The value with placeholders, and how many were put in; its shape is kept."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return self._object(value)
        if isinstance(value, (list, tuple)):
            parts = [self.clean(item) for item in value]
            return [part for part, _ in parts], sum(count for _, count in parts)
        if isinstance(value, int) and not isinstance(value, bool) and self._personal:
            text, count = self.text(str(value))
            return (text, count) if count else (value, 0)
        return value, 0

    def text(self, text: str) -> tuple[str, int]:
        """The text with placeholders, and how many were put in.

        >>> Redactor().text("use sk-proj-abcdefgh12345678 then")[0].startswith("use [redacted key ")
        True
        >>> Redactor(("email", "card")).text("a@example.org, 4111111111111111")[1]
        2
        """
        found = 0
        for pattern in self._patterns:
            text, count = self._replaced(pattern, text)
            found += count
        return text, found

    def _object(self, value: dict[str, Any]) -> tuple[dict[str, Any], int]:
        kept, found = {}, 0
        for name, item in value.items():
            part: Any
            if self._keys and isinstance(item, str) and item and _NAMED.fullmatch(name):
                count = int(not item.startswith(_PLACEHOLDER))
                part = self._placeholder("secret", item) if count else item
            else:
                part, count = self.clean(item)
            kept[name], found = part, found + count
        return kept, found

    def _replaced(self, pattern: Pattern, text: str) -> tuple[str, int]:
        found = 0

        def replace(match: re.Match[str]) -> str:
            nonlocal found
            group = "value" if "value" in match.re.groupindex else 0
            value = match[group]
            if not value or not pattern.holds(value) or value.startswith(_PLACEHOLDER):
                return match[0]
            found += 1
            start, end = (each - match.start() for each in match.span(group))
            return match[0][:start] + self._placeholder(pattern.kind, value) + match[0][end:]

        return pattern.expression.sub(replace, text), found

    def _placeholder(self, kind: str, value: str) -> str:
        digest = hashlib.blake2b(value.encode("utf-8", "replace"), key=self._key, digest_size=4).hexdigest()
        return f"{_PLACEHOLDER}{kind} {digest}]"


KEYS_ALONE = Redactor()
"""What is redacted where nothing else is said."""
NOTHING = Redactor(())


def redacted_raw(redactor: Redactor, raw: str) -> tuple[str, int]:
    """A piece for the quarantine without what must not be kept."""
    if not redactor.suspects(raw.encode("utf-8", "replace"), 0):
        return raw, 0
    return redactor.text(raw)


def redactor_for(store: Store, policy: PolicySection) -> Redactor:
    """The redactor of a project: its kinds and patterns, and its own key, made where there is none."""
    if not policy.redact and not policy.redact_patterns:
        return NOTHING
    return Redactor(policy.redact, policy.redact_patterns, key=_key(store))


def _key(store: Store) -> str:
    owner = f"redaction key {store.project}"
    with store.read() as connection:
        known = body_of(connection, owner)
    if known is None:
        with store.write() as connection:
            put_new_bodies(connection, store.project, {owner: secrets.token_hex(32)})
            known = body_of(connection, owner)
    return str(known)


def redacted_json(redactor: Redactor, texts: dict[str, Any]) -> tuple[bytes, int]:
    """The texts of a record as JSON, without what must not be kept, and how many placeholders were put in."""
    data = json_bytes(texts)
    if not redactor.suspects(data, len(texts)):
        return data, 0
    cleaned, count = redactor.clean(texts)
    return (json_bytes(cleaned), count) if count else (data, 0)
