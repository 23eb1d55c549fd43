"""All channels -> one score a section.

The lexical score is an absolute share of the question, 0 to 1; to it is added, for what is put as a
question, a part of the share that a section holds at all. Vectors add by how far a section stands above
their background, the more the less of the question words can account for; headings that the question says
word for word add a constant, what the question quotes adds a large one where it stands word for word, and
of a parent and its child the lower one is moved down a little.
One set of constants serves all corpora, languages and models; benchmark/RESULTS.md has the measurements.
"""

import heapq
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from searchsvc.index.top import best_places
from searchsvc.items import Mode
from searchsvc.ranking.corpus import Corpus, Mask
from searchsvc.ranking.lexical import LexicalScores, Terms, lexical
from searchsvc.ranking.phrases import phrases_held
from searchsvc.ranking.titles import headings_said
from searchsvc.ranking.vector import VectorScores

Floats = NDArray[np.float32]

VECTOR_WEIGHT = 0.03
"""Of the standing of a vector to the power of 1.5: what stands out counts over-proportionally."""
HELD_WEIGHT = 0.07
"""Of the share of a question that a section holds at all. Most words of a question stand in its answer, once
each; those of other queries are often there by chance, and a section about one of them is wanted."""
WORDLESS_GAIN = 2.0
"""What the vectors of a question count more, at most, when words account for none of it."""
WORDS_ENOUGH = 0.05
"""Share of a question that the best section earns by words, of all that could be earned, from where on
that gain fades: paraphrases earn .02 to .05, most other questions .08 and more."""
PHRASE_BONUS = 0.017
"""For a heading that the question says word for word."""
EXACT_BONUS = 0.1
"""For a heading or title that is the whole question."""
QUOTED_BONUS = 0.15
"""For each text in quotation marks that a section holds word for word: about what the same words often are
worth to a section that has them in another order."""
KIN_LOSS = 0.1
"""What a section loses when its parent or child stands above it: both rarely earn a place."""
POOL = 200
"""How many of the best sections are looked at closely."""
_KIN_DEPTH = 60


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
    terms: Terms,
    vector: VectorScores | None = None,
    *,
    mode: Mode = "hybrid",
    allowed: Mask | None = None,
    related: bool = False,
    everything: bool = False,
) -> Fused:
    """Rank the allowed sections of a corpus; without any evidence one is left out unless ``everything``.

    ``related`` counts related words for words that the corpus holds, too.
    """
    visible = corpus.live if allowed is None else corpus.live & allowed
    if mode == "vector" and vector is not None:
        words = lexical(corpus, Terms())
        pool = best_places(_seen(vector.cosines, visible), POOL)
        return _ordered(pool, vector.cosines[pool], words, vector, frozenset())
    words = lexical(corpus, terms, related=related)
    scores, known, wordless = words.scores.copy(), np.float32(1), 0.0
    if vector is not None and vector.trust >= 1:
        # The model reads all of the question, so that what words cannot earn of it is left to meaning.
        known = np.float32(words.known_share)
        scores *= known
        wordless = _wordless(float(_seen(scores, visible).max(initial=0)))
    if words.held is not None:
        # Trust above 1 stands for sections in other languages, which cannot hold a word of the question.
        readable = 1.0 if vector is None else min(1.0, 2.0 - vector.trust)
        scores += np.float32(HELD_WEIGHT * readable * (1 - wordless)) * known * words.held
    if vector is not None and vector.trust:
        weight = VECTOR_WEIGHT * (vector.trust + WORDLESS_GAIN * wordless)
        # The power of 1.5 as a product: numpy's own power function is twenty times slower.
        scores += np.float32(weight) * vector.standing * np.sqrt(vector.standing)
    pool = best_places(_seen(scores, visible), POOL, -math.inf if everything else 0)
    exact, said = headings_said(corpus, terms.line, words.matches, pool)
    scores[exact] += np.float32(EXACT_BONUS)
    scores[said] += np.float32(PHRASE_BONUS)
    if terms.phrases:
        scores[pool] += np.float32(QUOTED_BONUS) * phrases_held(corpus, terms.phrases, pool)
    fused = _ordered(pool, scores[pool], words, vector, frozenset([*exact.tolist(), *said.tolist()]))
    return _dim_kin(corpus, fused)


def _seen(scores: Floats, visible: Mask) -> Floats:
    """Return the scores, with ``-inf`` for what must not be seen."""
    return scores if visible.all() else np.where(visible, scores, np.float32(-np.inf))


def _wordless(earned: float) -> float:
    """Return how far meaning must do without words, 0 to 1, where they earn the best section this share."""
    return math.exp(-((earned / WORDS_ENOUGH) ** 2))


def _ordered(
    pool: NDArray[np.int64],
    scores: Floats,
    words: LexicalScores,
    vector: VectorScores | None,
    said: frozenset[int],
) -> Fused:
    order = np.lexsort((pool, -scores))
    return Fused(pool[order], scores[order], words, vector, said)


def _dim_kin(corpus: Corpus, fused: Fused) -> Fused:
    """Lower each section once whose parent or child already stands above it, going down the list."""
    best = fused.ordinals[:_KIN_DEPTH]
    places = {ordinal: place for place, ordinal in enumerate(best.tolist())}
    kin = defaultdict[int, list[int]](list)
    for ordinal, parent in zip(places, corpus.parents(best).tolist(), strict=True):
        if parent in places:
            kin[ordinal].append(parent)
            kin[parent].append(ordinal)
    values = {ordinal: float(fused.scores[places[ordinal]]) for ordinal in kin}
    open_items = [(-value, ordinal) for ordinal, value in values.items()]
    placed, dimmed = set[int](), set[int]()
    heapq.heapify(open_items)
    while open_items:
        value, ordinal = heapq.heappop(open_items)
        if ordinal in placed or -value != values[ordinal]:
            continue
        placed.add(ordinal)
        for other in kin[ordinal]:
            if other not in placed and other not in dimmed:
                dimmed.add(other)
                values[other] *= 1 - KIN_LOSS
                heapq.heappush(open_items, (-values[other], other))
    if not dimmed:
        return fused
    scores = fused.scores.copy()
    for ordinal in dimmed:
        scores[places[ordinal]] = values[ordinal]
    return _ordered(fused.ordinals, scores, fused.lexical, fused.vector, fused.said)


def led_by(fused: Fused, ordinal: int) -> Fused:
    """Put one section of a ranking first, by the smallest score that does it."""
    scores = fused.scores.copy()
    scores[fused.ordinals == ordinal] = np.nextafter(scores[0], np.float32(np.inf))
    return _ordered(fused.ordinals, scores, fused.lexical, fused.vector, fused.said)


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
    return max(vectors, key=lambda vector: vector.relevance or 0.0, default=None)
