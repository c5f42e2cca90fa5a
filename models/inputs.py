"""Which inputs are one and the same to a model, however their log spells them."""

import math

from pydantic import JsonValue

from models.record_values import is_missing, number
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
    return canonical_json({name: _plain(each) for name, each in value.items() if not is_missing(each)})


def _plain(value: JsonValue) -> JsonValue:
    found = number(value)
    if math.isnan(found):
        return value.strip().lower() if isinstance(value, str) else value
    return int(found) if found.is_integer() and abs(found) < 2**53 else found
