"""Words of the corpus that are forms of a word of the question: config ~ configuration, aislar ~ aislamiento."""

from collections.abc import Iterable
from functools import cache
from typing import Any

from searchsvc.ranking.corpus import Corpus
from searchsvc.tokens import is_unspaced

_MIN_LENGTH = 4
_SCANNED = 400
_MAX_RELATED = 8


def related_words(corpus: Corpus, term: str) -> list[str]:
    """Return indexed terms that extend ``term``, are its beginning, or share its Spanish stem."""
    if len(term) < _MIN_LENGTH or is_unspaced(term) or not term.isalpha():
        return []
    stem = _spanish_stemmer()
    wanted = stem.stemWord(term)
    found = {
        word: None
        for word in _neighbours(corpus, term[:_MIN_LENGTH])
        if word != term and (word.startswith(term) or term.startswith(word) or stem.stemWord(word) == wanted)
    }
    return sorted(found, key=lambda word: (abs(len(word) - len(term)), word))[:_MAX_RELATED]


def _neighbours(corpus: Corpus, prefix: str) -> Iterable[str]:
    for _, segment in corpus.segments:
        for number in segment.postings.prefixed(prefix, _SCANNED):
            word = segment.postings.spell(number).decode()
            if word.isalpha():
                yield word


@cache
def _spanish_stemmer() -> Any:
    import Stemmer

    return Stemmer.Stemmer("spanish")
