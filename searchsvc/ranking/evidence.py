"""Whether anything here is relevant at all.

Decided from two kinds of evidence that mean the same for every corpus: which share of the question's
informative words the best section holds, and how far its vector stands above the background. A raw
score would mean something else for every model and question.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from searchsvc.ranking.lexical import LexicalScores

LEXICAL_COVERAGE = 0.25
"""Share of informative words that makes a section relevant by itself."""
VECTOR_MARGIN = 4.0
"""Standard deviations above the background that make a section relevant by itself."""


def membership(words: LexicalScores, ordinals: Sequence[int]) -> NDArray[np.bool_]:
    """Tell which terms which sections hold, or are called by in links: shape ``(terms, sections)``."""
    wanted = np.array(ordinals, np.int32)
    rows = [_among(match.ordinals, wanted) | _among(match.linked, wanted) for match in words.matches]
    return np.array(rows, bool).reshape(len(words.matches), len(wanted))


def coverage(words: LexicalScores, ordinals: Sequence[int]) -> float:
    """Return the largest share, by IDF, of the question's terms that one of these sections holds.

    Terms the corpus does not know count too: they are the most informative.
    """
    idf = np.array([match.idf for match in words.matches])
    if not len(ordinals) or not idf.sum():
        return 0.0
    return float((idf @ membership(words, ordinals)).max() / idf.sum())


def is_relevant(share: float, margin: float | None) -> bool:
    """Decide from the coverage and, where there are vectors, the margin of the best."""
    if share >= LEXICAL_COVERAGE:
        return True
    return margin is not None and margin >= VECTOR_MARGIN


def _among(ordinals: NDArray[np.int32], wanted: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Tell which of ``wanted`` stand in the ascending ``ordinals``."""
    if not len(ordinals):
        return np.zeros(len(wanted), bool)
    places = np.minimum(np.searchsorted(ordinals, wanted), len(ordinals) - 1)
    found: NDArray[np.bool_] = ordinals[places] == wanted
    return found
