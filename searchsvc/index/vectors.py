"""Vectors of one profile on disk, and exact search over them.

A part holds the vectors of some passages, found by the hash of what was embedded, so that a moved or
renamed section keeps its vectors. Each passage has one row a window. Beside the float rows lies an
int8 copy: the scan reads that (a quarter of the memory traffic), the best are scored again in float.

The int8 score of a row is wrong by a bounded amount. With ``x = c + r`` for a row and ``q = d + e`` for
the query, each split into what its codes say and the rest, ``x·q - c·d = r·q + c·e``; so, since x and q
have length 1, by no more than ``|r| + (1 + |r|) |e|``, where ``|r|`` is at most half a code step in each
dimension. Whatever could still belong to the best by that bound is scored in float as well.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from searchsvc.index.arrays import Array, Blocks, RowFile, read_array, write_arrays
from searchsvc.index.top import best_places

Floats = NDArray[np.float32]

_ROUNDING = np.float32(1e-5)
"""What sums in single precision may be off."""

_BLOCK = 4096
"""Passages scored in float at a time, to bound memory."""

EXACT = 16
"""How many of the best passages are exact, whatever the vectors."""
RESCORED = 32
"""How many of the best by int8 are scored in float to begin with; most often that settles it."""


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
    row_file: RowFile
    """The rows again, for reading a few of them."""


def write_part(parent: Path, keys: Sequence[int], matrices: Sequence[Floats], dimension: int) -> str:
    """Write the vectors of passages, one matrix each, and return the name of the part."""
    rows = np.concatenate([np.empty((0, dimension), np.float32), *matrices])
    counts = np.fromiter((len(matrix) for matrix in matrices), np.int64, len(matrices))
    return _write(parent, np.array(keys, np.uint64), counts, rows)


def merge_parts(parent: Path, parts: Sequence[Part], wanted: NDArray[np.uint64]) -> str:
    """Write the vectors of the wanted passages of several parts into one new part, a block at a time."""
    kept = [np.isin(part.keys, wanted) for part in parts]
    lengths = [np.diff(part.bounds) for part in parts]
    counts = np.concatenate([n[k] for n, k in zip(lengths, kept, strict=True)])
    total, dimension = int(counts.sum()), parts[0].rows.shape[1]

    def rows() -> Iterator[Floats]:
        for part, keep, length in zip(parts, kept, lengths, strict=True):
            mask = np.repeat(keep, length)
            for start in range(0, len(mask), _BLOCK):
                block = mask[start : start + _BLOCK]
                if block.any():
                    yield part.row_file.slice(start, start + len(block))[block]

    arrays: dict[str, Array | Blocks] = {
        "keys": np.concatenate([part.keys[k] for part, k in zip(parts, kept, strict=True)]),
        "bounds": _bounds(counts),
        "rows": Blocks((total, dimension), np.dtype(np.float32), rows()),
        "codes": Blocks((total, dimension), np.dtype(np.int8), (quantise(block)[0] for block in rows())),
        "scales": Blocks((total,), np.dtype(np.float32), (quantise(block)[1] for block in rows())),
    }
    return write_arrays(parent, arrays)


def open_part(parent: Path, name: str) -> Part:
    """Open a part; its arrays are memory maps."""
    folder = parent / name
    arrays = {key: read_array(folder, key) for key in ("keys", "bounds", "rows", "codes", "scales")}
    return Part(name=name, row_file=RowFile(folder, "rows", arrays["rows"]), **arrays)


def quantise(rows: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Return int8 codes and the scale of each row: ``row ≈ code * scale``."""
    scales = np.abs(rows).max(axis=1, initial=0) / 127
    codes = np.rint(rows / np.maximum(scales, 1e-12)[:, None]).astype(np.int8)
    return codes, scales.astype(np.float32)


def _write(parent: Path, keys: NDArray[np.uint64], counts: NDArray[np.int64], rows: Floats) -> str:
    codes, scales = quantise(rows)
    return write_arrays(
        parent, {"keys": keys, "bounds": _bounds(counts), "rows": rows, "codes": codes, "scales": scales}
    )


def _bounds(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])


class VectorView:
    """The vectors of one profile, joined to the sections of a snapshot."""

    def __init__(self, parts: Sequence[Part], section_keys: NDArray[np.uint64]) -> None:
        """Join by key; ``section_keys`` has one key a section, 0 for those that are not searched."""
        keys = np.concatenate([np.empty(0, np.uint64), *(part.keys for part in parts)])
        counts = np.concatenate([np.empty(0, np.int64), *(np.diff(part.bounds) for part in parts)])
        bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        passages = _join(np.where(counts > 0, keys, 0), section_keys)
        wanted = np.unique(passages[passages >= 0])
        self.covered: NDArray[np.bool_] = passages >= 0
        """Which sections have a vector."""
        self.done: NDArray[np.bool_] = _join(keys, section_keys) >= 0
        """Which sections a model has seen, with or without finding words in them."""
        self._parts = [part for part in parts if len(part.rows)]
        self._part_bounds = np.cumsum([0, *(len(part.rows) for part in self._parts)])
        self._scales = np.concatenate([np.empty(0, np.float32), *(part.scales for part in self._parts)])
        self._starts, self._counts = bounds[wanted], counts[wanted]
        self._several = np.flatnonzero(self._counts > 1)
        ends = self._starts + self._counts
        self._several_pairs = np.stack([self._starts, ends], axis=1)[self._several].ravel()
        self._slack = self._widest_scales() * np.float32(math.sqrt(self._dimension()) / 2)
        """What rounding the rows of each passage costs at most."""
        self._widest_slack = self._slack.max(initial=0)
        # Sections without a vector point behind the last passage.
        self._place = np.where(self.covered, np.searchsorted(wanted, passages), len(wanted))

    def cosines(self, query: Floats) -> Floats:
        """Return the cosine of every section with a unit query vector, shape ``(sections,)``.

        A section counts by its best window. Sections without a vector get ``-inf``. The best ``EXACT``
        are exact and no other stands above them; the others are within about 0.01.
        """
        if not len(self._starts) or not np.any(query):
            return np.full(len(self._place), -np.inf, np.float32)
        best, rest = self._approximate(query)
        first = best_places(best, RESCORED)
        exact = self._exact(first, query)
        best[first] = -np.inf
        if len(best) - 1 > len(first):
            doubtful = self._doubtful(best, rest, np.sort(exact)[-min(EXACT, len(first))])
            best[doubtful] = self._exact(doubtful, query)
        best[first] = exact
        return best.take(self._place)

    def _doubtful(self, best: Floats, rest: np.float32, bound: np.float32) -> NDArray[np.int64]:
        """Return the passages whose int8 score leaves open whether their own one reaches a bound."""
        # What rounding the rows costs at most (Cauchy-Schwarz), and what rounding the query does.
        may_be = np.flatnonzero(best[:-1] >= bound - (self._widest_slack * (1 + rest) + rest + 2 * _ROUNDING))
        ceiling = best[may_be] + (self._slack[may_be] * (1 + rest) + rest + _ROUNDING)
        return may_be[ceiling >= bound]

    def scanned(self, query: Floats, sections: NDArray[np.int64], batch: int) -> Floats:
        """Return the exact cosine of some sections, ``-inf`` for all others, shape ``(sections,)``.

        ``batch`` sections are read at a time.
        """
        cosines = np.full(len(self._place), -np.inf, np.float32)
        known = sections[self.covered[sections]]
        for begin in range(0, len(known), batch):
            block = known[begin : begin + batch]
            cosines[block] = self._exact(self._place[block], query)
        return cosines

    def of(self, section: int) -> Floats:
        """Return the float rows of one section, shape ``(windows, dimension)``; none when it has none."""
        place = int(self._place[section])
        if place == len(self._starts):
            return np.empty((0, 0), np.float32)
        start = self._starts[place]
        return self._rows(np.arange(start, start + self._counts[place]))

    def _dimension(self) -> int:
        return self._parts[0].rows.shape[1] if self._parts else 0

    def _widest_scales(self) -> Floats:
        """Return the largest scale among the rows of each passage."""
        widest = self._scales[self._starts] if len(self._starts) else np.empty(0, np.float32)
        if len(self._several):
            padded = np.append(self._scales, np.float32(0))
            widest[self._several] = np.maximum.reduceat(padded, self._several_pairs)[::2]
        return widest

    def _approximate(self, query: Floats) -> tuple[Floats, np.float32]:
        """Return the int8 score of each passage, with ``-inf`` behind the last, and the rest of the query.

        The rest is the length of what the codes of the query do not say of it.
        """
        codes, scales = quantise(query[None, :])
        rows = np.empty(len(self._scales) + 1, np.float32)
        rows[-1] = -np.inf
        for part, start in zip(self._parts, self._part_bounds.tolist(), strict=False):
            _scan(part, codes, rows[start : start + len(part.rows)])
        rows[:-1] *= self._scales * scales[0]
        best = np.empty(len(self._starts) + 1, np.float32)
        np.take(rows, self._starts, out=best[:-1], mode="clip")
        best[-1] = -np.inf
        if len(self._several):
            best[self._several] = np.maximum.reduceat(rows, self._several_pairs)[::2]
        return best, np.float32(np.linalg.norm(query - codes[0] * scales[0]))

    def _exact(self, places: NDArray[np.int64], query: Floats) -> Floats:
        """Return the best float score of the rows of each passage.

        Summed in double precision, so that equal rows score the same whatever else is in the batch.
        """
        best = np.empty(len(places), np.float32)
        for begin in range(0, len(places), _BLOCK):
            block = places[begin : begin + _BLOCK]
            starts, counts = self._starts[block], self._counts[block]
            firsts = np.cumsum(counts) - counts
            rows = self._rows(np.repeat(starts - firsts, counts) + np.arange(counts.sum()))
            products = rows.astype(np.float64) @ query.astype(np.float64)
            best[begin : begin + _BLOCK] = np.maximum.reduceat(products, firsts)
        return best

    def _rows(self, numbers: NDArray[np.int64]) -> Floats:
        """Return rows by number over all parts, not to be written to."""
        owners = np.searchsorted(self._part_bounds, numbers, side="right") - 1
        places = numbers - self._part_bounds[owners]
        rows = [self._parts[o].row_file.row(n) for o, n in zip(owners.tolist(), places.tolist(), strict=True)]
        return np.frombuffer(b"".join(rows), np.float32).reshape(len(numbers), self._dimension())


def _join(keys: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the place of each wanted key, or -1; key 0 is never found."""
    if not len(keys):
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(keys, kind="stable")
    places = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    found = order[places]
    return np.where((keys[found] == wanted) & (wanted != 0), found, -1)


def _scan(part: Part, query: NDArray[np.int8], out: Floats) -> None:
    """Write the integer dot product of every row's codes with those of the query."""
    try:
        import simsimd

        # Not into ``out`` at once: simsimd 6 then returns None without counting it, until Python ends.
        np.copyto(out, np.asarray(simsimd.cdist(query, part.codes, metric="inner"))[0], casting="same_kind")
    except (ImportError, TypeError):
        # TypeError: beside another library of the same maker, simsimd may not know int8.
        for start in range(0, len(out), _BLOCK):
            block = part.codes[start : start + _BLOCK].astype(np.float32)
            np.dot(block, query[0].astype(np.float32), out=out[start : start + _BLOCK])
