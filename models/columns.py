"""Records as numbers: which columns are numeric, which are categories, and what stands for what is missing."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from pydantic import JsonValue

from models.record_values import category, is_missing, number

Floats = npt.NDArray[np.float64]
Row = dict[str, JsonValue]

MOST_CATEGORIES = 50
"""Most frequent values of a column that are told apart; the others are one."""


class Columns:
    """The columns of the rows it was found from; a column of numbers alone is numeric, any other is of categories.

    >>> columns = Columns().found([{"age": 30, "city": "Ulm"}, {"age": None, "city": "Bonn"}, {"age": 50}])
    >>> columns.ordinal([{"age": 40, "city": "Bonn"}, {"city": "Rome"}]).tolist()
    [[40.0, 0.0], [nan, nan]]
    >>> columns.dense([{"age": 40, "city": "Bonn"}]).tolist()
    [[0.0, 0.0, 1.0, 0.0]]
    """

    def __init__(self) -> None:
        self.numeric: dict[str, tuple[float, float]] = {}
        """Name to median and spread."""
        self.categories: dict[str, list[str]] = {}
        """Name to its values, in order."""

    def found(self, rows: Sequence[Row]) -> Self:
        """Learns the columns; text that is a number, such as a table's `"40"`, counts as that number, empty text as missing."""
        for name in sorted({name for row in rows for name in row}):
            values = [row[name] for row in rows if not is_missing(row.get(name))]
            numbers = [number(value) for value in values]
            if values and not any(map(math.isnan, numbers)):
                known = np.array(numbers)
                self.numeric[name] = float(np.median(known)), float(known.std()) or 1.0
            elif values:
                counts = Counter(map(category, values))
                most = sorted(counts, key=lambda value: (-counts[value], value))[:MOST_CATEGORIES]
                self.categories[name] = sorted(most)
        return self

    def ordinal(self, rows: Sequence[Row]) -> Floats:
        """Shape (n, columns): numbers as they are, categories by their place; NaN where missing or never seen. For trees."""
        places = {name: {value: i for i, value in enumerate(values)} for name, values in self.categories.items()}
        parts = [[number(row.get(name)) for row in rows] for name in self.numeric]
        parts += [
            [float(place[key]) if (key := category(row.get(name))) in place else math.nan for row in rows]
            for name, place in places.items()
        ]
        return np.array(parts, dtype=np.float64).reshape(len(parts), len(rows)).T

    def dense(self, rows: Sequence[Row]) -> Floats:
        """Shape (n, features) without NaN: standardised numbers with a mark where they were missing, categories one by one."""
        parts: list[list[float]] = []
        for name, (median, spread) in self.numeric.items():
            known = [number(row.get(name)) for row in rows]
            parts.append([0.0 if math.isnan(value) else (value - median) / spread for value in known])
            parts.append([float(math.isnan(value)) for value in known])
        for name, values in self.categories.items():
            parts += [[float(category(row.get(name)) == value) for row in rows] for value in values]
        return np.array(parts, dtype=np.float64).reshape(len(parts), len(rows)).T

    def parts(self) -> dict[str, Any]:
        """Plain values to rebuild it from."""
        return {"numeric": {name: list(pair) for name, pair in self.numeric.items()}, "categories": self.categories}

    @classmethod
    def from_parts(cls, parts: dict[str, Any]) -> Self:
        """The columns that gave `parts`."""
        found = cls()
        found.numeric = {name: (float(pair[0]), float(pair[1])) for name, pair in parts["numeric"].items()}
        found.categories = {name: [str(value) for value in values] for name, values in parts["categories"].items()}
        return found
