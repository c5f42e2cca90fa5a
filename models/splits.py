"""Which correction rows choose the arm and which judge it, and folds that never part what belongs together."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from models.dataset import text_of
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
        return "input:" + text_of(row).strip().lower()
    return "source:" + row.source


def folds_of(rows: Sequence[DatasetRow], folds: int) -> npt.NDArray[np.int64]:
    """The fold of each row, shape (n,); it follows from the row's group alone."""
    return np.array([int(short_hash("fold", _group(row))[:8], 16) % folds for row in rows], dtype=np.int64)
