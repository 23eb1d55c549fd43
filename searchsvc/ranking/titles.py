"""Where a question meets a section outside its body: headings said word for word, titles, names."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from searchsvc.index.records import FIELDS
from searchsvc.index.segments import Segment
from searchsvc.ranking.corpus import Corpus
from searchsvc.ranking.lexical import TermMatch

Ordinals = NDArray[np.int64]
Mask = NDArray[np.bool_]

_PLACES = {field: number for number, field in enumerate(FIELDS)}
_BODY = _PLACES["body"]
_TITLE, _ALIASES, _HEADING = 0, 1, 2
_CELLS = np.arange(4)
"""The title, aliases and heading of a section lie side by side, and what follows bounds them."""
_LABELS = {
    _PLACES["heading"]: "heading",
    _PLACES["title"]: "title",
    _PLACES["aliases"]: "alias",
    _PLACES["file"]: "file name",
    _PLACES["path"]: "parent heading",
    _PLACES["properties"]: "tags/properties",
}


def headings_said(
    corpus: Corpus, terms: Sequence[str], matches: Sequence[TermMatch], candidates: Ordinals
) -> tuple[Ordinals, Ordinals]:
    """Return the candidates whose heading is the question, and those whose heading stands in it as a phrase.

    A level-1 heading counts as the note's title; a note's first section also answers to its title and
    aliases. Stop words are passed over on both sides.
    """
    by_term = {match.term: match.numbers for match in matches}
    exact, said = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for number, (base, segment) in enumerate(corpus.segments):
        places = candidates[(candidates >= base) & (candidates < base + len(segment.sections))] - base
        ids = [by_term[term][number] if term in by_term else -1 for term in terms]
        is_exact, is_said = _compare(segment, places, ids)
        exact.append(places[is_exact] + base)
        said.append(places[is_said & ~is_exact] + base)
    return np.concatenate(exact), np.concatenate(said)


def places_said(corpus: Corpus, matches: Sequence[TermMatch], ordinal: int) -> list[str]:
    """Return which parts of a section besides its body hold a term of the question."""
    number = corpus.segment_of(ordinal)
    base, segment = corpus.segments[number]
    first = (ordinal - base) * len(FIELDS)
    bounds = segment.stream_bounds[first : first + _BODY + 1].tolist()
    terms = segment.stream_terms[bounds[0] : bounds[-1]].tolist()
    wanted = {match.numbers[number] for match in matches}.intersection(terms)
    if not wanted:
        return []
    cells = [terms[start - bounds[0] : stop - bounds[0]] for start, stop in pairwise(bounds)]
    return [label for place, label in _LABELS.items() if not wanted.isdisjoint(cells[place])]


def _compare(segment: Segment, places: Ordinals, ids: Sequence[int]) -> tuple[Mask, Mask]:
    """Tell for each section whether its heading is ``ids``, and whether it is a run of them."""
    exact, said = np.zeros(len(places), bool), np.zeros(len(places), bool)
    table = segment.sections
    # One look at the bounds of the three cells of every section.
    bounds = segment.stream_bounds[places[:, None] * len(FIELDS) + _CELLS]
    starts, stops = bounds[:, :-1], bounds[:, 1:]
    is_title = (starts[:, _HEADING] == stops[:, _HEADING]) & (table["level"][places] <= 1)
    is_first = (places == 0) | (table["note"][places] != table["note"][np.maximum(places - 1, 0)])
    applies = np.stack([is_title | is_first, is_first, ~is_title], axis=1)
    sizes = stops - starts
    # The title of a note can only be the question, not stand in it, for a section with a heading of its own.
    may_stand = applies & (sizes > 0) & (sizes <= len(ids))
    may_stand[:, _TITLE] &= is_title | (sizes[:, _TITLE] == len(ids))
    cells = np.flatnonzero(may_stand)
    is_run, is_whole = _runs(
        segment.stream_terms, starts.ravel()[cells], sizes.ravel()[cells], np.array(ids, np.int32)
    )
    number, field = np.divmod(cells[is_run], may_stand.shape[1])
    said[number[(field != _TITLE) | is_title[number]]] = True
    exact[number[is_whole[is_run]]] = True
    return exact, said


def _runs(
    stream: NDArray[np.int32], starts: Ordinals, lengths: Ordinals, line: NDArray[np.int32]
) -> tuple[Mask, Mask]:
    """Tell which cells of a stream, by start and length, are runs of a line, and which are all of it."""
    # Where in the line each cell may begin; most cells are done with after a word. Flat, since numpy goes
    # through a table of two dimensions ten times slower.
    begins = np.flatnonzero(stream[starts][:, None] == line)
    cells, places = np.divmod(begins, max(len(line), 1))
    for offset in range(1, int(lengths.max(initial=0))):
        fits = lengths[cells] + places <= len(line)
        goes_on = fits & (offset < lengths[cells])
        words = stream[starts[cells[goes_on]] + offset]
        fits[goes_on] = words == line[places[goes_on] + offset]
        cells, places = cells[fits], places[fits]
    is_run, is_whole = np.zeros(len(starts), bool), np.zeros(len(starts), bool)
    is_run[cells] = True
    is_whole[cells] = lengths[cells] == len(line)
    return is_run, is_whole
