"""Which inputs are one and the same to a model, however their log spells them."""

import math

from pydantic import JsonValue

from models.steps import parsed
from store.records.identity import canonical_json
from store.records.weights import DatasetRow


def input_key(row: DatasetRow) -> str:
    """Alike for two rows whose inputs say the same: texts but for case and the space around them; records but for how a number
    is written, and what is missing.

    >>> keys = {input_key(DatasetRow(input=each, label="a")) for each in ("Hello", " hello ")}
    >>> amounts = [{"amount": 121.0}, {"amount": 121, "note": None}, {"amount": "121"}, '{"amount": 1.21e2, "note": " "}']
    >>> len(keys), {input_key(DatasetRow(input=each, label="a")) for each in amounts}
    (1, {'{"amount":121}'})
    """
    value = parsed(row.input)
    if isinstance(value, str):
        return value.strip().lower()
    if not isinstance(value, dict):
        return canonical_json(value).lower()
    return canonical_json({name: _plain(each) for name, each in value.items() if not _is_missing(each)})


def _is_missing(value: JsonValue) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def _plain(value: JsonValue) -> JsonValue:
    if not isinstance(value, int | float | str) or isinstance(value, bool):
        return value
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return value.strip().lower() if isinstance(value, str) else value
    if not math.isfinite(number):
        return str(value).strip().lower()
    return int(number) if number.is_integer() and abs(number) < 2**53 else number
