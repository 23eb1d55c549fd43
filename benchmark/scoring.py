"""Scores a ranking against relevance that people made.

Lines are 1-based and inclusive. A result meets a relevant entry of the same path when more than half of
the shorter of the two lies in both; an entry without lines is met by its path alone. Results of which
more than half lies in an excluded range are dropped first. Each entry counts once, at the first result
that meets it. At document level, results and entries fold into one a path.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

DEPTH = 10
Level = Literal["section", "document"]
_DISCOUNT = 1 / np.log2(np.arange(2, DEPTH + 2))
_NOWHERE = (0, -1)
"""Lines of an entry that stands for its whole document."""


@dataclass(frozen=True, slots=True)
class Score:
    """What one ranking earns, each 0 to 1 but for ``lines``."""

    ndcg: float
    """Binary gains, first ten results, against the best possible order."""
    recall5: float
    recall: float
    """Share of the relevant entries met by the first ten results."""
    mrr: float
    """One over the rank of the first result that meets an entry, 0 past the tenth."""
    success: float
    """1 when the first result meets an entry."""
    lines: tuple[int, ...]
    """Length of each of the first ten results, in lines."""


@dataclass(frozen=True, slots=True)
class _Ranges:
    paths: NDArray[np.str_]
    spans: NDArray[np.int64]
    """First and last line, shape ``(entries, 2)``."""

    @property
    def whole(self) -> NDArray[np.bool_]:
        return self.spans[:, 0] > self.spans[:, 1]

    @property
    def lengths(self) -> NDArray[np.int64]:
        lengths: NDArray[np.int64] = self.spans[:, 1] - self.spans[:, 0] + 1
        return lengths

    def __getitem__(self, kept: NDArray[Any]) -> "_Ranges":
        return _Ranges(self.paths[kept], self.spans[kept])


def score(query: Mapping[str, Any], results: Sequence[Mapping[str, Any]], level: Level = "section") -> Score:
    """Score the results of one query, best first; ``query`` is its object from the query file."""
    found, relevant = _ranges(results), _ranges(query["relevant"])
    found = found[~_excluded(found, _ranges(query.get("exclude", ())))]
    if level == "document":
        found, relevant = _fold(found), _fold(relevant)
    found = found[np.arange(min(len(found.paths), DEPTH))]
    hits = np.zeros(DEPTH)
    if len(relevant.paths) and len(found.paths):
        met = _meets(found, relevant)
        firsts = met.argmax(axis=0)[met.any(axis=0)]
        hits += np.bincount(firsts, minlength=DEPTH)
    total = len(relevant.paths)
    lines = tuple(int(length) for length in found.lengths[~found.whole])
    return Score(*_measures(hits, total), lines)


def _measures(hits: NDArray[np.float64], total: int) -> tuple[float, float, float, float, float]:
    """Return the measures from the number of entries first met at each rank, and of all entries."""
    ideal = _DISCOUNT[: min(total, DEPTH)].sum()
    ranks = np.flatnonzero(hits)
    return (
        min(1.0, float((np.minimum(hits, 1) * _DISCOUNT).sum() / ideal)) if total else 0.0,
        float(hits[:5].sum() / max(total, 1)),
        float(hits.sum() / max(total, 1)),
        float(1 / (ranks[0] + 1)) if len(ranks) else 0.0,
        float(hits[0] > 0),
    )


def _ranges(items: Sequence[Mapping[str, Any]]) -> _Ranges:
    spans = [
        _NOWHERE
        if item.get("line_start") is None or item.get("line_end") is None
        else (item["line_start"], item["line_end"])
        for item in items
    ]
    paths = np.array([item["path"] for item in items], dtype=np.str_)
    return _Ranges(paths, np.array(spans, np.int64).reshape(-1, 2))


def _fold(ranges: _Ranges) -> _Ranges:
    """Return one whole-document entry a path, first come first kept."""
    paths = list(dict.fromkeys(ranges.paths.tolist()))
    return _Ranges(np.array(paths, np.str_), np.tile(np.array(_NOWHERE, np.int64), (len(paths), 1)))


def _shared(a: _Ranges, b: _Ranges) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return whether paths are the same, and how many lines are shared, for each pair of ranges."""
    same = a.paths[:, None] == b.paths[None, :]
    first = np.maximum(a.spans[:, None, 0], b.spans[None, :, 0])
    last = np.minimum(a.spans[:, None, 1], b.spans[None, :, 1])
    return same, np.maximum(0, last - first + 1)


def _meets(results: _Ranges, entries: _Ranges) -> NDArray[np.bool_]:
    same, shared = _shared(results, entries)
    shorter = np.minimum(results.lengths[:, None], entries.lengths[None, :])
    inside = ~results.whole[:, None] & (shared > shorter / 2)
    return same & (entries.whole[None, :] | inside)


def _excluded(results: _Ranges, ranges: _Ranges) -> NDArray[np.bool_]:
    same, shared = _shared(results, ranges)
    inside = ~results.whole[:, None] & (shared > results.lengths[:, None] / 2)
    return np.asarray((same & (ranges.whole[None, :] | inside)).any(axis=1), np.bool_)
