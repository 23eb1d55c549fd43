"""Sections that say what a better one has said: word for word, or nearly so under the same heading."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from searchsvc.index.records import FIELDS
from searchsvc.ranking.corpus import Corpus

Ordinals = NDArray[np.int64]

LIKE = 0.9
"""Share of the terms of two bodies, repetitions counted, that they have in common when one is a copy of the
other; not with another heading, since near-alike texts often describe two things."""
_MIN_TERMS = 12
"""Shorter bodies are not compared: a word more or less makes them another text."""
_COMPARED = 40
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
    best = np.array(ordinals[:_COMPARED], np.int64)
    sizes = _body_sizes(corpus, best)
    smaller, larger = np.minimum.outer(sizes, sizes), np.maximum.outer(sizes, sizes)
    pairs = np.argwhere(np.triu((smaller >= LIKE * larger) & (smaller >= _MIN_TERMS), 1))
    if not len(pairs):
        return list(ordinals)
    names = {place: _name(corpus, ordinals[place]) for place in np.unique(pairs).tolist()}
    gone = set[int]()
    for better, other in ((ordinals[a], ordinals[b]) for a, b in pairs.tolist() if names[a] == names[b]):
        if better in gone or other in gone or not _is_like(corpus, better, other):
            continue
        gone.add(other)
        copies.like.setdefault(better, []).extend((other, *copies.same.pop(other, ())))
    return [ordinal for ordinal in ordinals if ordinal not in gone]


def _body_sizes(corpus: Corpus, ordinals: Ordinals) -> Ordinals:
    """Return how many terms the body of each section has."""
    sizes = np.zeros(len(ordinals), np.int64)
    for base, segment in corpus.segments:
        mine = (ordinals >= base) & (ordinals < base + len(segment.sections))
        cells = (ordinals[mine] - base) * len(FIELDS) + _BODY
        sizes[mine] = segment.stream_bounds[cells + 1] - segment.stream_bounds[cells]
    return sizes


def _name(corpus: Corpus, ordinal: int) -> list[bytes]:
    """Return the terms of the heading of a section; where it is the note's title, those of the title."""
    return _terms(corpus, ordinal, _HEADING) or _terms(corpus, ordinal, _TITLE)


def _is_like(corpus: Corpus, one: int, other: int) -> bool:
    """Tell whether the bodies of two sections have most of their terms in common."""
    mine, theirs = Counter(_terms(corpus, one, _BODY)), Counter(_terms(corpus, other, _BODY))
    return (mine & theirs).total() >= LIKE * (mine | theirs).total()


def _terms(corpus: Corpus, ordinal: int, cell: int) -> list[bytes]:
    """Return the terms of one field of a section as they are spelled: their numbers differ by segment."""
    base, segment = corpus.segments[corpus.segment_of(ordinal)]
    first = (ordinal - base) * len(FIELDS) + cell
    terms = segment.stream_terms[segment.stream_bounds[first] : segment.stream_bounds[first + 1]]
    return [segment.postings.spell(term) for term in terms.tolist()]
