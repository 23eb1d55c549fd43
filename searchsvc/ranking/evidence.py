"""Whether anything here is relevant at all.

Decided from two kinds of evidence that mean the same for every corpus: which share of the question's
informative words a section holds, and where its cosine lies between what questions about other
matters get here and what near neighbours get. A raw score would mean something else for every model and
question. Thresholds were chosen so that about 2 % of real questions are lost; see benchmark/RESULTS.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
"""Of coverage and relevance together; a cosine below the background takes nothing from the words."""
MIN_LED = 0.4
"""Share of the question that the best sections must hold; else one of the pool that holds ``MIN_SUM`` leads.
In a question of two or three words a frequent one in headings outdoes the rare one, which says what is
meant."""
MIN_TERMS = 2
"""How many terms of a question the best section must hold, when words alone decide and it has more."""
MIN_RELEVANCE = 0.27
"""Of the best vector, when it decides alone."""
NEAR_RELEVANCE = 0.2
"""Of the best vector, from where on a section is worth a look although it does not count as relevant: four
of five paraphrases that are not recognised lie above, and four of five foreign questions below."""
MIN_TRUST = 0.9
"""Share of a question that a model must read for its cosines to say whether anything is relevant: to one
that does not, all texts in that script are alike."""
IDEOGRAPH_FACTOR = 0.8
"""Pairs of characters overlap, so a question in Chinese matches fewer of its terms than one in English."""
_LOOKED_AT = 3


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for the best sections of a ranking."""

    coverage: float
    """Largest share, by IDF, of the question's terms that one of them holds. Terms the corpus does not know
    count too: they are the most informative."""
    earned: float
    """Largest share that one of them earns of what the question could earn."""
    relevance: float | None
    """Of the best vector; none where cosines say nothing of relevance."""
    held_by_chance: bool = False
    """Whether one term is all that they hold of a question with more than ``MIN_TERMS``."""
    holder: int | None = None
    """Ordinal of a section that should lead, since it holds most of the question and the best hold little."""

    @property
    def is_near(self) -> bool:
        """Whether the best section is near by meaning, be it too far to count as relevant."""
        return self.relevance is not None and self.relevance >= NEAR_RELEVANCE

    def is_relevant(self, *, by_vectors_alone: bool = False) -> bool:
        """Decide from coverage and relevance, or for lack of the latter by words.

        ``by_vectors_alone`` is for rankings that took no words into account; where vectors say nothing of
        relevance, such a ranking counts as relevant for lack of evidence.
        """
        if by_vectors_alone:
            return self.relevance is None or self.relevance >= MIN_RELEVANCE
        if self.coverage >= MIN_SUM:
            return True
        if self.relevance is None:
            is_held = self.coverage >= MIN_COVERAGE and not self.held_by_chance
            return is_held and self.earned >= MIN_EARNED
        return self.relevance >= MIN_RELEVANCE or max(self.relevance, 0.0) + self.coverage >= MIN_SUM


def weigh(fused: Fused, query: str) -> Evidence:
    """Return the evidence that a ranking answers a question."""
    words, best = fused.lexical, fused.ordinals[:_LOOKED_AT].tolist()
    relevance = fused.vector.relevance if is_measured(fused.vector) else None
    weights = np.array([match.idf * match.count for match in words.matches])
    if not best or not weights.sum():
        return Evidence(0.0, 0.0, relevance)
    factor = 1 + IDEOGRAPH_FACTOR * ideograph_share(query)
    held, factors = membership(words, best), weights / weights.sum() * factor
    shares = factors @ held
    evidence = Evidence(
        coverage=min(float(shares.max()), 1.0),
        earned=float(words.scores[best].max()) * words.known_share * factor,
        relevance=relevance,
        held_by_chance=len(weights) > MIN_TERMS and held[:, shares.argmax()].sum() < MIN_TERMS,
    )
    if evidence.coverage >= MIN_LED:
        return evidence
    shares = factors @ membership(words, fused.ordinals.tolist())
    if shares.max() < MIN_SUM:
        return evidence
    return replace(
        evidence, coverage=min(float(shares.max()), 1.0), holder=int(fused.ordinals[shares.argmax()])
    )


def membership(words: LexicalScores, ordinals: Sequence[int]) -> NDArray[np.bool_]:
    """Tell which terms which sections hold, or are called by in links: shape ``(terms, sections)``."""
    wanted = np.array(ordinals, np.int32)
    held = np.empty((len(words.matches), len(wanted)), bool)
    for row, match in zip(held, words.matches, strict=True):
        row[:] = _among(match.ordinals, wanted)
        if len(match.linked):
            row |= _among(match.linked, wanted)
    return held


def is_measured(vector: VectorScores | None) -> TypeGuard[VectorScores]:
    """Tell whether cosines say anything of relevance: measured here, by a model that reads the question."""
    return vector is not None and vector.relevance is not None and vector.trust >= MIN_TRUST


def _among(ordinals: NDArray[np.int32], wanted: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Tell which of ``wanted`` stand in the ascending ``ordinals``."""
    if not len(ordinals):
        return np.zeros(len(wanted), bool)
    found: NDArray[np.bool_] = ordinals.take(ordinals.searchsorted(wanted), mode="clip") == wanted
    return found
