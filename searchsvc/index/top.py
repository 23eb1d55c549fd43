"""The best of many scores, without sorting or partitioning them all."""

import math

import numpy as np
from numpy.typing import NDArray

_GROUP = 64


def best_places(scores: NDArray[np.float32], count: int, above: float = -math.inf) -> NDArray[np.int64]:
    """Return the places of the best ``count`` scores greater than ``above``, in no order; ties by place.

    The ``count``-th best maximum of groups is a bound that at least ``count`` scores reach, so only the
    few that do are partitioned: exact, and several times cheaper than partitioning all.
    """
    size = len(scores) // _GROUP
    bound = -math.inf
    if size > 2 * count:
        # Groups are every size-th score: maxima of whole rows are found many at a time.
        maxima = scores[: size * _GROUP].reshape(_GROUP, size).max(axis=0)
        bound = float(np.partition(maxima, size - count)[size - count])
    candidates = np.flatnonzero(scores >= bound if bound > above else scores > above)
    if len(candidates) <= count:
        return candidates
    values = scores[candidates]
    threshold = np.partition(values, len(values) - count)[len(values) - count]
    best = candidates[values > threshold]
    return np.concatenate([best, candidates[values == threshold][: count - len(best)]])
