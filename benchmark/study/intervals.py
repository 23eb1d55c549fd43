"""Estimates with 95 % intervals, by a bootstrap that draws whole documents.

Questions of one document are not independent, so clusters are drawn, not questions; see Cameron, Gelbach
and Miller, "Bootstrap-based improvements for inference with clustered errors" (2008). They also show that
few clusters make intervals too narrow, which is why the number of clusters goes with every estimate. Where
no resample can differ from another there is no interval: one of no width would pretend certainty.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 10_000
SEED = 1
FEW_CLUSTERS = 5
"""With fewer the interval is called rough."""
_Z_POWER = 0.8416
"""Standard normal quantile of .80: the power that the smallest detectable effect is stated for."""
_Z_TWO_SIDED = 1.96
_NO_SPREAD = 1e-12
"""Resamples that differ by less differ by rounding alone."""
Floats = NDArray[np.float64]
Statistic = Callable[[Floats], Floats]
"""Sums over questions, shape ``(..., columns)``, to a figure, shape ``(...)``; NaN where it has none."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its 95 % interval."""

    mean: float | None
    """None of nothing."""
    low: float | None
    """None, as ``high`` and ``detectable``, where there is no interval; ``note`` says why."""
    high: float | None
    count: int
    """Questions."""
    clusters: int
    """Documents, or what else was drawn whole."""
    detectable: float | None
    """Smallest true difference that a study of this size finds four times in five."""

    def note(self, unit: str = "document") -> str:
        """Return why there is no interval, or that it is rough; mostly empty. ``unit`` names a cluster."""
        if self.mean is None:
            return "nothing to estimate"
        if self.low is None:
            return f"no interval: one {unit}" if self.clusters == 1 else "no interval: all alike"
        return f"rough: {self.clusters} {unit}s" if self.clusters < FEW_CLUSTERS else ""

    @property
    def text(self) -> str:
        """The figure and the interval, as tables show them."""
        return self.shown("{:+.3f}".format)

    def shown(self, form: Callable[[float], str]) -> str:
        """Return the figure and the interval, each number written by ``form``."""
        if self.mean is None:
            return "–"
        note = self.note()
        if self.low is None or self.high is None:
            return f"{form(self.mean)} [{note}]"
        return f"{form(self.mean)} [{form(self.low)}, {form(self.high)}]{note and f' ({note})'}"

    def to_json(self) -> dict[str, Any]:
        """Return all of it, safe for JSON, with the note."""
        return {**asdict(self), "note": self.note()}


def estimate(values: Sequence[float], clusters: Sequence[str], *, resamples: int = RESAMPLES) -> Estimate:
    """Return the mean of values, one a question, with an interval from resampled clusters.

    The same input gives the same interval.
    """
    columns = np.column_stack((np.asarray(values, np.float64), np.ones(len(values))))
    return estimate_of(columns, clusters, _mean, resamples=resamples)


def estimate_of(
    columns: Floats, clusters: Sequence[str], statistic: Statistic, *, resamples: int = RESAMPLES
) -> Estimate:
    """Return a figure that is made of sums over questions, recomputed in each resample.

    ``columns`` has shape ``(questions, columns)``. Resamples without a figure are left out.
    """
    count, known = len(columns), len(set(clusters))
    mean = float(statistic(columns.sum(axis=0))) if count else np.nan
    if np.isnan(mean):
        return Estimate(None, None, None, count, known, None)
    found = statistic(resampled_sums(columns, clusters, resamples=resamples))
    found = found[~np.isnan(found)]
    if np.ptp(found) < _NO_SPREAD:
        return Estimate(mean, None, None, count, known, None)
    low, high = np.percentile(found, (2.5, 97.5))
    detectable = (_Z_TWO_SIDED + _Z_POWER) * float(found.std())
    return Estimate(mean, float(low), float(high), count, known, detectable)


def resampled_sums(columns: Floats, clusters: Sequence[str], *, resamples: int = RESAMPLES) -> Floats:
    """Return the sums over the questions of each resample, shape ``(resamples, columns)``."""
    names = {name: place for place, name in enumerate(dict.fromkeys(clusters))}
    places = np.array([names[name] for name in clusters])
    drawn = np.random.default_rng(SEED).integers(0, len(names), (resamples, len(names)))
    sums = [np.bincount(places, column, len(names))[drawn].sum(axis=1) for column in columns.T]
    return np.column_stack(sums)


def _mean(sums: Floats) -> Floats:
    return np.asarray(sums[..., 0] / sums[..., 1], np.float64)


def tally(differences: Sequence[float]) -> tuple[int, int, int]:
    """Return wins, ties and losses."""
    wins, losses = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
    return wins, len(differences) - wins - losses, losses
