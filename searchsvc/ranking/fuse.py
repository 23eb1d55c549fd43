"""All channels -> one score a section.

The lexical score is an absolute share of the question, 0 to 1. Vectors add to it by how far a section
stands above their background, headings that the question says word for word add a constant. One set of
constants serves all corpora, languages and models; benchmark/RESULTS.md has the measurements.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from searchsvc.items import Mode
from searchsvc.ranking.corpus import Corpus, Mask
from searchsvc.ranking.lexical import LexicalScores, lexical
from searchsvc.ranking.titles import headings_said
from searchsvc.ranking.vector import VectorScores

Floats = NDArray[np.float32]

VECTOR_WEIGHT = 0.03
VECTOR_POWER = 1.5
HEADING_BONUS = 0.017
POOL = 200
"""How many of the best sections are looked at closely."""


@dataclass(frozen=True, slots=True)
class Fused:
    """The best sections of a corpus for one question."""

    ordinals: NDArray[np.int64]
    """Best first; ties in order of ordinals."""
    scores: Floats
    """Of these, best first."""
    lexical: LexicalScores
    vector: VectorScores | None
    said: frozenset[int]
    """Sections whose heading the question says."""


def fuse(
    corpus: Corpus,
    terms: Sequence[str],
    vector: VectorScores | None = None,
    *,
    mode: Mode = "hybrid",
    allowed: Mask | None = None,
    related: bool = False,
) -> Fused:
    """Rank the allowed sections of a corpus; a section without any evidence is left out.

    ``related`` counts related words for words that the corpus holds, too.
    """
    words = lexical(corpus, terms if mode != "vector" else [], related=related)
    scores = words.scores
    if vector is not None and mode == "vector":
        scores = np.where(vector.cosines > -np.inf, vector.cosines, np.float32(-np.inf))
        evidence = scores > -np.inf
    else:
        if vector is not None:
            scores = scores + np.float32(VECTOR_WEIGHT * vector.share) * vector.standing**VECTOR_POWER
        evidence = scores > 0
    evidence &= corpus.live if allowed is None else corpus.live & allowed
    pool = _best(scores, evidence, POOL)
    said: NDArray[np.int64] = np.empty(0, np.int64)
    if mode != "vector":
        said = headings_said(corpus, terms, words.matches, pool)
        scores[said] += np.float32(HEADING_BONUS)
    order = np.lexsort((pool, -scores[pool]))
    ordinals = pool[order]
    return Fused(ordinals, scores[ordinals], words, vector, frozenset(said.tolist()))


def _best(scores: Floats, evidence: Mask, count: int) -> NDArray[np.int64]:
    """Return the ordinals of the best ``count`` sections with evidence, in no order."""
    candidates = np.flatnonzero(evidence)
    if len(candidates) <= count:
        return candidates
    values = scores[candidates]
    threshold = np.partition(values, len(values) - count)[len(values) - count]
    above = candidates[values > threshold]
    return np.concatenate([above, candidates[values == threshold][: count - len(above)]])


def collapse(corpus: Corpus, ordinals: Sequence[int]) -> tuple[list[int], dict[int, list[int]]]:
    """Move sections whose text a better one has word for word behind all others.

    Returns the new order, and for each better section the ordinals of its copies.
    """
    twins = corpus.column("twin")[np.array(ordinals, np.int64)].tolist()
    first: dict[int, int] = {}
    kept: list[int] = []
    copies: dict[int, list[int]] = {}
    for ordinal, twin in zip(ordinals, twins, strict=True):
        best = first.setdefault(twin or -1 - ordinal, ordinal)
        if best == ordinal:
            kept.append(ordinal)
        else:
            copies.setdefault(best, []).append(ordinal)
    return [*kept, *(copy for group in copies.values() for copy in group)], copies


def join(rankings: Sequence[Fused]) -> Fused:
    """Fuse the rankings of one question asked in several words; the first counts as much as the others."""
    first = rankings[0]
    if len(rankings) == 1:
        return first
    others = len(rankings) - 1
    total: dict[int, float] = {}
    for ranking in rankings:
        weight = 0.5 if ranking is first else 0.5 / others
        for ordinal, score in zip(ranking.ordinals.tolist(), ranking.scores.tolist(), strict=True):
            total[ordinal] = total.get(ordinal, 0.0) + weight * score
    ordered = sorted(total, key=lambda ordinal: (-total[ordinal], ordinal))[:POOL]
    scores = np.array([total[ordinal] for ordinal in ordered], np.float32)
    said = frozenset().union(*(ranking.said for ranking in rankings))
    return Fused(np.array(ordered, np.int64), scores, _strongest(rankings), _clearest(rankings), said)


def _strongest(rankings: Sequence[Fused]) -> LexicalScores:
    return max(rankings, key=lambda ranking: float(ranking.lexical.scores.max(initial=0))).lexical


def _clearest(rankings: Sequence[Fused]) -> VectorScores | None:
    vectors = [ranking.vector for ranking in rankings if ranking.vector is not None]
    return max(vectors, key=lambda vector: vector.margin, default=None)
