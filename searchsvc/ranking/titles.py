"""Where a question meets a section outside its body: headings said word for word, titles, names."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from searchsvc.index.records import FIELDS
from searchsvc.index.segments import Segment
from searchsvc.ranking.corpus import Corpus
from searchsvc.tokens import STOP_WORDS

_HEADING = list(FIELDS).index("heading")
_TITLE = list(FIELDS).index("title")


def headings_said(corpus: Corpus, terms: Sequence[str], candidates: Iterable[int]) -> NDArray[np.int64]:
    """Return the candidates whose whole heading stands as a phrase in the question.

    Stop words are passed over on both sides. A title heading counts as the note's title.
    """
    said = _Phrases(corpus, terms)
    return np.array([ordinal for ordinal in candidates if said.holds(ordinal)], np.int64)


_NAMED = {
    "heading": "heading",
    "title": "title",
    "file": "file name",
    "path": "parent heading",
    "properties": "tags",
}


def places_said(corpus: Corpus, terms: Iterable[str], ordinal: int) -> list[str]:
    """Return which parts of a section besides its body hold a term of the question."""
    number = int(np.searchsorted([base for base, _ in corpus.segments], ordinal, side="right")) - 1
    base, segment = corpus.segments[number]
    wanted = {segment.postings.find(term) for term in terms} - {-1}
    fields = list(FIELDS)
    return [
        label
        for field, label in _NAMED.items()
        if wanted & set(_cell(segment, ordinal - base, fields.index(field)))
    ]


class _Phrases:
    """Looks headings up in the forward stream of each segment, as term ids."""

    def __init__(self, corpus: Corpus, terms: Sequence[str]) -> None:
        self._corpus = corpus
        self._terms = terms
        self._starts = [base for base, _ in corpus.segments]
        self._lines: dict[int, str] = {}
        self._stops: dict[int, frozenset[int]] = {}

    def holds(self, ordinal: int) -> bool:
        number = int(np.searchsorted(self._starts, ordinal, side="right")) - 1
        base, segment = self._corpus.segments[number]
        if number not in self._lines:
            find = segment.postings.find
            self._lines[number] = _line(find(term) for term in self._terms)
            self._stops[number] = frozenset(find(word) for word in STOP_WORDS) - {-1}
        heading = _cell(segment, ordinal - base, _HEADING)
        if not heading and segment.sections["level"][ordinal - base] <= 1:
            heading = _cell(segment, ordinal - base, _TITLE)
        words = [term for term in heading if term not in self._stops[number]] or heading
        return bool(words) and _line(words) in self._lines[number]


def _cell(segment: Segment, place: int, field: int) -> list[int]:
    cell = place * len(FIELDS) + field
    start, stop = int(segment.stream_bounds[cell]), int(segment.stream_bounds[cell + 1])
    terms: list[int] = segment.stream_terms[start:stop].tolist()
    return terms


def _line(terms: Iterable[int]) -> str:
    return f" {' '.join(map(str, terms))} "
