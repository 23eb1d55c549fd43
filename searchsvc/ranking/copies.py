"""Sections that say what a better one has said: word for word, or nearly so under the same heading."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from searchsvc.index.records import FIELDS
from searchsvc.index.segments import Segment
from searchsvc.ranking.corpus import Corpus

LIKE = 0.9
"""Share of the different terms of two bodies that both have (their Jaccard similarity) when one is a copy of
the other; not with another heading, since near-alike texts often describe two things."""
_MIN_TERMS = 12
"""Shorter bodies are not compared: a word more or less makes them another text."""
_COMPARED = 20
"""How many of the best sections are compared with each other."""
_TITLE, _HEADING, _BODY = (list(FIELDS).index(name) for name in ("title", "heading", "body"))


@dataclass(slots=True)
class Copies:
    """Copies of sections, by the ordinal of the better one that stands for them."""

    same: dict[int, list[int]] = field(default_factory=dict)
    """Word for word."""
    like: dict[int, list[int]] = field(default_factory=dict)
    """With nearly the same words."""


def collapse(corpus: Corpus, ordinals: Sequence[int]) -> tuple[list[int], Copies]:
    """Move copies of better sections behind all others; return the new order and the copies."""
    copies = Copies()
    kept = _move_same(corpus, ordinals, copies.same)
    kept = _move_like(corpus, kept, copies)
    moved = [*copies.same.values(), *copies.like.values()]
    return [*kept, *(ordinal for group in moved for ordinal in group)], copies


def _move_same(corpus: Corpus, ordinals: Sequence[int], same: dict[int, list[int]]) -> list[int]:
    """Return the sections without those whose text a better one has; the latter are added to ``same``."""
    twins = corpus.twins(np.array(ordinals, np.int64)).tolist()
    known = [twin for twin in twins if twin]
    if len(known) == len(set(known)):
        return list(ordinals)
    first: dict[int, int] = {}
    kept: list[int] = []
    for ordinal, twin in zip(ordinals, twins, strict=True):
        best = first.setdefault(twin or -1 - ordinal, ordinal)
        if best == ordinal:
            kept.append(ordinal)
        else:
            same.setdefault(best, []).append(ordinal)
    return kept


def _move_like(corpus: Corpus, ordinals: Sequence[int], copies: Copies) -> list[int]:
    """Return the sections without those that nearly repeat a better one; these are added to the copies."""
    cells = _Cells(corpus, ordinals[:_COMPARED])
    gone = set[int]()
    for better, other in cells.pairs_of_a_name():
        if better in gone or other in gone or not cells.may_be_like(better, other):
            continue
        one, two = cells.body(better), cells.body(other)
        shared = len(one & two)
        if shared >= LIKE * (len(one) + len(two) - shared):
            gone.add(other)
            copy = ordinals[other]
            copies.like.setdefault(ordinals[better], []).extend((copy, *copies.same.pop(copy, ())))
    return [ordinal for place, ordinal in enumerate(ordinals) if place not in gone]


class _Cells:
    """Terms of some sections, given by their places, in a form in which they can be compared."""

    def __init__(self, corpus: Corpus, ordinals: Sequence[int]) -> None:
        wanted = np.array(ordinals, np.int64)
        self._cells: dict[int, tuple[Segment, list[int]]] = {}
        segments = 0
        for base, segment in corpus.segments:
            mine = np.flatnonzero((wanted >= base) & (wanted < base + len(segment.sections)))
            segments += len(mine) > 0
            cells = (wanted[mine] - base)[:, None] * len(FIELDS) + np.arange(len(FIELDS) + 1)
            for place, bounds in zip(mine.tolist(), segment.stream_bounds[cells].tolist(), strict=True):
                self._cells[place] = segment, bounds
        # The number of a term is another one in every segment, and spelling it takes time.
        self._is_spelled = segments > 1
        self._bodies: dict[int, frozenset[object]] = {}

    def pairs_of_a_name(self) -> Iterator[tuple[int, int]]:
        """Yield the pairs of sections with the same heading, the better one first, in order."""
        named = defaultdict[tuple[object, ...], list[int]](list)
        for place in sorted(self._cells):
            named[self._name(place)].append(place)
        yield from sorted(pair for places in named.values() for pair in combinations(places, 2))

    def may_be_like(self, one: int, two: int) -> bool:
        """Tell whether two bodies are long enough, and of about one length."""
        smaller, larger = sorted((self._size(one), self._size(two)))
        return smaller >= _MIN_TERMS and smaller >= LIKE * larger

    def body(self, place: int) -> frozenset[object]:
        """Return the different terms of the body of a section."""
        if place not in self._bodies:
            self._bodies[place] = frozenset(self._terms(place, _BODY))
        return self._bodies[place]

    def _name(self, place: int) -> tuple[object, ...]:
        """Return the terms of the heading of a section; where it is the note's title, those of the title."""
        return tuple(self._terms(place, _HEADING) or self._terms(place, _TITLE))

    def _size(self, place: int) -> int:
        _, bounds = self._cells[place]
        return bounds[_BODY + 1] - bounds[_BODY]

    def _terms(self, place: int, cell: int) -> list[object]:
        segment, bounds = self._cells[place]
        terms = segment.stream_terms[bounds[cell] : bounds[cell + 1]].tolist()
        return [segment.postings.spell(term) for term in terms] if self._is_spelled else terms
