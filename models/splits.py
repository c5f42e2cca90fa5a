"""Which correction rows choose the arm and which judge it, and folds that never part what belongs together."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from models.inputs import input_key
from store.records.identity import short_hash
from store.records.weights import DatasetRow

JUDGING_SHARE = 2 / 3
"""Share of the correction rows that judges; the rest chooses among the arms."""


def is_judging(row: DatasetRow, seed: int) -> bool:
    """Whether a correction row judges (True) or helps to choose the arm; it follows from its group alone."""
    return int(short_hash("judging", str(seed), _group(row))[:8], 16) / 16**8 < JUDGING_SHARE


def _group(row: DatasetRow) -> str:
    """Rows of one group are never on both sides of a split."""
    if row.source in ("unknown", "base") or row.authority:
        return "input:" + input_key(row)
    return "source:" + row.source


def folds_of(rows: Sequence[DatasetRow], folds: int) -> npt.NDArray[np.int64]:
    """The fold of each row, shape (n,); it follows from the row's group alone."""
    return np.array([int(short_hash("fold", _group(row))[:8], 16) % folds for row in rows], dtype=np.int64)


def sample_of(rows: Sequence[DatasetRow], most: int) -> Sequence[DatasetRow]:
    """`most` of the rows, or all of fewer, drawn by their groups and labels in turn, so that no label is lost."""
    if len(rows) <= most:
        return rows
    by_label: defaultdict[str, list[str]] = defaultdict(list)
    keys = [short_hash("sample", _group(row), str(i)) for i, row in enumerate(rows)]
    for key, row in zip(keys, rows, strict=True):
        by_label[row.label].append(key)
    ranks = {key: rank for known in by_label.values() for rank, key in enumerate(sorted(known))}
    first = sorted(range(len(rows)), key=lambda i: (ranks[keys[i]], keys[i]))[:most]
    return [rows[i] for i in sorted(first)]
