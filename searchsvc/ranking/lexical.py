"""BM25F over postings: how much of what a question could earn each section earns.

For a term with IDF ``i`` and pooled weight ``w`` (see index/postings), a section earns
``i * w / (k + w)``; IDF is ``ln(1 + (N - n + 0.5) / (n + 0.5))`` (Lucene's form, never negative).
The sum is divided by the sum of IDFs, so scores lie in [0, 1) and mean the same for every question.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchsvc.index.postings import Postings
from searchsvc.ranking.corpus import Corpus
from searchsvc.ranking.related import related_words, spelled_nearly
from searchsvc.tokens import is_single_unspaced

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]

K_POOL = 11.0
"""Saturation of the pooled weight; large, since body text has saturated before."""
K_QUERY = 0.7
"""Saturation of repeated words in the question."""
JOINED_COUNT = 0.5
"""What a name made of neighbouring words counts of a word."""
RELATED_SHARE = 0.4
"""What a related word counts of the word itself."""
SPELLED_SHARE = 0.7
"""What a word counts of which that of the question seems to be a misspelling."""


@dataclass(frozen=True, slots=True)
class TermMatch:
    """One term of the question in the corpus."""

    term: str
    idf: float
    count: float
    """How often the question says it, saturated."""
    ordinals: Ints
    """Sections that hold it, ascending within a segment."""
    weights: Floats
    linked: Ints
    """Sections that links call by it."""
    link_weights: Floats
    base_weights: Floats
    """Weight of the term in each linked section itself."""
    numbers: tuple[int, ...]
    """Id of the term in each segment of the corpus, or -1."""
    meant: tuple[str, ...] = ()
    """Terms taken for it, since no section holds it and it may be a misspelling of them."""
    widened: bool = False
    """Whether sections that hold only a related word, or one of ``meant``, are among the ordinals."""

    @property
    def known(self) -> bool:
        """Whether any section holds the term or is called by it."""
        return len(self.ordinals) > 0 or len(self.linked) > 0


@dataclass(frozen=True, slots=True)
class Terms:
    """A question as terms."""

    line: tuple[str, ...] = ()
    """In order, with repetitions and with what ``counted`` leaves out."""
    counted: tuple[str, ...] = ()
    """Those that are scored."""
    joined: tuple[str, ...] = ()
    """Names that neighbouring words would make; they help where they exist and cost nothing where not."""
    phrases: tuple[tuple[str, ...], ...] = ()
    """What stands in quotation marks, of two terms or more."""
    asks: bool = False
    """Whether it is put as a question: then a passage is wanted that holds most of its words at once."""


@dataclass(frozen=True, slots=True)
class LexicalScores:
    """What the lexical and link channels say of every section."""

    scores: Floats
    """Share of the question that a section earns, links included, shape ``(sections,)``."""
    links: Floats
    """The part that incoming links add."""
    matches: tuple[TermMatch, ...]
    """Of the counted terms."""
    total: float
    """Sum of weighted IDFs of the counted terms that the corpus knows."""
    k: float = K_POOL
    held: Floats | None = None
    """For a question, the share of it, by IDF, that each section holds at all, once or often."""

    @property
    def known_share(self) -> float:
        """Share of the question, by IDF, whose terms the corpus knows at all."""
        everything = sum(match.idf * match.count for match in self.matches)
        return self.total / everything if everything else 0.0

    def of_term(self, match: TermMatch, ordinal: int) -> float:
        """Return what one term adds to the score of one section."""
        wanted = np.array([ordinal], np.int32)
        weight = _weights_at(match.ordinals, match.weights, wanted)
        weight += _weights_at(match.linked, match.link_weights, wanted)
        return (
            float(match.idf * match.count / self.total * weight[0] / (self.k + weight[0]))
            if self.total
            else 0.0
        )


def lexical(corpus: Corpus, terms: Terms, *, related: bool = False, k: float = K_POOL) -> LexicalScores:
    """Score every section for the terms of a question.

    Words of the corpus that are forms of a term, or that it may be a misspelling of, count for it a little
    when the corpus does not hold the term itself; forms always when ``related``.
    """
    counts = Counter(terms.counted)
    matches = tuple(
        match_term(corpus, term, n * (1 + K_QUERY) / (n + K_QUERY), related=related)
        for term, n in counts.items()
    )
    extra = [
        match_term(corpus, term, JOINED_COUNT, exact=True)
        for term in dict.fromkeys(terms.joined)
        if term not in counts and corpus.holds(term)
    ]
    total = sum(match.idf * match.count for match in matches if match.known)
    scores, links = np.zeros(len(corpus), np.float32), np.zeros(len(corpus), np.float32)
    for match in (*matches, *extra):
        factor = np.float32(match.idf * match.count / total if total else 0.0)
        # add.at, since indexing with += goes over a long list three times.
        np.add.at(scores, match.ordinals, factor * (match.weights / (k + match.weights)))
        if len(match.linked):
            pooled = match.base_weights + match.link_weights
            more = pooled / (k + pooled) - match.base_weights / (k + match.base_weights)
            np.add.at(links, match.linked, factor * more)
    held = _held(len(corpus), matches, total) if terms.asks else None
    return LexicalScores(scores + links, links, matches, total, k, held)


def _held(count: int, matches: Sequence[TermMatch], total: float) -> Floats:
    """Return which share of the known terms, by IDF, each of ``count`` sections holds or is called by."""
    held = np.zeros(count, np.float32)
    for match in matches:
        share = np.float32(match.idf * match.count / total if total else 0.0)
        np.add.at(held, match.ordinals, share)
        np.add.at(held, match.linked[match.base_weights == 0], share)
    return held


def match_term(
    corpus: Corpus, term: str, count: float = 1.0, *, related: bool = False, exact: bool = False
) -> TermMatch:
    """Find a term in all segments and among the texts of links; ``exact`` looks for no related words."""
    numbers = tuple(segment.postings.find(term) for _, segment in corpus.segments)
    ordinals, weights, frequency = _find(corpus, term, numbers)
    linked, link_weights = _find_links(corpus, term)
    words, meant = list[str](), tuple[str, ...]()
    if related or not (exact or len(ordinals)):
        words = related_words(corpus, term)
        if not (words or len(ordinals) or len(linked)):
            meant = tuple(spelled_nearly(corpus, term))
        share = SPELLED_SHARE if meant else RELATED_SHARE
        ordinals, weights = _with_others(corpus, words or meant, ordinals, weights, share)
        frequency = frequency or len(ordinals)
    frequency = min(frequency, corpus.count)
    return TermMatch(
        term=term,
        idf=math.log(1 + (corpus.count - frequency + 0.5) / (frequency + 0.5)),
        count=count,
        ordinals=ordinals,
        weights=weights,
        linked=linked,
        link_weights=link_weights,
        base_weights=_weights_at(ordinals, weights, linked),
        numbers=numbers,
        meant=meant,
        widened=bool(words or meant),
    )


def _with_others(
    corpus: Corpus, words: Sequence[str], ordinals: Ints, weights: Floats, share: float
) -> tuple[Ints, Floats]:
    """Add the sections of other words at a share of their weight."""
    found, values = [ordinals], [weights]
    for word in words:
        numbers = [segment.postings.find(word) for _, segment in corpus.segments]
        other, other_weights, _ = _find(corpus, word, numbers)
        found.append(other)
        values.append(other_weights * np.float32(share))
    if len(found) == 1:
        return ordinals, weights
    merged, inverse = np.unique(np.concatenate(found), return_inverse=True)
    summed = np.bincount(inverse, weights=np.concatenate(values), minlength=len(merged))
    return merged, summed.astype(np.float32)


def _find(corpus: Corpus, term: str, numbers: Sequence[int]) -> tuple[Ints, Floats, int]:
    """Return sections, weights and document frequency of a term with these ids in the segments."""
    found, weights, frequency = [], [], 0
    for own, (base, segment) in zip(numbers, corpus.segments, strict=True):
        postings = segment.postings
        for number in _meant(postings, term, own):
            sections, values = postings.of(number)
            found.append(sections + np.int32(base) if base else sections)
            weights.append(values)
            frequency += int(postings.frequencies[number])
    ordinals, values = _joined(found, np.int32), _joined(weights, np.float32)
    if is_single_unspaced(term):
        ordinals, inverse = np.unique(ordinals, return_inverse=True)
        values = np.bincount(inverse, weights=values, minlength=len(ordinals)).astype(np.float32)
        frequency = len(ordinals)
    return ordinals, values, frequency


def _meant(postings: Postings, term: str, number: int) -> Sequence[int]:
    """Return the ids of the index terms that a term of the question means: itself, if it is there.

    A single character of a script without blanks means every pair that begins with it.
    """
    if is_single_unspaced(term):
        return postings.prefixed(term)
    return (number,) if number >= 0 else ()


def _find_links(corpus: Corpus, term: str) -> tuple[Ints, Floats]:
    found: list[Ints] = []
    weights: list[Floats] = []
    for view in corpus.anchors:
        for number in _meant(view.postings, term, view.postings.find(term)):
            sections, values = view.postings.of(number)
            places = view.places[sections]
            if not view.is_whole:
                kept = places >= 0
                places, values = places[kept], values[kept]
            found.append(places)
            weights.append(values)
    if not found:
        return np.empty(0, np.int32), np.empty(0, np.float32)
    if len(found) == 1:
        if view.is_ascending:
            return found[0], weights[0]
        order = found[0].argsort()
        return found[0][order], weights[0][order]
    ordinals, inverse = np.unique(_joined(found, np.int32), return_inverse=True)
    summed = np.bincount(inverse, weights=_joined(weights, np.float32), minlength=len(ordinals))
    return ordinals, summed.astype(np.float32)


def _weights_at(ordinals: Ints, weights: Floats, wanted: Ints) -> Floats:
    """Return the weight at each wanted ordinal, 0 where there is none."""
    if not len(ordinals) or not len(wanted):
        return np.zeros(len(wanted), np.float32)
    places = ordinals.searchsorted(wanted)
    is_there = ordinals.take(places, mode="clip") == wanted
    return np.where(is_there, weights.take(places, mode="clip"), np.float32(0))


def _joined(arrays: list[NDArray[Any]], kind: type[np.generic]) -> NDArray[Any]:
    if len(arrays) == 1:
        return arrays[0]
    return np.concatenate([np.empty(0, kind), *arrays])
