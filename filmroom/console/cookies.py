"""What the browser holds: a signed session, a signed note for the next page, and a token against forged requests."""

import base64
import hashlib
import hmac
import json
import secrets
from typing import Any

SESSION = "filmroom_session"
NOTE = "filmroom_note"


class Signer:
    """Signs with the project's key, each use apart from the others."""

    def __init__(self, key: str) -> None:
        self._key = key.encode("ascii")

    def sign(self, use: str, text: str) -> str:
        """The text with its signature.

        >>> signer = Signer("k" * 32)
        >>> signer.read("session", signer.sign("session", "abc")), signer.read("note", signer.sign("session", "abc"))
        ('abc', None)
        """
        return f"{text}.{self._mac(use, text)}"

    def read(self, use: str, signed: str) -> str | None:
        """The text, where the signature is ours; else None."""
        text, dot, mac = signed.rpartition(".")
        if not dot or not mac.isascii() or not hmac.compare_digest(mac, self._mac(use, text)):
            return None
        return text

    def sign_json(self, use: str, value: Any) -> str:
        data = json.dumps(value, separators=(",", ":")).encode()
        return self.sign(use, base64.urlsafe_b64encode(data).decode("ascii").rstrip("="))

    def read_json(self, use: str, signed: str) -> Any:
        text = self.read(use, signed)
        if text is None:
            return None
        return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))

    def csrf_token(self, session: str) -> str:
        """A token for the forms of this session, masked anew each time, so that compression gives nothing away."""
        token = self._csrf(session)
        mask = secrets.token_bytes(len(token))
        return (mask + _xor(mask, token)).hex()

    def is_csrf_token(self, session: str, given: str) -> bool:
        try:
            data = bytes.fromhex(given)
        except ValueError:
            return False
        token = self._csrf(session)
        if len(data) != 2 * len(token):
            return False
        return hmac.compare_digest(_xor(data[: len(token)], data[len(token) :]), token)

    def _csrf(self, session: str) -> bytes:
        return hmac.digest(self._key, f"csrf:{session}".encode(), hashlib.sha256)

    def _mac(self, use: str, text: str) -> str:
        return hmac.new(self._key, f"{use}:{text}".encode("utf-8", "replace"), hashlib.sha256).hexdigest()


def _xor(first: bytes, second: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(first, second, strict=True))
