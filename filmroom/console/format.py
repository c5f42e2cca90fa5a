"""How values are shown: moments, spans of time, shares, ids, JSON."""

import json
import re
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup, escape

PAGES = {
    "trc": "/traces/{}",
    "fail": "/go/{}",
    "spn": "/go/{}",
    "fbk": "/go/{}",
    "clu": "/clusters/{}",
    "cor": "/review/{}",
    "rte": "/go/{}",
    "rev": "/go/{}",
    "opi": "/go/{}",
    "chg": "/changes/{}",
    "ver": "/versions/{}",
    "rel": "/releases/{}",
    "ret": "/retrains/{}",
    "hld": "/go/{}",
    "rpl": "/go/{}",
    "rtr": "/why/{}",
    "run": "/why/{}",
    "rule": "/why/{}",
    "ex": "/why/{}",
    "note": "/why/{}",
    "fact": "/why/{}",
    "tkt": "/why/{}",
}
"""The page of an id, by its prefix."""

LONG_LINE = 240
"""Characters of a sentence, name or argument that stand open; the rest is folded, or on the page of the thing."""
LONG_TEXT = 2_000
"""Characters of one text on a page; the whole is one click away."""


def href(any_id: Any) -> str | None:
    """The page of an id; None: it has none.

    >>> href("cor_0"), href("base")
    ('/review/cor_0', None)
    """
    text = str(any_id or "")
    prefix, line, rest = text.partition("_")
    found = PAGES.get(prefix)
    return found.format(text) if found and line and rest.isalnum() else None


def moment(at_us: int | None) -> Markup:
    """A moment, UTC, to the minute; exact in its attribute."""
    if at_us is None:
        return Markup('<span class="quiet">no time</span>')
    try:
        found = datetime.fromtimestamp(at_us / 1_000_000, tz=UTC)
    except (OverflowError, ValueError, OSError):
        return Markup('<span class="quiet">{}</span>').format(at_us)
    return Markup('<time datetime="{}" title="{} UTC">{}</time>').format(
        found.isoformat(), found.strftime("%Y-%m-%d %H:%M:%S"), found.strftime("%Y-%m-%d %H:%M")
    )


def moment_s(at_us: int) -> Markup:
    """A moment, UTC, to the second."""
    found = datetime.fromtimestamp(at_us / 1_000_000, tz=UTC)
    return Markup('<time datetime="{}">{}</time>').format(found.isoformat(), found.strftime("%m-%d %H:%M:%S"))


def ago(at_us: int | None, now_us: int) -> str:
    """How long ago, or until when.

    >>> ago(0, 7_200_000_000), ago(90_000_000, 0), ago(None, 0)
    ('2 hours ago', 'in 2 minutes', 'never')
    """
    if at_us is None:
        return "never"
    text = span(abs(now_us - at_us) / 1_000_000)
    return f"in {text}" if at_us > now_us else f"{text} ago"


def span(seconds: float | None) -> str:
    """A length of time in its largest unit.

    >>> span(0.25), span(42), span(90), span(7200), span(86400 * 3), span(None)
    ('0.25 s', '42 s', '2 minutes', '2 hours', '3 days', 'not measured')
    """
    if seconds is None:
        return "not measured"
    if seconds < 10:
        return f"{seconds:.2g} s"
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= size:
            count = round(seconds / size)
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return f"{seconds:.0f} s"


def share(value: float | None, digits: int = 0) -> str:
    """A share as a percentage.

    >>> share(0.254), share(None), share(0.0042, 1)
    ('25 %', 'not measured', '0.4 %')
    """
    return "not measured" if value is None else f"{100 * value:.{digits}f} %"


def number(value: float | None) -> str:
    """A number, with its thousands apart.

    >>> number(1234567), number(0.12345), number(None)
    ('1,234,567', '0.123', 'not measured')
    """
    if value is None:
        return "not measured"
    if isinstance(value, int) or float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def usd(value: float) -> str:
    """An amount of money, to the cent; nothing has no sign.

    >>> usd(-1234.5), usd(-0.004), usd(2)
    ('\N{MINUS SIGN}1,234.50 USD', '0.00 USD', '2.00 USD')
    """
    text = f"{abs(value):,.2f} USD"
    return f"\N{MINUS SIGN}{text}" if value < 0 and text != "0.00 USD" else text


def pretty(value: Any) -> str:
    """A JSON value as people read it; a text as it is."""
    if isinstance(value, str):
        return value
    return json.dumps(value, indent=1, ensure_ascii=False, default=str)


_TICKED = re.compile(r"`([^`\n]{1,200})`")
_FOR_THE_TERMINAL = re.compile(r"\s*\(--answer[^)]*\)")


def prose(text: Any, most: int | None = None) -> Markup:
    """A sentence of ours, escaped, with what stands in backticks as code, and without options of the command line; cut
    after `most` characters.

    >>> prose("`get_order` fails", 6)
    Markup('<code>get_o</code>…')
    >>> prose("`get_order` <fails> (--answer LABEL)")
    Markup('<code>get_order</code> &lt;fails&gt;')
    """
    whole = _FOR_THE_TERMINAL.sub("", printable(str(text)))
    kept = whole if most is None else whole[:most]
    if len(kept) < len(whole):
        kept += "`" * (kept.count("`") % 2) + "\N{HORIZONTAL ELLIPSIS}"
    parts = _TICKED.split(kept)
    pieces = (
        Markup("<code>{}</code>").format(part) if number % 2 else escape(part) for number, part in enumerate(parts)
    )
    return Markup("").join(pieces)


def plain(text: Any, most: int) -> str:
    """A sentence of ours where nothing can be marked: without its backticks, cut after `most` characters.

    >>> plain("`get_order` fails", 11)
    'get_order …'
    """
    whole = printable(str(text)).replace("`", "")
    return whole if len(whole) <= most else whole[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


def printable(text: str) -> str:
    """The text without control characters and without signs that turn its direction round.

    >>> printable("a\\x00b\\u202ec")
    'a\ufffdb\ufffdc'
    """
    hidden = "\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if (each in hidden or (not each.isprintable() and each not in "\n\t ")) else each
        for each in text
    )
