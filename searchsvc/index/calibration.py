"""What cosines of a profile mean in one corpus: measured once its vectors are made.

Models differ in the range of their cosines, so a threshold must be relative: to what questions get that
have no answer here, and to what near neighbours in the corpus get from each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from searchsvc.index.vectors import Part

_SAMPLE = 200
_BLOCK_ROWS = 20_000
_MIN_DEVIATION = 1e-3


@dataclass(frozen=True, slots=True)
class Calibration:
    """Cosines to compare with."""

    nothing: float
    """Median best cosine of questions about other matters."""
    same: float
    """Median cosine of a section with its nearest neighbour."""
    mean: float
    """Mean cosine of unrelated texts."""
    deviation: float
    """Standard deviation of the same."""

    @property
    def is_sound(self) -> bool:
        """Whether the model tells texts apart here: near neighbours are nearer than foreign questions."""
        return self.deviation > _MIN_DEVIATION and self.same > self.nothing + _MIN_DEVIATION

    def relevance(self, cosine: float) -> float:
        """Return 0 for what foreign questions get, 1 for what near neighbours get."""
        return (cosine - self.nothing) / (self.same - self.nothing)


def calibrate(parts: Sequence[Part], probes: NDArray[np.float32]) -> Calibration | None:
    """Measure a profile; ``probes`` are the vectors of foreign questions. None for fewer than two rows."""
    rows = [part.rows for part in parts if len(part.rows)]
    owners = [np.repeat(part.keys, np.diff(part.bounds)) for part in parts if len(part.rows)]
    count = sum(map(len, rows))
    if count < 2:
        return None
    picked = np.random.default_rng(0).choice(count, min(_SAMPLE, count), replace=False)
    everything, owner = _Rows(rows), np.concatenate(owners)
    sample = everything.take(picked)
    best_probe = np.full(len(probes), -1.0, np.float32)
    best_sample = np.full(len(sample), -1.0, np.float32)
    for start in range(0, count, _BLOCK_ROWS):
        block = everything.take(np.arange(start, min(start + _BLOCK_ROWS, count)))
        best_probe = np.maximum(best_probe, (probes @ block.T).max(axis=1))
        cosines = sample @ block.T
        cosines[owner[picked][:, None] == owner[None, start : start + len(block)]] = -1
        best_sample = np.maximum(best_sample, cosines.max(axis=1))
    among = (probes @ probes.T)[np.triu_indices(len(probes), 1)]
    return Calibration(
        nothing=float(np.median(best_probe)),
        same=float(np.median(best_sample)),
        mean=float(among.mean()),
        deviation=float(among.std()),
    )


class _Rows:
    """Several matrices, addressed as one."""

    def __init__(self, matrices: Sequence[NDArray[np.float32]]) -> None:
        self._matrices = matrices
        self._starts = np.cumsum([0, *map(len, matrices)])

    def take(self, places: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the rows at these places, in their order."""
        out = np.empty((len(places), self._matrices[0].shape[1]), np.float32)
        for matrix, start in zip(self._matrices, self._starts, strict=False):
            mine = (places >= start) & (places < start + len(matrix))
            out[mine] = matrix[places[mine] - start]
        return out
