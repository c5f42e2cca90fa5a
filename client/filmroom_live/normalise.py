"""Normalisers: small, total, idempotent functions that bring a tool's argument into the shape the tool accepts.

Nothing is guessed: what a normaliser cannot read without doubt comes back unchanged. The running program applies them
and filmroom proposes them by the same file, `models/normalise.py` being a link to this one: standard library only.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date
from typing import TypeAlias

JsonValue: TypeAlias = "list[JsonValue] | dict[str, JsonValue] | str | bool | int | float | None"

NORMALISERS: tuple[str, ...] = ("trim", "lower", "upper", "prefix:#", "digits", "date_iso", "enum", "number")
"""The names that are tried by themselves. A tool policy may list these, `prefix:` with any prefix, and `unit:` with any of
`UNITS`: a quantity in words becomes a number in that unit."""

UNITS: dict[str, tuple[str, float]] = {
    "mg": ("mass", 1e-6), "g": ("mass", 1e-3), "kg": ("mass", 1.0), "oz": ("mass", 0.028349523125), "lb": ("mass", 0.45359237),
    "mm": ("length", 1e-3), "cm": ("length", 1e-2), "m": ("length", 1.0), "km": ("length", 1e3), "in": ("length", 0.0254),
    "ft": ("length", 0.3048), "mi": ("length", 1609.344), "ml": ("volume", 1e-3), "l": ("volume", 1.0),
    "ms": ("time", 1e-3), "s": ("time", 1.0), "min": ("time", 60.0), "h": ("time", 3600.0), "d": ("time", 86400.0),
}  # fmt: skip
"""Unit to what it measures and its size in the base unit; pound, ounce, inch, foot and mile as defined in 1959."""
_UNIT_WORDS = {
    "gram": "g", "kilogram": "kg", "kilo": "kg", "ounce": "oz", "pound": "lb", "lbs": "lb", "millimeter": "mm",
    "centimeter": "cm", "meter": "m", "metre": "m", "kilometer": "km", "kilometre": "km", "inch": "in", "inches": "in",
    "foot": "ft", "feet": "ft", "mile": "mi", "liter": "l", "litre": "l", "millisecond": "ms", "second": "s", "sec": "s",
    "minute": "min", "hour": "h", "hr": "h", "day": "d",
}  # fmt: skip
_QUANTITY = re.compile(r"\s*([+-]?\d{1,15}(?:\.\d{1,15})?)\s*([A-Za-z]{1,12})\.?\s*", re.ASCII)
_NUMBER = re.compile(r"\s*([+-]?(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?)\s*", re.ASCII)

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
    >>> normalise("unit:kg", "500 g"), normalise("unit:kg", "2 hours"), normalise("number", " 12 "), normalise("number", "012")
    (0.5, '2 hours', 12, '012')
    """
    if not isinstance(value, str):
        return value
    if name.startswith("prefix:"):
        return _prefixed(value, name.removeprefix("prefix:"))
    if name.startswith("unit:"):
        return _in_unit(value, name.removeprefix("unit:"))
    if name == "enum":
        return _chosen(value, choices)
    if name == "number":
        return _number(value)
    function = _FUNCTIONS.get(name)
    return function(value) if function else value


def repair(
    value: JsonValue,
    accepted: Callable[[JsonValue], bool],
    *,
    choices: Sequence[JsonValue] = (),
    prefixes: Sequence[str] = (),
) -> tuple[str, ...] | None:
    """The shortest chain of at most two normalisers that turns `value` into an accepted one; None: there is none.

    `choices`: for `enum`, what is allowed. `prefixes`: those to try beside `#`.

    >>> repair(" w1", lambda value: value == "W1"), repair("12", lambda value: value == "L-12", prefixes=["L-"])
    (('trim', 'upper'), ('prefix:L-',))
    """
    names = [*NORMALISERS, *(f"prefix:{prefix}" for prefix in prefixes)]
    chains = [(name,) for name in names] + [("trim", name) for name in names if name != "trim"]
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


def _in_unit(value: str, unit: str) -> str | float | int:
    """The quantity as a number in `unit`, to twelve digits; unchanged where its unit measures something else."""
    found = _QUANTITY.fullmatch(value)
    word = found[2].lower() if found else ""
    given = (
        UNITS.get(word)
        or UNITS.get(_UNIT_WORDS.get(word, ""))
        or UNITS.get(_UNIT_WORDS.get(word.removesuffix("s"), ""))
    )
    wanted = UNITS.get(unit)
    if found is None or given is None or wanted is None or given[0] != wanted[0]:
        return value
    number = float(f"{float(found[1]) * given[1] / wanted[1]:.12g}")
    return int(number) if number.is_integer() else number


def _number(value: str) -> str | float | int:
    """The number that is written, where it is written as a number and not as a code: no leading zero, no separators."""
    found = _NUMBER.fullmatch(value)
    if found is None:
        return value
    return float(found[1]) if "." in found[1] else int(found[1])


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
