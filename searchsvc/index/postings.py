"""Terms of sections -> weighted postings in compressed sparse rows.

A posting's weight is the normalised term frequency of BM25F (Robertson, Zaragoza: The Probabilistic
Relevance Framework, 2009, §3.6): sum over fields of ``weight * x`` with
``x = tf / (1 - b + b * length / average)``; a field may saturate by itself before it is added, as
``x * (k + 1) / (x + k)``. The last saturation and IDF are left to the query, so that anchor text, which
other notes own, can be added to a weight at that time.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]
Floats = NDArray[np.float32]

_BLOCK_TOKENS = 1_000_000
_MAX_REMEMBERED = 20_000


@dataclass(frozen=True, slots=True)
class Field:
    """How one part of a section counts."""

    weight: float
    """Factor on its term frequency."""
    b: float
    """How much its length counts, 0 to 1."""
    k: float = 0.0
    """Its own saturation; 0 for none."""
    counted: bool = False
    """Whether a term in it counts for the term's document frequency: true for what a section itself
    says, false for what it shares with the whole note."""


@dataclass(frozen=True, slots=True)
class Stream:
    """The terms of many sections in reading order, field by field."""

    vocabulary: Sequence[str]
    """Distinct terms; a term's id is its place."""
    terms: Ints
    """Term ids of all cells, one after the other."""
    bounds: NDArray[np.int64]
    """Where each cell starts, shape ``(sections * fields + 1,)``; cell = section * fields + field."""


@dataclass(frozen=True, slots=True)
class Postings:
    """Sections by term, terms in byte order."""

    spelling: NDArray[np.uint8]
    """All terms in UTF-8, end to end."""
    spelling_bounds: NDArray[np.int64]
    """Where each term's spelling starts, shape ``(terms + 1,)``."""
    bounds: NDArray[np.int64]
    """Where each term's postings start, shape ``(terms + 1,)``."""
    sections: Ints
    """Section ordinals, ascending within a term."""
    weights: Floats
    """Normalised frequency of the term in the section."""
    frequencies: Ints
    """Number of sections that count for each term's document frequency, shape ``(terms,)``."""
    remembered: dict[str, int] = field(default_factory=dict, compare=False, repr=False)
    """Ids of terms looked up before; questions repeat their words, and the search is in Python."""

    def spell(self, term: int) -> bytes:
        """Return the UTF-8 spelling of a term."""
        return self.spelling[self.spelling_bounds[term] : self.spelling_bounds[term + 1]].tobytes()

    def vocabulary(self) -> list[str]:
        """Return the spellings of all terms."""
        spelling = self.spelling.tobytes()
        return [spelling[start:end].decode() for start, end in pairwise(self.spelling_bounds.tolist())]

    def find(self, term: str) -> int:
        """Return the id of a term, or -1."""
        number = self.remembered.get(term)
        if number is None:
            wanted = term.encode()
            place = bisect_left(_Spellings(self), wanted)
            number = place if place < len(self.bounds) - 1 and self.spell(place) == wanted else -1
            if len(self.remembered) >= _MAX_REMEMBERED:
                self.remembered.clear()
            self.remembered[term] = number
        return number

    def prefixed(self, prefix: str, limit: int = 1_000) -> range:
        """Return the ids of up to ``limit`` terms that begin with ``prefix``."""
        spellings, wanted = _Spellings(self), prefix.encode()
        start = bisect_left(spellings, wanted)
        stop = bisect_left(spellings, wanted + b"\xff", lo=start)
        return range(start, min(stop, start + limit))

    def of(self, term: int) -> tuple[Ints, Floats]:
        """Return the sections and weights of a term."""
        span = slice(int(self.bounds[term]), int(self.bounds[term + 1]))
        return self.sections[span], self.weights[span]

    def are_in(self, term: int, sections: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell which of some sections hold a term, shape ``(sections,)``."""
        found = self.of(term)[0]
        if not len(found):
            return np.zeros(len(sections), bool)
        places: NDArray[np.bool_] = found.take(found.searchsorted(sections), mode="clip") == sections
        return places


class _Spellings(Sequence[bytes]):
    """The sorted terms, decoded one at a time for binary search."""

    def __init__(self, postings: Postings) -> None:
        self._postings = postings

    def __len__(self) -> int:
        return len(self._postings.bounds) - 1

    def __getitem__(self, term: int) -> bytes:  # type: ignore[override]
        return self._postings.spell(term)


def field_lengths(bounds: NDArray[np.int64], fields: int) -> NDArray[np.float64]:
    """Return the length of every field of every section, shape ``(sections, fields)``."""
    return np.diff(bounds).reshape(-1, fields).astype(np.float64)


def build_postings(stream: Stream, fields: Sequence[Field], averages: NDArray[np.float64]) -> Postings:
    """Invert a stream whose vocabulary is in byte order.

    ``averages`` is the mean length of each field over the sections that have it, shape ``(fields,)``.
    """
    lengths = field_lengths(stream.bounds, len(fields))
    b = np.array([field.b for field in fields])
    norms = 1 - b + b * np.divide(lengths, averages, out=np.ones_like(lengths), where=averages > 0)
    norms = np.maximum(norms, 1e-9).ravel()
    blocks = [_block(stream, norms, fields, *cells) for cells in _blocks(stream.bounds, len(fields))]
    frequencies = np.zeros(len(stream.vocabulary), np.int32)
    for block in blocks:
        frequencies += block[3]
    terms = _joined([block[0] for block in blocks], np.int32)
    order = np.argsort(terms, kind="stable")
    counts = np.bincount(terms, minlength=len(stream.vocabulary))
    sections = _joined([block[1] for block in blocks], np.int32)[order]
    weights = _joined([block[2] for block in blocks], np.float32)[order]
    spellings = [term.encode() for term in stream.vocabulary]
    return Postings(
        spelling=np.frombuffer(b"".join(spellings), dtype=np.uint8),
        spelling_bounds=_starts(np.fromiter(map(len, spellings), np.int64, len(spellings))),
        bounds=_starts(counts),
        sections=sections,
        weights=weights,
        frequencies=frequencies,
    )


def _joined(arrays: Sequence[NDArray[Any]], kind: type[np.generic]) -> NDArray[Any]:
    return np.concatenate([np.empty(0, kind), *arrays])


def _blocks(bounds: NDArray[np.int64], fields: int) -> Iterator[tuple[int, int]]:
    """Yield cell ranges of whole sections that hold a bounded number of terms, to bound memory."""
    starts = bounds[::fields]
    section, last = 0, len(starts) - 1
    while section < last:
        stop = int(np.searchsorted(starts, starts[section] + _BLOCK_TOKENS, side="right")) - 1
        stop = min(max(stop, section + 1), last)
        yield section * fields, stop * fields
        section = stop


def _block(
    stream: Stream, norms: NDArray[np.float64], fields: Sequence[Field], first: int, last: int
) -> tuple[Ints, Ints, Floats, Ints]:
    """Return term, section and weight of every posting of a range of cells, by term, then section.

    The last array counts, for each term, the sections in which a counted field holds it.
    """
    terms = stream.terms[stream.bounds[first] : stream.bounds[last]].astype(np.int64)
    lengths = np.diff(stream.bounds[first : last + 1])
    cells = last - first
    keys, tf = np.unique(terms * cells + np.repeat(np.arange(cells), lengths), return_counts=True)
    if not len(keys):
        return (
            *(np.empty(0, np.int32),) * 2,
            np.empty(0, np.float32),
            np.zeros(len(stream.vocabulary), np.int32),
        )
    cell, kind = keys % cells, keys % len(fields)
    x = tf / norms[first + cell]
    k = np.array([field.k for field in fields])[kind]
    x = np.where(k > 0, x * (k + 1) / (x + k), x)
    firsts = np.flatnonzero(np.diff(keys // len(fields), prepend=-1))
    weights = np.add.reduceat(x * np.array([field.weight for field in fields])[kind], firsts)
    term = (keys[firsts] // cells).astype(np.int32)
    counted = np.maximum.reduceat(np.array([field.counted for field in fields])[kind], firsts)
    return (
        term,
        ((first + cell[firsts]) // len(fields)).astype(np.int32),
        weights.astype(np.float32),
        np.bincount(term[counted], minlength=len(stream.vocabulary)).astype(np.int32),
    )


def merge_streams(streams: Sequence[Stream]) -> Stream:
    """Join streams end to end under one vocabulary in byte order."""
    # Code points sort as their bytes in UTF-8 do.
    vocabulary = sorted(set().union(*(stream.vocabulary for stream in streams)))
    places = {term: place for place, term in enumerate(vocabulary)}
    terms = np.empty(sum(len(stream.terms) for stream in streams), np.int32)
    bounds, shift = [np.zeros(1, np.int64)], 0
    for stream in streams:
        remap = np.fromiter(map(places.__getitem__, stream.vocabulary), np.int32, len(stream.vocabulary))
        if len(stream.terms):
            np.take(remap, stream.terms, out=terms[shift : shift + len(stream.terms)])
        bounds.append(np.asarray(stream.bounds[1:]) + shift)
        shift += len(stream.terms)
    return Stream(vocabulary, terms, np.concatenate(bounds))


def _starts(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
