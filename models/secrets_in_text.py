"""Keys, passwords and numbers of cards in a text: what must never be remembered."""

import re

_PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("a private key", re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY")),
    (
        "an access key",
        re.compile(
            r"\b(?:sk|pk|rk)[-_](?:live|test|proj|ant|or|lf)?[-_]?[A-Za-z0-9_-]{16,}|\bAKIA[0-9A-Z]{16}\b"
            r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bxox[abpr]-[A-Za-z0-9-]{10,}|\bAIza[A-Za-z0-9_-]{30,}|\bglpat-[\w-]{16,}"
            r"|\bhf_[A-Za-z0-9]{20,}"
        ),
    ),
    ("a signed token", re.compile(r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}")),
    (
        "a password",
        re.compile(
            r"\b(?:password|passwort|passphrase|mot de passe|contraseña|api[ _-]?key|secret|pin|cvv|cvc|otp)\b"
            r"[\"']?\s*(?:is|ist|est|es|=|:)\s*[\"']?\S{3,}",
            re.IGNORECASE,
        ),
    ),
    ("a password in an address", re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s/:@]+:[^\s/@]+@", re.IGNORECASE)),
)
_NAMES = re.compile(
    r"(?:^|[\W_])(?:password|passwd|passphrase|passcode|api_?key|access_?key|secret|token|pin|cvv|cvc|otp)(?:$|[\W_])",
    re.IGNORECASE,
)
_CARD = re.compile(r"(?<![\w#-])\d(?:[ -]?\d){12,18}(?![\w-])")
_READ_LIMIT = 100_000
"""Characters that are looked at."""


def secret_in(text: str) -> str | None:
    """What kind of secret stands in the text; None: none that is known.

    >>> secret_in("my password is hunter2"), secret_in("pay with 4111 1111 1111 1111"), secret_in("order 4111111111111112")
    ('a password', 'the number of a card', None)
    """
    read = text[:_READ_LIMIT]
    for kind, pattern in _PATTERNS:
        if pattern.search(read):
            return kind
    if any(_is_card(found[0]) for found in _CARD.finditer(read)):
        return "the number of a card"
    return None


def names_a_secret(name: str) -> bool:
    """Whether a field of this name would hold one.

    >>> names_a_secret("api_key"), names_a_secret("pickup_shop")
    (True, False)
    """
    return _NAMES.search(name) is not None


def _is_card(text: str) -> bool:
    """Luhn's check, ISO/IEC 7812-1, and more than one distinct digit."""
    digits = [int(each) for each in text if each.isdigit()]
    doubled = [2 * each - 9 * (each > 4) if place % 2 else each for place, each in enumerate(reversed(digits))]
    return sum(doubled) % 10 == 0 and len(set(digits)) > 1
