"""Normalisers: small, total, idempotent functions that bring a tool's argument into the shape the tool accepts.

Nothing is guessed: what a normaliser cannot read without doubt comes back unchanged. The running program applies them
and filmroom proposes them by the same file, `models/normalise.py` being a link to this one: standard library only.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import TypeAlias

JsonValue: TypeAlias = "list[JsonValue] | dict[str, JsonValue] | str | bool | int | float | None"

NORMALISERS: tuple[str, ...] = ("trim", "lower", "upper", "prefix:#", "digits", "date_iso", "enum")
"""The names a tool policy may list; `prefix:` takes any prefix."""

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_ISO = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?:[T ][\d:.]+(?:Z|[+-]\d\d:?\d\d)?)?", re.ASCII)
_NUMERIC = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4})", re.ASCII)
_DAY_FIRST = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?\.?[ -]([A-Za-z]{3,9})\.?,?[ -](\d{4})", re.ASCII)
_MONTH_FIRST = re.compile(r"([A-Za-z]{3,9})\.? (\d{1,2})(?:st|nd|rd|th)?,? (\d{4})", re.ASCII)


def normalise(name: str, value: JsonValue, *, choices: Sequence[JsonValue] = ()) -> JsonValue:
    """`value` brought into shape by the normaliser `name`; whatever is not a text, or an unknown name, is unchanged.

    `choices`: for `enum`, what is allowed.

    >>> normalise("prefix:#", "W2378156"), normalise("digits", "ZIP 19122"), normalise("date_iso", "May 20th, 2024")
    ('#W2378156', '19122', '2024-05-20')
    >>> normalise("enum", "Basic economy", choices=["basic_economy", "business"]), normalise("date_iso", "03/04/2024")
    ('basic_economy', '03/04/2024')
    """
    if not isinstance(value, str):
        return value
    if name.startswith("prefix:"):
        return _prefixed(value, name.removeprefix("prefix:"))
    if name == "enum":
        return _chosen(value, choices)
    function = _FUNCTIONS.get(name)
    return function(value) if function else value


def repair(
    value: JsonValue, accepted: Callable[[JsonValue], bool], *, choices: Sequence[JsonValue] = ()
) -> tuple[str, ...] | None:
    """The shortest chain of at most two normalisers that turns `value` into an accepted one; None: there is none.

    >>> repair(" w1", lambda value: value == "W1")
    ('trim', 'upper')
    """
    chains = [(name,) for name in NORMALISERS] + [("trim", name) for name in NORMALISERS if name != "trim"]
    for chain in chains:
        found = apply_chain(chain, value, choices=choices)
        if found != value and accepted(found):
            return chain
    return None


def apply_chain(chain: Iterable[str], value: JsonValue, *, choices: Sequence[JsonValue] = ()) -> JsonValue:
    """`value` through the normalisers in order."""
    for name in chain:
        value = normalise(name, value, choices=choices)
    return value


def _prefixed(value: str, prefix: str) -> str:
    return value if not value or value.startswith(prefix) else prefix + value


def _digits(value: str) -> str:
    return "".join(re.findall(r"[0-9]", value)) or value


def _chosen(value: str, choices: Sequence[JsonValue]) -> JsonValue:
    if value in choices:
        return value
    alike = [choice for choice in choices if isinstance(choice, str) and _bare(choice) == _bare(value)]
    return alike[0] if len(alike) == 1 else value


def _bare(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.casefold())


def _date_iso(value: str) -> str:
    text = value.strip()
    if found := _ISO.fullmatch(text):
        return _iso(found[1], found[2], found[3], value)
    if found := _NUMERIC.fullmatch(text):
        return _numeric(found, value)
    if found := _DAY_FIRST.fullmatch(text):
        return _iso(found[3], _month(found[2]), found[1], value)
    if found := _MONTH_FIRST.fullmatch(text):
        return _iso(found[3], _month(found[1]), found[2], value)
    return value


def _numeric(found: re.Match[str], value: str) -> str:
    """Day and month in figures: read only where a figure above 12, or the dots of a day-first date, tell them apart."""
    first, separator, second, year = found.groups()
    if separator == "." or int(first) > 12 or first == second:
        return _iso(year, second, first, value)
    return _iso(year, first, second, value) if int(second) > 12 else value


def _iso(year: str, month: str, day: str, value: str) -> str:
    try:
        return date(int(year), int(month), int(day)).isoformat()
    except ValueError:
        return value


def _month(name: str) -> str:
    short = name[:3].lower()
    return str(_MONTHS.index(short) + 1) if short in _MONTHS else "0"


_FUNCTIONS: dict[str, Callable[[str], str]] = {
    "trim": str.strip,
    "lower": str.lower,
    "upper": str.upper,
    "digits": _digits,
    "date_iso": _date_iso,
}
