"""Rank by cosine alone, for callers that bring a vector or want a say in what is compared."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from searchsvc.embedding.base import Embedder
from searchsvc.errors import QueryError
from searchsvc.index.catalog import Catalog
from searchsvc.index.open import Frame
from searchsvc.ranking.corpus import Corpus, Mask
from searchsvc.ranking.fuse import Fused, fuse
from searchsvc.ranking.lexical import Terms
from searchsvc.ranking.vector import vector_scores

_BATCH = 4096
_ALL_TRUST = 1.0


@dataclass(frozen=True, slots=True)
class Near:
    """How vectors are compared."""

    vector: NDArray[np.float32] | None = field(default=None, repr=False)
    """Compared instead of that of the question, shape ``(dimension,)``, of length 1."""
    identity: str = ""
    """Of the profile that ``vector`` belongs to."""
    embedder: Embedder | None = None
    """Model that makes the vector of the question; none for the one that serves."""
    min_score: float = -1.0
    """Least cosine of a hit."""
    scan_limit: int = 0
    """At most so many sections are compared, those of the notes changed last; 0 for all."""
    batch_size: int = 0
    """Sections whose vectors are read at a time, in float; 0 to scan the int8 copy of all of them."""


def nearest(
    near: Near,
    query: str,
    roots: Sequence[tuple[str, Frame, Catalog]],
    corpus: Corpus,
    embedder: Embedder | None,
    mask: Mask | None,
) -> tuple[Fused, list[str]]:
    """Return the sections nearest to a vector, and what a caller should know of the comparison.

    Raises ``QueryError`` for a question without a vector, ``EmbeddingError`` when the model fails.
    """
    vector, identity, notices = near.vector, near.identity, list[str]()
    if vector is None and embedder is not None:
        vector, identity = embedder.encode_query(query), embedder.profile.identity
    if vector is None or not np.any(vector):
        raise QueryError("the question has no vector; ask in words, or give a query_vector that is not zero")
    visible = corpus.live if mask is None else corpus.live & mask
    if near.scan_limit or near.batch_size:
        order = _latest_first(roots)
        order = order[(visible & corpus.covered(identity))[order]]
        if 0 < near.scan_limit < len(order):
            notices.append(
                f"only {near.scan_limit} of {len(order)} sections were compared, those changed last: raise "
                "scan_limit, or leave it out"
            )
            order = order[: near.scan_limit]
        cosines = corpus.scanned(identity, vector, order, near.batch_size or _BATCH)
    else:
        cosines = np.where(visible, corpus.cosines(identity, vector), np.float32(-np.inf))
    scores = vector_scores(cosines, _ALL_TRUST, corpus.calibrations(identity))
    kept = np.where(cosines >= near.min_score, cosines, np.float32(-np.inf))
    return fuse(corpus, Terms(), replace(scores, cosines=kept), mode="vector", allowed=mask), notices


def _latest_first(roots: Sequence[tuple[str, Frame, Catalog]]) -> NDArray[np.int64]:
    """Return the ordinals of all sections, those of the notes changed last first, then in order."""
    changed = [np.empty(0)]
    for _, frame, catalog in roots:
        modified = catalog.modified()
        notes, places = np.unique(frame.table["note"], return_inverse=True)
        changed.append(np.array([modified.get(note, 0.0) for note in notes.tolist()], float)[places])
    return np.argsort(-np.concatenate(changed), kind="stable")
