"""What a caller should know of how a question was read, where it changes what to ask next."""

from collections.abc import Mapping

from searchsvc.languages import language_of_question
from searchsvc.ranking.corpus import Corpus
from searchsvc.ranking.evidence import MIN_TRUST
from searchsvc.ranking.fuse import Fused

_MAX_MEANT = 3
"""How many words a misspelt one is said to be taken for."""
_SOME = 0.1
"""Share of the corpus from where on it counts as written in a language, too."""


def taken_for(fused: Fused, words: Mapping[str, str]) -> list[str]:
    """Say which words were taken for others; ``words`` maps terms to the words of the question."""
    return [
        f'no note holds "{words.get(match.term, match.term)}": '
        f"taken for {' or '.join(match.meant[:_MAX_MEANT])}"
        for match in fused.lexical.matches
        if match.meant
    ]


def lacking(corpus: Corpus, fused: Fused, query: str, relevant: bool) -> list[str]:
    """Say which kind of evidence there was none of: meaning, or words."""
    if fused.vector is None:
        return []
    language = language_of_question(query)
    is_foreign = bool(language) and corpus.language_share(language) < _SOME
    if fused.vector.trust < MIN_TRUST and (is_foreign or not relevant):
        return [
            "the model does not read the language of the question: judged by words only; ask in the language "
            "of the notes, too"
        ]
    matches = fused.lexical.matches
    if relevant and matches and not any(match.known for match in matches):
        return ["no note holds any of these words: found by meaning alone, so check that it is what you want"]
    return []
