"""Words of the corpus that are forms of a word of the question, or what it was meant to be.

For example config and configuration, aislar and aislamiento; hardlnik for hardlink.
"""

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from os.path import commonprefix
from typing import Any

import numpy as np

from searchsvc.index.postings import Postings
from searchsvc.ranking.corpus import Corpus
from searchsvc.tokens import is_unspaced

_MIN_LENGTH = 4
_MIN_SHARE = 0.6
"""Of the longer word, that the shorter one must make up: config in configur, not block in blockchain."""
_NOMINAL = re.compile("[ai]mient$")
"""What Snowball leaves of -amiento and -imiento after a short stem."""
_MIN_SPELLED = 5
"""Letters from where on a word may be misspelt: one edit makes too many of the shorter ones another word."""
_SAME_START = 2
"""Letters that a misspelt word shares with the word that was meant; few slips are in the first ones."""
_SCANNED = 400
_SCANNED_SPELLINGS = 20_000
_MAX_RELATED = 8


def related_words(corpus: Corpus, term: str) -> list[str]:
    """Return indexed terms that extend ``term``, are its beginning, or share its Spanish stem."""
    if len(term) < _MIN_LENGTH or is_unspaced(term) or not term.isalpha():
        return []
    wanted = _spanish_stem(term)
    found = {
        word
        for word in _neighbours(corpus, term[:_MIN_LENGTH])
        if word != term and (_extends(word, term) or _extends(term, word) or _spanish_stem(word) == wanted)
    }
    return sorted(found, key=lambda word: (abs(len(word) - len(term)), word))[:_MAX_RELATED]


def spelled_nearly(corpus: Corpus, term: str) -> list[str]:
    """Return indexed terms that ``term`` becomes by one letter left out, added or changed, or two swapped.

    Those that most sections hold come first. Terms are stems, so that slips in an ending are seldom seen
    here; ``related_words`` finds some of them.
    """
    if len(term) < _MIN_SPELLED or is_unspaced(term) or not term.isalpha():
        return []
    found = Counter[str]()
    for _, segment in corpus.segments:
        for number in _of_like_length(segment.postings, term):
            word = segment.postings.spell(number).decode()
            if word.isalpha() and len(word) >= _MIN_SPELLED - 1 and _is_one_edit(word, term):
                found[word] += int(segment.postings.frequencies[number])
    return sorted(found, key=lambda word: (-found[word], word))[:_MAX_RELATED]


def _of_like_length(postings: Postings, term: str) -> Iterable[int]:
    numbers = postings.prefixed(term[:_SAME_START], _SCANNED_SPELLINGS)
    sizes = np.diff(postings.spelling_bounds[numbers.start : numbers.stop + 1])
    slack = 1 if term.isascii() else 4
    for place in np.flatnonzero(abs(sizes - len(term.encode())) <= slack).tolist():
        yield numbers.start + place


def _is_one_edit(one: str, other: str) -> bool:
    """Tell whether the optimal string alignment distance of two different words is 1."""
    if abs(len(one) - len(other)) > 1:
        return False
    start = len(commonprefix([one, other]))
    one, other = one[start:], other[start:]
    while one and other and one[-1] == other[-1]:
        one, other = one[:-1], other[:-1]
    return max(len(one), len(other)) == 1 or (len(one) == 2 and one == other[::-1])


def _extends(longer: str, shorter: str) -> bool:
    """Tell whether a word continues another by no more than an ending."""
    return longer.startswith(shorter) and len(shorter) >= _MIN_SHARE * len(longer)


def _neighbours(corpus: Corpus, prefix: str) -> Iterable[str]:
    for _, segment in corpus.segments:
        for number in segment.postings.prefixed(prefix, _SCANNED):
            word = segment.postings.spell(number).decode()
            if word.isalpha():
                yield word


def _spanish_stem(word: str) -> str:
    """Return the stem of a Spanish word; of another, or one with hardly any stem, the word itself."""
    stem: str = _NOMINAL.sub("", _spanish_stemmer().stemWord(word))
    return stem if len(stem) >= _MIN_LENGTH else word


@cache
def _spanish_stemmer() -> Any:
    import Stemmer

    return Stemmer.Stemmer("spanish")
