"""Whether anything here is relevant at all.

Decided from two kinds of evidence that mean the same for every corpus: which share of the question's
informative words the best section holds, and how far its vector stands above the background. A raw
score would mean something else for every model and question.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from searchsvc.ranking.lexical import LexicalScores, TermMatch

LEXICAL_COVERAGE = 0.25
"""Share of informative words that makes a section relevant by itself."""
VECTOR_MARGIN = 4.0
"""Standard deviations above the background that make a section relevant by itself."""


def coverage(words: LexicalScores, ordinals: Iterable[int]) -> float:
    """Return the largest share, by IDF, of the question's terms that one of these sections holds.

    Terms the corpus does not know count too: they are the most informative.
    """
    total = sum(match.idf for match in words.matches)
    if not total:
        return 0.0
    return max((sum(m.idf for m in matched(words, o)) / total for o in ordinals), default=0.0)


def matched(words: LexicalScores, ordinal: int) -> list[TermMatch]:
    """Return the terms that a section holds or is called by in links."""
    return [
        match for match in words.matches if _holds(match.ordinals, ordinal) or _holds(match.linked, ordinal)
    ]


def is_relevant(share: float, margin: float | None) -> bool:
    """Decide from the coverage and, where there are vectors, the margin of the best."""
    if share >= LEXICAL_COVERAGE:
        return True
    return margin is not None and margin >= VECTOR_MARGIN


def _holds(ordinals: NDArray[np.int32], ordinal: int) -> bool:
    place = int(np.searchsorted(ordinals, ordinal))
    return place < len(ordinals) and int(ordinals[place]) == ordinal
