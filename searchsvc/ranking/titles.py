"""Where a question meets a section outside its body: headings said word for word, titles, names."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from searchsvc.index.records import FIELDS
from searchsvc.index.segments import Segment
from searchsvc.ranking.corpus import Corpus
from searchsvc.ranking.lexical import TermMatch

Ordinals = NDArray[np.int64]

_PLACES = {field: number for number, field in enumerate(FIELDS)}
_HEADING, _TITLE = _PLACES["heading"], _PLACES["title"]
_NAMED = {
    "heading": "heading",
    "title": "title",
    "file": "file name",
    "path": "parent heading",
    "properties": "tags",
}


def headings_said(
    corpus: Corpus, terms: Sequence[str], matches: Sequence[TermMatch], candidates: Ordinals
) -> Ordinals:
    """Return the candidates whose whole heading stands as a phrase in the question.

    Stop words are passed over on both sides. A title heading counts as the note's title.
    """
    by_term = {match.term: match.numbers for match in matches}
    said = [np.empty(0, np.int64)]
    for number, (base, segment) in enumerate(corpus.segments):
        places = candidates[(candidates >= base) & (candidates < base + len(segment.sections))] - base
        ids = [by_term[term][number] for term in terms]
        said.append(places[_are_said(segment, places, ids)] + base)
    return np.concatenate(said)


def places_said(corpus: Corpus, matches: Sequence[TermMatch], ordinal: int) -> list[str]:
    """Return which parts of a section besides its body hold a term of the question."""
    number = corpus.segment_of(ordinal)
    base, segment = corpus.segments[number]
    wanted = {match.numbers[number] for match in matches} - {-1}
    first = (ordinal - base) * len(FIELDS)
    bounds = segment.stream_bounds[first : first + len(FIELDS) + 1].tolist()
    terms = segment.stream_terms[bounds[0] : bounds[-1]].tolist()
    cells = [terms[bounds[n] - bounds[0] : bounds[n + 1] - bounds[0]] for n in range(len(FIELDS))]
    return [label for field, label in _NAMED.items() if not wanted.isdisjoint(cells[_PLACES[field]])]


def _are_said(segment: Segment, places: Ordinals, ids: Sequence[int]) -> NDArray[np.bool_]:
    """Tell for each section whether its heading is a run of ``ids``."""
    cells = places * len(FIELDS)
    starts, stops = segment.stream_bounds[cells + _HEADING], segment.stream_bounds[cells + _HEADING + 1]
    is_title = (starts == stops) & (segment.sections["level"][places] <= 1)
    starts = np.where(is_title, segment.stream_bounds[cells + _TITLE], starts)
    stops = np.where(is_title, segment.stream_bounds[cells + _TITLE + 1], stops)
    said = np.zeros(len(places), bool)
    if not len(segment.stream_terms):
        return said
    firsts = segment.stream_terms[np.minimum(starts, len(segment.stream_terms) - 1)]
    line = _line(ids)
    for number in np.flatnonzero((stops > starts) & np.isin(firsts, ids)):
        said[number] = _line(segment.stream_terms[starts[number] : stops[number]].tolist()) in line
    return said


def _line(terms: Iterable[int]) -> str:
    return f" {' '.join(map(str, terms))} "
