"""What a value of a record is to a model: a number, a category, or missing.

`models/record_values.py` is a link to this file, which therefore needs the standard library only.
"""

import math


def is_missing(value: object) -> bool:
    """Nothing, or a text without a character that shows.

    >>> is_missing(None), is_missing(" "), is_missing(0)
    (True, True, False)
    """
    return value is None or (isinstance(value, str) and not value.strip())


def number(value: object) -> float:
    """The finite number that a value is, or says as text; NaN where it is none.

    >>> number("40"), number(True), number("1e999")
    (40.0, nan, nan)
    """
    if not isinstance(value, int | float | str) or isinstance(value, bool):
        return math.nan
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return math.nan
    return found if math.isfinite(found) else math.nan


def category(value: object) -> str:
    """What a value is called; a missing one has no name.

    >>> category(3), category("")
    ('3', '')
    """
    return "" if is_missing(value) else str(value)
