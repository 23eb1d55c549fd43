"""Sections that say what a better one has said: word for word, or nearly so under the same heading."""

from collections.abc import Sequence
from dataclasses import dataclass, field

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
    for better, other in cells.pairs_of_a_size():
        if better in gone or other in gone or cells.name(better) != cells.name(other):
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
        self._bounds = np.zeros((len(wanted), len(FIELDS) + 1), np.int64)
        self._segments: list[Segment] = [corpus.segments[corpus.segment_of(o)][1] for o in ordinals]
        for base, segment in corpus.segments:
            mine = np.flatnonzero((wanted >= base) & (wanted < base + len(segment.sections)))
            cells = (wanted[mine] - base)[:, None] * len(FIELDS) + np.arange(len(FIELDS) + 1)
            self._bounds[mine] = segment.stream_bounds[cells]
        # The number of a term is another one in every segment, and spelling it takes time.
        self._is_spelled = len({id(segment) for segment in self._segments}) > 1
        self._names: dict[int, list[object]] = {}
        self._bodies: dict[int, frozenset[object]] = {}

    def pairs_of_a_size(self) -> list[tuple[int, int]]:
        """Return the pairs of sections with long bodies of about one length, the better first, in order."""
        sizes = self._bounds[:, _BODY + 1] - self._bounds[:, _BODY]
        least = np.maximum(LIKE * np.maximum(sizes[:, None], sizes), _MIN_TERMS)
        is_pair = np.triu(np.minimum(sizes[:, None], sizes) >= least, 1)
        return [(better, other) for better, other in np.argwhere(is_pair).tolist()]

    def name(self, place: int) -> list[object]:
        """Return the terms of the heading of a section; where it is the note's title, those of the title."""
        if place not in self._names:
            self._names[place] = self._terms(place, _HEADING) or self._terms(place, _TITLE)
        return self._names[place]

    def body(self, place: int) -> frozenset[object]:
        """Return the different terms of the body of a section."""
        if place not in self._bodies:
            self._bodies[place] = frozenset(self._terms(place, _BODY))
        return self._bodies[place]

    def _terms(self, place: int, cell: int) -> list[object]:
        segment = self._segments[place]
        start, stop = self._bounds[place, cell : cell + 2].tolist()
        terms = segment.stream_terms[start:stop].tolist()
        return [segment.postings.spell(term) for term in terms] if self._is_spelled else terms
