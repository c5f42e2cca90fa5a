"""Passwords, hashed by scrypt (RFC 7914) with a salt of their own; the cost stands in the hash."""

import base64
import hashlib
import hmac
import secrets

from store.errors import NotAllowed

SHORTEST = 10
LONGEST = 1024
_LOG_N, _R, _P = 15, 8, 1
"""32 MiB and about a tenth of a second each."""


def hash_password(password: str) -> str:
    """`scrypt$LOG_N$R$P$SALT$HASH`. Raises NotAllowed for one that is too short or too long."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise NotAllowed(f"a password has {SHORTEST} to {LONGEST} characters")
    salt = secrets.token_bytes(16)
    return f"scrypt${_LOG_N}${_R}${_P}${_text(salt)}${_text(_derived(password, salt, _LOG_N, _R, _P))}"


def is_password(password: str, stored: str | None) -> bool:
    """Whether it is the password; takes as long where there is none, so that names cannot be found out by the clock."""
    if stored is None or len(password) > LONGEST:
        _derived("", b"0" * 16, _LOG_N, _R, _P)
        return False
    _, log_n, r, p, salt, expected = stored.split("$")
    given = _derived(password, base64.b64decode(salt), int(log_n), int(r), int(p))
    return hmac.compare_digest(_text(given), expected)


def _derived(password: str, salt: bytes, log_n: int, r: int, p: int) -> bytes:
    n = 1 << log_n
    data = password.encode("utf-8", "surrogatepass")
    return hashlib.scrypt(data, salt=salt, n=n, r=r, p=p, maxmem=256 * n * r, dklen=32)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
