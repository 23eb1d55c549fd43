"""Two runs over the same queries -> their differences, with intervals from a paired bootstrap."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.errors import BenchmarkError

RESAMPLES = 10_000
SEED = 1
COMPARED = ("ndcg", "recall", "document_ndcg")
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Difference:
    """A mean difference, new minus old, and its 95 % interval."""

    mean: float
    low: float
    high: float

    @property
    def interval(self) -> str:
        """The interval as text."""
        return f"{self.low:+.3f} to {self.high:+.3f}"

    @property
    def verdict(self) -> str:
        """``better`` or ``worse`` when the interval leaves out zero, else nothing."""
        if self.low > 0:
            return "better"
        return "worse" if self.high < 0 else ""


@dataclass(frozen=True, slots=True)
class Change:
    """How one kind of queries of one set fares in one mode."""

    mode: str
    set: str
    kind: str
    queries: int
    differences: dict[str, Difference]
    """By measure."""


def compare(runs: Sequence[dict[str, Any]], baseline: Sequence[dict[str, Any]]) -> list[Change]:
    """Pair queries by set, mode and id, and return a change a set and kind, then one over all sets.

    A run pairs with the baseline's run of the same profile, or with its only one of that set and mode.
    The last change of each mode weighs sets equally. Raises ``BenchmarkError`` when nothing pairs.
    """
    changes = []
    for mode, profile in dict.fromkeys((run["mode"], run["profile"]) for run in runs):
        parts: list[dict[str, Floats]] = []
        name = f"{mode} {profile}".strip()
        for run in (run for run in runs if (run["mode"], run["profile"]) == (mode, profile)):
            old = _partner(run, baseline)
            pairs = [(row, old[row["id"]]) for row in run["queries"] if row["id"] in old]
            if not pairs:
                continue
            kinds = sorted({row["kind"] for row, _ in pairs})
            for kind in [*kinds, "all"] if len(kinds) > 1 else kinds:
                chosen = [pair for pair in pairs if kind in (pair[0]["kind"], "all")]
                resampled, means = _resample(chosen)
                changes.append(Change(name, run["set"], kind, len(chosen), _differences(means, resampled)))
            parts.append(_resample(pairs)[0] | {f"mean {m}": v for m, v in _means(pairs).items()})
        if parts:
            resampled = {m: np.mean([part[m] for part in parts], axis=0) for m in COMPARED}
            means = {m: float(np.mean([part[f"mean {m}"] for part in parts])) for m in COMPARED}
            changes.append(Change(name, "mean of sets", "", len(parts), _differences(means, resampled)))
    if not changes:
        raise BenchmarkError("the baseline shares no query of the same set and mode with this run")
    return changes


def bootstrap(differences: Floats) -> Floats:
    """Return the mean difference of every resample, shape ``(RESAMPLES,)``; the same for the same input."""
    chosen = np.random.default_rng(SEED).integers(0, len(differences), (RESAMPLES, len(differences)))
    return np.asarray(differences[chosen].mean(axis=1), np.float64)


def _partner(run: dict[str, Any], baseline: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    found = [old for old in baseline if (old["set"], old["mode"]) == (run["set"], run["mode"])]
    same = [old for old in found if old["profile"] == run["profile"]]
    chosen = same or (found if len(found) == 1 else [])
    return {row["id"]: row for old in chosen for row in old["queries"]}


def _values(pairs: Sequence[tuple[dict[str, Any], dict[str, Any]]], measure: str) -> Floats:
    return np.array([new[measure] - old[measure] for new, old in pairs], np.float64)


def _means(pairs: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> dict[str, Floats]:
    return {measure: np.asarray(_values(pairs, measure).mean()) for measure in COMPARED}


def _resample(
    pairs: Sequence[tuple[dict[str, Any], dict[str, Any]]],
) -> tuple[dict[str, Floats], dict[str, float]]:
    resampled = {measure: bootstrap(_values(pairs, measure)) for measure in COMPARED}
    return resampled, {measure: float(value) for measure, value in _means(pairs).items()}


def _differences(means: dict[str, float], resampled: dict[str, Floats]) -> dict[str, Difference]:
    bounds = {measure: np.percentile(values, (2.5, 97.5)) for measure, values in resampled.items()}
    return {m: Difference(means[m], float(low), float(high)) for m, (low, high) in bounds.items()}
