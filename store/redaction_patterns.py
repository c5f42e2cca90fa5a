"""What keys, tokens and personal numbers look like. Each kind: how it is found in a text, and what rules a find out."""

import re
from collections.abc import Callable
from typing import NamedTuple


class Pattern(NamedTuple):
    """One kind of text that is not kept."""

    kind: str
    expression: re.Pattern[str]
    """Its group `value`, where there is one, is what is replaced; else the whole match."""
    holds: Callable[[str], bool] = bool
    """Whether a find is one, by its check digits."""


_KEYS = (
    r"sk-(?=[\w-]*\d)[\w-]{16,}",  # OpenAI, Anthropic, OpenRouter, Langfuse
    r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9]{16,}",  # Stripe
    r"gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{22,}|glpat-[\w-]{16,}",  # GitHub, GitLab
    r"xox[abeoprs]-[A-Za-z0-9-]{12,}|xapp-[A-Za-z0-9-]{12,}",  # Slack
    r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}|AIza[\w-]{30,}|ya29\.[\w-]{20,}",  # AWS, Google
    r"AccountKey=[A-Za-z0-9+/=]{20,}|dapi[a-f0-9]{32}|dop_v1_[a-f0-9]{64}",  # Azure, Databricks, DigitalOcean
    r"hf_[A-Za-z0-9]{20,}|npm_[A-Za-z0-9]{30,}|pypi-[\w-]{20,}|SG\.[\w-]{16,}\.[\w-]{16,}",
    r"lsv2_(?:pt|sk)_\w{16,}|gsk_[A-Za-z0-9]{20,}|xai-[A-Za-z0-9]{20,}|r8_[A-Za-z0-9]{20,}",
    r"pplx-[A-Za-z0-9]{20,}|tvly-[\w-]{16,}|nvapi-[\w-]{20,}",
)
"""What providers say their keys begin with; gitleaks (MIT) keeps a list of them."""

NAMES = (
    r"(?:x[_-]?)?api[_-]?key|access[_-]?key(?:[_-]?id)?|secret(?:[_-]?access)?(?:[_-]?key)?|client[_-]?secret|private[_-]?key"
    r"|(?:access|refresh|auth|id)[_-]?token|password|passwd|passphrase|(?:proxy[_-]?)?authorization|(?:set[_-]?)?cookie"
)
"""Names of fields whose text is a secret, whatever it looks like."""
NAME_HINTS = (b"key", b"secret", b"_token", b"-token", b"passw", b"passphrase", b"authorization", b"cookie")
"""One of these is in each of the names, in lower case."""

KEYS = (
    Pattern(
        "private key",
        re.compile(r'-----BEGIN[A-Z ]*PRIVATE KEY(?: BLOCK)?-----[^"]*?(?:-----END[A-Z ]*-----|(?=")|\Z)'),
    ),
    Pattern("token", re.compile(r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*")),
    Pattern("key", re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(_KEYS)})")),
    Pattern(
        "token",
        re.compile(r"\b(?i:bearer|basic)\s+(?=[^\s\"]*[\d=])(?=[\w.~+/-]*[\w.-]{16})(?P<value>[\w.~+/-]{16,}=*)"),
    ),
    Pattern(
        "secret",
        re.compile(
            rf"(?i:\b(?:{NAMES}))[\"'\\]*\s*[:=]\s*[\"'\\]*(?i:bearer\s+|basic\s+)?(?P<value>(?!\[redacted)[^\s\"'\\,;&{{}}\[\]]{{8,}})"
        ),
    ),
    Pattern("password", re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s/:@\"]+:(?P<value>(?!\[redacted)[^\s/@\"]{3,})@")),
)


def is_card(text: str) -> bool:
    """Luhn's check, ISO/IEC 7812-1, and more than one distinct digit.

    >>> is_card("4111 1111 1111 1111"), is_card("4111 1111 1111 1112")
    (True, False)
    """
    digits = [int(each) for each in text if each.isdigit()]
    doubled = [2 * each - 9 * (each > 4) if place % 2 else each for place, each in enumerate(reversed(digits))]
    return sum(doubled) % 10 == 0 and len(set(digits)) > 1


def is_iban(text: str) -> bool:
    """The check of ISO 13616: modulo 97.

    >>> is_iban("DE89 3704 0044 0532 0130 00"), is_iban("DE88 3704 0044 0532 0130 00")
    (True, False)
    """
    plain = text.replace(" ", "")
    return 15 <= len(plain) <= 34 and int("".join(str(int(each, 36)) for each in plain[4:] + plain[:4])) % 97 == 1


def is_phone(text: str) -> bool:
    """Eight to fifteen digits, ITU-T E.164."""
    return 8 <= sum(each.isdigit() for each in text) <= 15


PERSONAL = {
    "email": Pattern("email", re.compile(r"[\w.%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}")),
    "iban": Pattern(
        "iban", re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?![A-Za-z0-9])"), is_iban
    ),
    "card": Pattern("card", re.compile(r"(?<![\w#.-])\d(?:[ -]?\d){12,18}(?![\w-])"), is_card),
    "phone": Pattern(
        "phone",
        re.compile(
            r"(?<![\w.+-])(?:(?:\+|00)\d{1,3}(?:[ ./-]?\(?\d{1,4}\)?){2,6}|\(?0\d{1,5}\)?(?:[ ./-]\d{2,8}){1,4}"
            r"|\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4})(?![\w-])"
        ),
        is_phone,
    ),
}
"""What is personal, by the name it has in the settings."""
