"""What cosines of a profile mean in one corpus: measured once its vectors are made.

Models differ in the range of their cosines, so a threshold must be relative: to what questions get that
have no answer here, and to what near neighbours in the corpus get from each other.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from searchsvc.index.vectors import Part

_SAMPLE = 200
_BLOCK_ROWS = 8_192
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
    parts = [part for part in parts if len(part.rows)]
    starts = np.cumsum([0, *(len(part.rows) for part in parts)])
    count = int(starts[-1])
    if count < 2:
        return None
    picked = np.sort(np.random.default_rng(0).choice(count, min(_SAMPLE, count), replace=False))
    owner = np.concatenate([np.repeat(part.keys, np.diff(part.bounds)) for part in parts])
    sample = np.concatenate([part.row_file.take(mine) for part, mine in _split(parts, starts, picked)])
    best_probe = np.full(len(probes), -1.0, np.float32)
    best_sample = np.full(len(sample), -1.0, np.float32)
    for part, first in zip(parts, starts.tolist(), strict=False):
        for start in range(0, len(part.rows), _BLOCK_ROWS):
            block = part.row_file.slice(start, min(start + _BLOCK_ROWS, len(part.rows)))
            best_probe = np.maximum(best_probe, (probes @ block.T).max(axis=1))
            cosines = sample @ block.T
            theirs = owner[first + start : first + start + len(block)]
            cosines[owner[picked][:, None] == theirs[None, :]] = -1
            best_sample = np.maximum(best_sample, cosines.max(axis=1))
    among = (probes @ probes.T)[np.triu_indices(len(probes), 1)]
    return Calibration(
        nothing=float(np.median(best_probe)),
        same=float(np.median(best_sample)),
        mean=float(among.mean()),
        deviation=float(among.std()),
    )


def _split(
    parts: Sequence[Part], starts: NDArray[np.int64], picked: NDArray[np.int64]
) -> Iterator[tuple[Part, NDArray[np.int64]]]:
    """Yield each part with those of the sorted row numbers over all parts that lie in it, as its own."""
    for part, start, end in zip(parts, starts[:-1], starts[1:], strict=True):
        yield part, picked[(picked >= start) & (picked < end)] - start
