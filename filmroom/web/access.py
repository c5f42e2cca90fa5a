"""Who may send: this machine alone, or whoever has the token."""

import hashlib
import hmac
import ipaddress
import re

from starlette.requests import Request

from store.errors import SettingsError
from store.settings import ConsoleSection

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]", "::1")

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class Access:
    """Whether a request may come in. Keeps the token's SHA-256 alone."""

    def __init__(self, token: str | None) -> None:
        self._digest = None if token is None else _digest(token)

    @property
    def is_open(self) -> bool:
        """Whether there is no token: whoever reaches the address may send."""
        return self._digest is None

    def allows(self, request: Request) -> bool:
        """Whether the request carries the token, compared in constant time."""
        if self._digest is None:
            return True
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(_hashed(given.strip()), self._digest)


def access_of(console: ConsoleSection, host: str) -> Access:
    """The access to a server on `host`. Raises SettingsError where it would be open beyond this machine."""
    if console.token is None and not is_loopback(host):
        raise SettingsError(
            f"{host} is reached from other machines: set FILMROOM_CONSOLE__TOKEN (or `[console] token`) first, "
            "or listen on 127.0.0.1"
        )
    return Access(console.token)


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this machine alone.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0"), is_loopback("example.org")
    (True, True, False, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _digest(token: str) -> bytes:
    if not token.strip():
        raise SettingsError("[console] token is empty: write one, for example 32 random letters, or leave it out")
    if token.startswith("sha256:"):
        if not _DIGEST.fullmatch(token):
            raise SettingsError("[console] token: after `sha256:` come the 64 hexadecimal digits of its SHA-256")
        return bytes.fromhex(token.removeprefix("sha256:"))
    return _hashed(token)


def _hashed(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()
