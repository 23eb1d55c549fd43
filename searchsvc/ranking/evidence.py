"""Whether anything here is relevant at all.

Decided from two kinds of evidence that mean the same for every corpus: which share of the question's
informative words the best section holds, and where its cosine lies between what questions about other
matters get here and what near neighbours get. A raw score would mean something else for every model and
question. Thresholds were chosen so that about 2 % of real questions are lost; see benchmark/RESULTS.md.
"""

from collections.abc import Sequence
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from searchsvc.languages import ideograph_share
from searchsvc.ranking.fuse import Fused
from searchsvc.ranking.lexical import LexicalScores
from searchsvc.ranking.vector import VectorScores

MIN_COVERAGE = 0.25
"""Share of the question's informative words that the best section must hold, when words alone decide."""
MIN_EARNED = 0.03
"""Share of what the question could earn that the best section must earn, when words alone decide."""
MIN_SUM = 0.55
"""Of coverage and relevance together."""
MIN_RELEVANCE = 0.3
"""Of the best vector, when it decides alone."""
IDEOGRAPH_FACTOR = 0.8
"""Pairs of characters overlap, so a question in Chinese matches fewer of its terms than one in English."""
_LOOKED_AT = 3


def membership(words: LexicalScores, ordinals: Sequence[int]) -> NDArray[np.bool_]:
    """Tell which terms which sections hold, or are called by in links: shape ``(terms, sections)``."""
    wanted = np.array(ordinals, np.int32)
    rows = [_among(match.ordinals, wanted) | _among(match.linked, wanted) for match in words.matches]
    return np.array(rows, bool).reshape(len(words.matches), len(wanted))


def coverage(fused: Fused, query: str) -> float:
    """Return the largest share, by IDF, of the question's terms that one of the best sections holds.

    Terms the corpus does not know count too: they are the most informative.
    """
    words = fused.lexical
    weights = np.array([match.idf * match.count for match in words.matches])
    best = fused.ordinals[:_LOOKED_AT].tolist()
    if not best or not weights.sum():
        return 0.0
    share = float((weights @ membership(words, best)).max() / weights.sum())
    return min(share * (1 + IDEOGRAPH_FACTOR * ideograph_share(query)), 1.0)


def is_measured(vector: VectorScores | None) -> TypeGuard[VectorScores]:
    """Tell whether cosines say anything of relevance: measured here, by a model that reads the question."""
    return vector is not None and vector.relevance is not None and vector.trust > 0


def is_relevant(fused: Fused, share: float, *, by_vectors_alone: bool = False) -> bool:
    """Decide from the coverage and, where it means something, the relevance of the best vector.

    ``by_vectors_alone`` is for rankings that took no words into account; where vectors say nothing of
    relevance, such a ranking counts as relevant for lack of evidence.
    """
    if not len(fused.ordinals):
        return False
    relevance = fused.vector.relevance if is_measured(fused.vector) else None
    if by_vectors_alone:
        return relevance is None or relevance >= MIN_RELEVANCE
    if relevance is None:
        earned = float(fused.lexical.scores[fused.ordinals[:_LOOKED_AT]].max()) * fused.lexical.known_share
        return share >= MIN_COVERAGE and earned >= MIN_EARNED
    return relevance + share >= MIN_SUM or relevance >= MIN_RELEVANCE


def _among(ordinals: NDArray[np.int32], wanted: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Tell which of ``wanted`` stand in the ascending ``ordinals``."""
    if not len(ordinals):
        return np.zeros(len(wanted), bool)
    places = np.minimum(np.searchsorted(ordinals, wanted), len(ordinals) - 1)
    found: NDArray[np.bool_] = ordinals[places] == wanted
    return found
