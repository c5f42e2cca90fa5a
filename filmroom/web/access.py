"""Who may send: this machine alone, or whoever has a token for it."""

import hashlib
import hmac
import ipaddress
import re
import time
from collections.abc import Callable

from starlette.requests import Request

from store.errors import SettingsError
from store.settings import ConsoleSection

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]", "::1")

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


REMEMBERED_S = 5.0
"""So long a stored token is believed without asking the store again; a revoked one works on for that time at most."""

Stored = Callable[[str, str], bool]
"""Whether a token that the console made has this scope."""


class Access:
    """Whether a request may come in. Keeps the SHA-256 of tokens alone."""

    def __init__(self, token: str | None, *, stored: Stored | None = None, beyond: bool = False) -> None:
        self._digest = None if token is None else _digest(token)
        self._stored = stored
        self._beyond = beyond
        self._known: dict[tuple[bytes, str], float] = {}

    @property
    def is_open(self) -> bool:
        """Whether whoever reaches the address may send: there is no token, and it is this machine's alone."""
        return self._digest is None and not self._beyond

    def allows(self, request: Request) -> bool:
        """Whether the request carries the token of the settings, compared in constant time, or one with the scope."""
        if self.is_open:
            return True
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            return False
        hashed = _hashed(given.strip())
        if self._digest is not None and hmac.compare_digest(hashed, self._digest):
            return True
        return self._is_stored(hashed, given.strip(), scope_of(request.url.path))

    def _is_stored(self, hashed: bytes, secret: str, scope: str) -> bool:
        if self._stored is None:
            return False
        now = time.monotonic()
        if self._known.get((hashed, scope), 0.0) > now:
            return True
        if not self._stored(secret, scope):
            return False
        if len(self._known) > 1000:
            self._known.clear()
        self._known[hashed, scope] = now + REMEMBERED_S
        return True


def scope_of(path: str) -> str:
    """The scope that a path of programs takes.

    >>> scope_of("/v1/traces"), scope_of("/v1/feedback"), scope_of("/v1/memory")
    ('ingest', 'feedback', 'release')
    """
    return {"/v1/traces": "ingest", "/v1/feedback": "feedback"}.get(path, "release")


def access_of(console: ConsoleSection, host: str, *, stored: Stored | None = None, users: bool = False) -> Access:
    """The access to a server on `host`; `users`: whether anybody can log in.

    Raises SettingsError where it would be reached from other machines and nobody could log in or show a token.
    """
    beyond = not is_loopback(host)
    if console.token is None and beyond and not users:
        raise SettingsError(
            f"{host} is reached from other machines: make a user first (`filmroom user add NAME --role admin`), "
            "or set FILMROOM_CONSOLE__TOKEN (or `[console] token`), or listen on 127.0.0.1"
        )
    return Access(console.token, stored=stored, beyond=beyond)


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
