"""Paired differences with 95 % intervals, by a bootstrap that draws whole documents.

Questions of one document are not independent, so clusters are drawn, not questions; see Cameron, Gelbach
and Miller, "Bootstrap-based improvements for inference with clustered errors" (2008).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 10_000
SEED = 1
_Z_POWER = 0.8416
"""Standard normal quantile of .80: the power that the smallest detectable effect is stated for."""
_Z_TWO_SIDED = 1.96


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its 95 % interval."""

    mean: float
    low: float
    high: float
    count: int
    """Questions."""
    detectable: float
    """Smallest true difference that a study of this size finds four times in five."""

    @property
    def text(self) -> str:
        """The mean and the interval, as tables show them."""
        return f"{self.mean:+.3f} [{self.low:+.3f}, {self.high:+.3f}]"


def estimate(values: Sequence[float], clusters: Sequence[str], *, resamples: int = RESAMPLES) -> Estimate:
    """Return the mean of values, one a question, with an interval from resampled clusters.

    The same input gives the same interval. Without values everything is 0.
    """
    if not values:
        return Estimate(0.0, 0.0, 0.0, 0, 0.0)
    means = resampled_means(values, clusters, resamples=resamples)
    low, high = np.percentile(means, (2.5, 97.5))
    error = float(means.std())
    mean = float(np.mean(values))
    return Estimate(mean, float(low), float(high), len(values), (_Z_TWO_SIDED + _Z_POWER) * error)


def resampled_means(
    values: Sequence[float], clusters: Sequence[str], *, resamples: int = RESAMPLES
) -> NDArray[np.float64]:
    """Return the mean over questions of each resample, shape ``(resamples,)``."""
    names = {name: place for place, name in enumerate(dict.fromkeys(clusters))}
    places = np.array([names[name] for name in clusters])
    sums = np.bincount(places, np.asarray(values, np.float64), len(names))
    sizes = np.bincount(places, minlength=len(names))
    drawn = np.random.default_rng(SEED).integers(0, len(names), (resamples, len(names)))
    return np.asarray(sums[drawn].sum(axis=1) / sizes[drawn].sum(axis=1), np.float64)


def tally(differences: Sequence[float]) -> tuple[int, int, int]:
    """Return wins, ties and losses."""
    wins, losses = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
    return wins, len(differences) - wins - losses, losses
