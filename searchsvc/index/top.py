"""The best of many scores, without sorting or partitioning them all."""

import numpy as np
from numpy.typing import NDArray

_BLOCK = 64


def best_places(scores: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """Return the places of the best ``count`` scores above ``-inf``, in no order; ties by place.

    The ``count``-th best maximum of blocks is a bound that at least ``count`` scores reach, so only the
    few that do are partitioned: exact, and several times cheaper than partitioning all.
    """
    blocks = len(scores) // _BLOCK
    bound = np.float32(-np.inf)
    if blocks > 2 * count:
        maxima = scores[: blocks * _BLOCK].reshape(blocks, _BLOCK).max(axis=1)
        bound = np.partition(maxima, blocks - count)[blocks - count]
    reaching = scores >= bound if bound > -np.inf else scores > -np.inf
    candidates = np.flatnonzero(reaching)
    if len(candidates) <= count:
        return candidates
    values = scores[candidates]
    threshold = np.partition(values, len(values) - count)[len(values) - count]
    above = candidates[values > threshold]
    return np.concatenate([above, candidates[values == threshold][: count - len(above)]])
