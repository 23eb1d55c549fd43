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


def reasons(
    corpus: Corpus,
    ordinal: int,
    fused: Fused,
    found: Sequence[tuple[TermMatch, bool]],
    spoken: Spoken,
    text: Callable[[], str],
) -> tuple[str, ...]:
    """Say what matched: words of the question, the parts they stand in, links, meaning.

    ``found`` are the terms that the section holds, the most telling first, each with whether it holds the
    term as such or a related word; ``text`` gives what it says.
    """
    terms = [match.term for match, _ in found]
    related = {match.term for match, is_itself in found if not is_itself}
    pairs = {term for term in terms if is_unspaced(term)}
    runs = _shared_runs(spoken.runs, pairs, unicodedata.normalize("NFKC", text())) if pairs else {}
    said = _said(terms, related, spoken, runs)
    why = [", ".join(said[:_MAX_WORDS])] if said else []
    places = places_said(corpus, [match for match, _ in found], ordinal)[:_MAX_PLACES]
    if fused.lexical.links[ordinal] > 0:
        places.append("links")
    standing = float(fused.vector.standing[ordinal]) if fused.vector is not None else 0.0
    if standing >= _MEANING_STANDING or (standing > 0 and not why and not places):
        places.append("meaning")
    return (*why, "+".join(places)) if places else tuple(why)


def _said(
    terms: Sequence[str], related: Collection[str], spoken: Spoken, runs: Mapping[str, str]
) -> list[str]:
    """Return the words that terms stand for: each whole if it is there, else what is there of it.

    Of a word without any part that is there, it is told that a related one is.
    """
    words = {term: spoken.words.get(term, term) for term in terms}
    parts = {term: runs.get(term) or spoken.parts.get(term, term) for term in terms}
    held = [term for term in terms if term not in related]
    whole, in_part = {words[t] for t in held if parts[t] == words[t]}, {words[t] for t in held}
    said = list[str]()
    for term, word in words.items():
        if word in whole:
            said.append(word)
        elif term not in related:
            said.append(parts[term])
        elif word not in in_part:
            said.append(_LIKE + word)
    return list(dict.fromkeys(said))


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
