"""What a patch stands on: the features of the base rows, and what was decided on some of them without learning them.

Kept beside the model file, so that a patch neither reads the base texts again nor fits what it does not touch. Both
files are found by the SHA-256 of their content and hold plain arrays.
"""

import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from models.files import write_whole
from models.reject import Floats
from models.text_model import TextModel
from store.errors import ModelRefused


@dataclass(frozen=True)
class Ground:
    """Over the base rows, in the order of their file."""

    features: Any
    """Sparse, shape (n, d)."""
    held: npt.NDArray[np.int64]
    """Positions of the rows held out, shape (m,)."""
    decisions: Floats
    """What a model that had not learnt them decides on the rows held out, shape (m, classes)."""


def ground_of(model: TextModel, texts: Sequence[str]) -> Ground | None:
    """The ground of a model that was just fitted on base `texts` and others; None where it held none of them out."""
    if model.held_out is None:
        return None
    rows = {text: i for i, text in enumerate(model.held_out.texts)}
    held = [i for i, text in enumerate(texts) if text in rows]
    if not held:
        return None
    decisions = model.held_out.decisions[[rows[texts[i]] for i in held]]
    return Ground(features=model.features(texts), held=np.array(held, dtype=np.int64), decisions=decisions)


def save_ground(ground: Ground, folder: Path, known: Mapping[str, str] | None = None) -> dict[str, str]:
    """Writes the ground into `folder` and returns what `load_ground` needs; `known`: its features are saved already."""
    matrix = ground.features
    features = (known or {}).get("features") or _put(
        folder, data=matrix.data, indices=matrix.indices, indptr=matrix.indptr, shape=np.array(matrix.shape)
    )
    return {"features": features, "held": _put(folder, held=ground.held, decisions=ground.decisions)}


def load_ground(folder: Path, names: Mapping[str, str]) -> Ground:
    """The ground saved under `names`; raises ModelRefused, naming the file, where one is gone or changed."""
    arrays = _get(folder, names["held"])
    return Ground(features=_features(folder, names["features"]), held=arrays["held"], decisions=arrays["decisions"])


@lru_cache(maxsize=2)
def _features(folder: Path, digest: str) -> Any:
    arrays = _get(folder, digest)
    parts = arrays["data"], arrays["indices"], arrays["indptr"]
    return sp.csr_matrix(parts, shape=tuple(int(size) for size in arrays["shape"]))


def _put(folder: Path, **arrays: npt.NDArray[Any]) -> str:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    digest = hashlib.sha256(buffer.getvalue()).hexdigest()
    write_whole(folder / f"{digest}.npz", buffer.getvalue())
    return digest


def _get(folder: Path, digest: str) -> dict[str, npt.NDArray[Any]]:
    path = folder / f"{digest}.npz"
    try:
        data = path.read_bytes()
        if hashlib.sha256(data).hexdigest() != digest:
            raise ModelRefused(f"{path}: truncated or swapped; the next full retrain writes a new one")
        with np.load(io.BytesIO(data), allow_pickle=False) as found:
            return {name: found[name] for name in found.files}
    except (OSError, ValueError) as error:
        raise ModelRefused(f"{path}: cannot be read ({error}); the next full retrain writes a new one") from error
