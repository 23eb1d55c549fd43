"""From what a network gives out to the unit vectors that are kept."""

import math

import numpy as np
from numpy.typing import NDArray

from searchsvc.embedding.base import Matrix
from searchsvc.errors import EmbeddingError


def unit(vector: NDArray[np.float32], dimension: int) -> NDArray[np.float32]:
    """Return the vector brought to length 1, float32 of shape ``(dimension,)``.

    EmbeddingError when it has another length, is not finite, or is zero.
    """
    if vector.shape != (dimension,):
        raise EmbeddingError(
            f"the model gave a vector of shape {vector.shape}, its card says ({dimension},): the file is "
            "another model; check the model path"
        )
    norm = math.sqrt(vector @ vector)
    if not math.isfinite(norm) or norm == 0:
        raise EmbeddingError(
            f"the model gave a vector of length {norm} for one text, expected a finite one above 0: leave "
            "that text out, or choose another model"
        )
    return np.asarray(vector / norm, dtype=np.float32)


def stack(rows: list[NDArray[np.float32]], dimension: int) -> Matrix:
    """Return the rows as a matrix of shape ``(len(rows), dimension)``, also when there are none."""
    if len(rows) == 1:
        return rows[0][None, :]
    return np.stack(rows) if rows else np.empty((0, dimension), dtype=np.float32)
