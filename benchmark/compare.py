"""Two rankings of the same queries -> their differences, with intervals from a paired bootstrap.

Queries are drawn, those of each set apart from those of other sets. Where no resample differs from another,
as with one query, there is no interval.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmark.errors import BenchmarkError

RESAMPLES = 10_000
SEED = 1
COMPARED = ("ndcg", "recall", "document_ndcg")
FUSED = "hybrid"
ALLOWED_LOSS = 0.01
"""By how much the fused ranking may stand below its best channel."""
WANTED_LEAD = 0.04
"""By how much the fused ranking is to stand above a recipe."""
_NO_SPREAD = 1e-12
"""Resamples that differ by less differ by rounding alone."""
Floats = NDArray[np.float64]
Run = Mapping[str, Any]
"""One set in one mode, as ``benchmark quality --json`` has it."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A mean difference, new minus old, and its 95 % interval."""

    mean: float
    low: float | None
    """None, as ``high``, where there is no interval."""
    high: float | None

    @property
    def interval(self) -> str:
        """The interval as text, a dash for none."""
        return "–" if self.low is None or self.high is None else f"{self.low:+.3f} to {self.high:+.3f}"

    @property
    def verdict(self) -> str:
        """``better`` or ``worse`` when the interval leaves out zero, else nothing."""
        if self.low is None or self.high is None:
            return ""
        return "better" if self.low > 0 else "worse" if self.high < 0 else ""


@dataclass(frozen=True, slots=True)
class Change:
    """How one kind of queries of one set fares in one mode."""

    mode: str
    set: str
    kind: str
    queries: int
    differences: dict[str, Difference]
    """By measure."""


@dataclass(frozen=True, slots=True)
class Lead:
    """How far the fused ranking stands above something else, in section nDCG@10."""

    profile: str
    set: str
    kind: str
    queries: int
    other: str
    """What it is held against."""
    ndcg: float
    """Of the other."""
    difference: Difference


def compare(runs: Sequence[Run], baseline: Sequence[Run]) -> list[Change]:
    """Pair queries by set, mode and id, and return a change a set and kind, then one over all sets.

    A run pairs with the baseline's run of the same profile, or with its only one of that set and mode.
    The last change of each mode weighs sets equally. Raises ``BenchmarkError`` when nothing pairs.
    """
    changes = []
    places = {name: place for place, name in enumerate(dict.fromkeys(run["set"] for run in runs))}
    for mode, profile in dict.fromkeys((run["mode"], run["profile"]) for run in runs):
        parts: list[tuple[int, dict[str, Floats]]] = []
        name = f"{mode} {profile}".strip()
        for run in (run for run in runs if (run["mode"], run["profile"]) == (mode, profile)):
            old = _partner(run, baseline)
            pairs = [(row, old[row["id"]]) for row in run["queries"] if row["id"] in old]
            if not pairs:
                continue
            for kind in kinds_of([row for row, _ in pairs]):
                values = _values([pair for pair in pairs if kind in (pair[0]["kind"], "all")])
                found = {m: difference(column, places[run["set"]]) for m, column in values.items()}
                changes.append(Change(name, run["set"], kind, len(values["ndcg"]), found))
            parts.append((places[run["set"]], _values(pairs)))
        if parts:
            changes.append(Change(name, "mean of sets", "", len(parts), _over_sets(parts)))
    if not changes:
        raise BenchmarkError("the baseline shares no query of the same set and mode with this run")
    return changes


def kinds_of(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the kinds of queries in order, and ``all`` where there are several."""
    kinds = sorted({row["kind"] for row in rows})
    return [*kinds, "all"] if len(kinds) > 1 else kinds


def against_best(runs: Sequence[Run], channels: Sequence[Run]) -> list[Lead]:
    """Return how far each fused run stands above the best channel of its set, kind by kind.

    The best channel is the one with the best mean over the same queries: chosen with hindsight, which makes
    the comparison a hard one.
    """
    leads = []
    for run in (run for run in runs if run["mode"] == FUSED):
        mine = [
            channel
            for channel in channels
            if channel["set"] == run["set"] and channel["profile"] in ("", run["profile"])
        ]
        for kind in kinds_of(run["queries"]) if mine else []:
            fused = _by_id(run, kind)
            scores = {channel["mode"]: _by_id(channel, kind) for channel in mine}
            best = max(scores, key=lambda name: float(np.mean([*scores[name].values()])))
            pairs = np.array([(fused[query], scores[best][query]) for query in fused], np.float64)
            found = difference(pairs[:, 0] - pairs[:, 1])
            leads.append(
                Lead(run["profile"], run["set"], kind, len(pairs), best, float(pairs[:, 1].mean()), found)
            )
    return leads


def against_figures(runs: Sequence[Run], figures: Mapping[str, Mapping[str, float]], name: str) -> list[Lead]:
    """Return how far each fused run stands above known figures, ``{set: {kind: nDCG@10}}``.

    A known figure has no queries to pair with, so the interval is that of the fused ranking alone.
    """
    leads = []
    for run in (run for run in runs if run["mode"] == FUSED):
        for kind, figure in figures.get(run["set"], {}).items():
            fused = np.array([*_by_id(run, kind).values()], np.float64)
            if len(fused):
                found = difference(fused - figure)
                leads.append(Lead(run["profile"], run["set"], kind, len(fused), name, figure, found))
    return leads


def difference(values: Floats, stream: int = 0) -> Difference:
    """Return the mean of differences, one a query, with its interval."""
    return _difference(float(values.mean()), bootstrap(values, stream))


def bootstrap(differences: Floats, stream: int = 0) -> Floats:
    """Return the mean difference of every resample, shape ``(RESAMPLES,)``; the same for the same input.

    Sets need a ``stream`` each: drawn alike they would seem to vary together.
    """
    draw = np.random.default_rng([SEED, stream])
    chosen = draw.integers(0, len(differences), (RESAMPLES, len(differences)))
    return np.asarray(differences[chosen].mean(axis=1), np.float64)


def _difference(mean: float, resampled: Floats) -> Difference:
    if np.ptp(resampled) < _NO_SPREAD:
        return Difference(mean, None, None)
    low, high = np.percentile(resampled, (2.5, 97.5))
    return Difference(mean, float(low), float(high))


def _over_sets(parts: Sequence[tuple[int, Mapping[str, Floats]]]) -> dict[str, Difference]:
    """Return the differences over sets that weigh equally; no interval when one has a single query.

    That one would not vary, though another draw of queries would. Sets come with their streams.
    """
    found = {}
    for measure in COMPARED:
        mean = float(np.mean([values[measure].mean() for _, values in parts]))
        if min(len(values[measure]) for _, values in parts) < 2:
            found[measure] = Difference(mean, None, None)
            continue
        resampled = [bootstrap(values[measure], stream) for stream, values in parts]
        found[measure] = _difference(mean, np.asarray(np.mean(resampled, axis=0), np.float64))
    return found


def _partner(run: Run, baseline: Sequence[Run]) -> dict[str, dict[str, Any]]:
    found = [old for old in baseline if (old["set"], old["mode"]) == (run["set"], run["mode"])]
    same = [old for old in found if old["profile"] == run["profile"]]
    chosen = same or (found if len(found) == 1 else [])
    return {row["id"]: row for old in chosen for row in old["queries"]}


def _by_id(run: Run, kind: str) -> dict[str, float]:
    return {row["id"]: row["ndcg"] for row in run["queries"] if kind in (row["kind"], "all")}


def _values(pairs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> dict[str, Floats]:
    return {m: np.array([new[m] - old[m] for new, old in pairs], np.float64) for m in COMPARED}
