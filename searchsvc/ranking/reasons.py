"""Why a section was found, in a few words: what it shares with the question, and where."""

import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from searchsvc.ranking.corpus import Corpus
from searchsvc.ranking.fuse import Fused
from searchsvc.ranking.lexical import TermMatch
from searchsvc.ranking.titles import places_said
from searchsvc.tokens import is_unspaced

_MAX_WORDS = 4
_MAX_PLACES = 2
_MEANING_STANDING = 1.0
"""From where on meaning is a reason beside others."""
_LIKE = "~"
"""Stands before a word of the question of which the section holds a related one only."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """A question in the words in which it was asked."""

    words: Mapping[str, str]
    """The word that each term comes from, in lower case."""
    parts: Mapping[str, str]
    """The part of that word that the term stands for; often all of it."""
    runs: Sequence[str] = ()
    """What it says in scripts without blanks, of which terms are pairs of characters."""


class Reasons:
    """Tells why sections of one ranking were found."""

    def __init__(self, corpus: Corpus, fused: Fused, spoken: Spoken) -> None:
        self._corpus, self._fused, self._spoken = corpus, fused, spoken
        terms = [match.term for match in fused.lexical.matches]
        self._pairs = frozenset(term for term in terms if is_unspaced(term))
        self._words = {term: spoken.words.get(term, term) for term in terms}
        self._parts = {term: spoken.parts.get(term, term) for term in terms}

    def of(
        self, ordinal: int, found: Sequence[tuple[TermMatch, bool]], text: Callable[[], str]
    ) -> tuple[str, ...]:
        """Say what matched: words of the question, the parts they stand in, links, meaning.

        ``found`` are the terms that the section holds, the most telling first, each with whether it holds
        the term as such or a related word; ``text`` gives what it says.
        """
        said = self._said({match.term: is_itself for match, is_itself in found}, text)
        why = [", ".join(said[:_MAX_WORDS])] if said else []
        places = places_said(self._corpus, [match for match, _ in found], ordinal)[:_MAX_PLACES]
        if self._fused.lexical.links[ordinal] > 0:
            places.append("links")
        vector = self._fused.vector
        standing = float(vector.standing[ordinal]) if vector is not None else 0.0
        if standing >= _MEANING_STANDING or (standing > 0 and not why and not places):
            places.append("meaning")
        return (*why, "+".join(places)) if places else tuple(why)

    def _said(self, found: Mapping[str, bool], text: Callable[[], str]) -> list[str]:
        """Return the words that terms stand for: each whole if it is there, else what is there of it.

        Of a word without any part that is there, it is told that a related one is. ``found`` maps terms to
        whether the section holds them as such.
        """
        words, parts, pairs = self._words, self._parts, self._pairs.intersection(found)
        if pairs:
            said_of_all = unicodedata.normalize("NFKC", text())
            parts = parts | _shared_runs(self._spoken.runs, pairs, said_of_all)
        held = [term for term, is_itself in found.items() if is_itself]
        whole, in_part = {words[t] for t in held if parts[t] == words[t]}, {words[t] for t in held}
        said = dict[str, None]()
        for term, is_itself in found.items():
            word = words[term]
            if word in whole:
                said[word] = None
            elif is_itself:
                said[parts[term]] = None
            elif word not in in_part:
                said[_LIKE + word] = None
        return list(said)


def _shared_runs(runs: Sequence[str], pairs: Collection[str], text: str) -> dict[str, str]:
    """Return the longest run of characters, for each pair in it, that the question and a text share."""
    longest: dict[str, str] = {}
    for run in runs:
        start = 0
        while start < len(run) - 1:
            end = start + 2
            if run[start:end] in pairs:
                while end < len(run) and run[end - 1 : end + 1] in pairs and run[start : end + 1] in text:
                    end += 1
                for at in range(start, end - 1):
                    pair = run[at : at + 2]
                    longest[pair] = max(longest.get(pair, ""), run[start:end], key=len)
            start = end - 1
    return longest


def held_as_such(corpus: Corpus, matches: Sequence[TermMatch], ordinals: Sequence[int]) -> NDArray[np.bool_]:
    """Tell which of the sections that match a term hold it, or are called by it, not related words only.

    The shape is ``(terms, sections)``.
    """
    wanted = np.array(ordinals, np.int64)
    held = np.ones((len(matches), len(wanted)), bool)
    for row, match in zip(held, matches, strict=True):
        if not match.widened:
            continue
        row[:] = np.isin(wanted, match.linked)
        for number, (base, segment) in zip(match.numbers, corpus.segments, strict=True):
            if number >= 0:
                row |= segment.postings.are_in(number, wanted - base)
    return held
