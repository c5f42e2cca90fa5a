"""The rows that a classifier learns from, as arrays: in one order, with what is out of scope marked."""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

Labels = npt.NDArray[np.str_]


class TaughtRows(NamedTuple):
    """Rows in the order of their content, so that a fit is the same from any order of them."""

    texts: list[str]
    labels: Labels
    weights: npt.NDArray[np.float64]
    live: npt.NDArray[np.bool_]
    """Whether it was put to the model in production."""
    in_scope: npt.NDArray[np.bool_]
    classes: Labels
    """Of the rows in scope, sorted."""

    @classmethod
    def of(
        cls,
        texts: Sequence[str],
        labels: Sequence[str],
        weights: Sequence[float] | None,
        asked: Sequence[bool] | None,
        *,
        out_of_scope: str | None,
    ) -> Self:
        """Without weights each row counts 1, without `asked` none is of production. Raises ValueError for one class."""
        given = [1.0] * len(texts) if weights is None else weights
        rows = sorted(zip(texts, labels, given, [False] * len(texts) if asked is None else asked, strict=True))
        y, w, live = (np.array([row[i] for row in rows]) for i in (1, 2, 3))
        in_scope = np.asarray(y != out_of_scope) if out_of_scope is not None else np.ones(len(y), bool)
        classes = np.unique(y[in_scope])
        if len(classes) < 2:
            raise ValueError(f"{len(classes)} class in {len(y)} rows: a classifier needs two")
        return cls([row[0] for row in rows], y, w, live, in_scope, classes)
