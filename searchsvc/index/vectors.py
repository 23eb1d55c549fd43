"""Vectors of one profile on disk, and exact search over them.

A part holds the vectors of some passages, found by the hash of what was embedded, so that a moved or
renamed section keeps its vectors. Each passage has one row a window. Beside the float rows lies an
int8 copy: the scan reads that (a quarter of the memory traffic), the best are scored again in float.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from searchsvc.index.arrays import read_array, write_arrays

Floats = NDArray[np.float32]

RESCORED = 64
"""How many of the best passages are scored again in float."""


@dataclass(frozen=True, slots=True)
class Part:
    """One immutable file of vectors."""

    name: str
    keys: NDArray[np.uint64]
    """Hash of each passage."""
    bounds: NDArray[np.int64]
    """First row of each passage, shape ``(passages + 1,)``; a passage without text has no row."""
    rows: Floats
    """Unit vectors, shape ``(rows, dimension)``."""
    codes: NDArray[np.int8]
    """The rows as ``round(127 * row / max|row|)``."""
    scales: Floats
    """What a code is worth, shape ``(rows,)``."""


def write_part(parent: Path, keys: Sequence[int], matrices: Sequence[Floats], dimension: int) -> str:
    """Write the vectors of passages, one matrix each, and return the name of the part."""
    rows = np.concatenate([np.empty((0, dimension), np.float32), *matrices])
    counts = np.fromiter((len(matrix) for matrix in matrices), np.int64, len(matrices))
    return _write(parent, np.array(keys, np.uint64), counts, rows)


def merge_parts(parent: Path, parts: Sequence[Part], wanted: NDArray[np.uint64]) -> str:
    """Write the vectors of the wanted passages of several parts into one new part."""
    keys, counts, rows = [], [], []
    for part in parts:
        kept = np.isin(part.keys, wanted)
        lengths = np.diff(part.bounds)
        keys.append(part.keys[kept])
        counts.append(lengths[kept])
        rows.append(part.rows[np.repeat(kept, lengths)])
    return _write(parent, np.concatenate(keys), np.concatenate(counts), np.concatenate(rows))


def open_part(parent: Path, name: str) -> Part:
    """Open a part; its arrays are memory maps."""
    folder = parent / name
    arrays = {key: read_array(folder, key) for key in ("keys", "bounds", "rows", "codes", "scales")}
    return Part(name=name, **arrays)


def quantise(rows: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Return int8 codes and the scale of each row: ``row ≈ code * scale``."""
    scales = np.abs(rows).max(axis=1, initial=0) / 127
    codes = np.rint(rows / np.maximum(scales, 1e-12)[:, None]).astype(np.int8)
    return codes, scales.astype(np.float32)


def _write(parent: Path, keys: NDArray[np.uint64], counts: NDArray[np.int64], rows: Floats) -> str:
    codes, scales = quantise(rows)
    bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    return write_arrays(
        parent, {"keys": keys, "bounds": bounds, "rows": rows, "codes": codes, "scales": scales}
    )


class VectorView:
    """The vectors of one profile, joined to the sections of a snapshot."""

    def __init__(self, parts: Sequence[Part], section_keys: NDArray[np.uint64]) -> None:
        """Join by key; ``section_keys`` has one key a section, 0 for sections without text."""
        self._parts = [part for part in parts if len(part.rows)]
        keys = np.concatenate([np.empty(0, np.uint64), *(part.keys for part in self._parts)])
        counts = np.concatenate([np.empty(0, np.int64), *(np.diff(part.bounds) for part in self._parts)])
        self._bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        self._passages = _join(np.where(counts > 0, keys, 0), section_keys)
        self._with_rows = np.flatnonzero(counts > 0)

    @property
    def covered(self) -> NDArray[np.bool_]:
        """Which sections have a vector."""
        return self._passages >= 0

    def cosines(self, query: Floats) -> Floats:
        """Return the cosine of every section with a unit query vector, shape ``(sections,)``.

        A section counts by its best window. Sections without a vector get ``-inf``. The best
        ``RESCORED`` passages are exact, the others within about 0.01.
        """
        scores = np.full(len(self._passages), -np.inf, np.float32)
        if not self._parts or not np.any(query):
            return scores
        best = np.full(len(self._bounds) - 1, -np.inf, np.float32)
        rows = np.concatenate([_scan(part, query) for part in self._parts])
        best[self._with_rows] = np.maximum.reduceat(rows, self._bounds[self._with_rows])
        count = min(RESCORED, len(best))
        for passage in np.argpartition(best, len(best) - count)[-count:]:
            if best[passage] > -np.inf:
                best[passage] = (self._rows(int(passage)) @ query).max()
        covered = self._passages >= 0
        scores[covered] = best[self._passages[covered]]
        return scores

    def of(self, section: int) -> Floats:
        """Return the float rows of one section, shape ``(windows, dimension)``; none when it has none."""
        passage = int(self._passages[section])
        return self._rows(passage) if passage >= 0 else np.empty((0, 0), np.float32)

    def _rows(self, passage: int) -> Floats:
        start, stop = int(self._bounds[passage]), int(self._bounds[passage + 1])
        for part in self._parts:
            if start < len(part.rows):
                return part.rows[start:stop]
            start, stop = start - len(part.rows), stop - len(part.rows)
        raise IndexError(passage)


def _join(keys: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the place of each wanted key, or -1; key 0 is never found."""
    if not len(keys):
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(keys, kind="stable")
    places = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    found = order[places]
    return np.where((keys[found] == wanted) & (wanted != 0), found, -1)


def _scan(part: Part, query: Floats) -> Floats:
    """Return the approximate dot product of every row with the query."""
    try:
        import simsimd
    except ImportError:
        exact: Floats = part.rows @ query
        return exact
    codes, scales = quantise(query[None, :])
    dots: NDArray[np.float64] = np.asarray(simsimd.cdist(codes, part.codes, metric="inner"))[0]
    scaled: Floats = (dots * (part.scales * scales[0])).astype(np.float32)
    return scaled
