"""Words of the corpus that are forms of a word of the question.

For example config and configuration, aislar and aislamiento.
"""

import re
from collections.abc import Iterable
from functools import cache
from typing import Any

from searchsvc.ranking.corpus import Corpus
from searchsvc.tokens import is_unspaced

_MIN_LENGTH = 4
_MIN_SHARE = 0.6
"""Of the longer word, that the shorter one must make up: config in configur, not block in blockchain."""
_NOMINAL = re.compile("[ai]mient$")
"""What Snowball leaves of -amiento and -imiento after a short stem."""
_SCANNED = 400
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
