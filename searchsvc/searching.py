"""A question -> a ranking over all roots, checked against the files as they are now."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import numpy as np

from searchsvc.embedding.base import Embedder
from searchsvc.embedding.slot import ModelSlot
from searchsvc.errors import EmbeddingError, NotFound, QueryError
from searchsvc.index.catalog import Catalog
from searchsvc.index.open import Frame
from searchsvc.items import Mode, Ranking
from searchsvc.languages import FUNCTION_WORDS, language_of_question
from searchsvc.ranking.corpus import Corpus
from searchsvc.ranking.evidence import coverage, is_relevant
from searchsvc.ranking.filters import Filters, allowed
from searchsvc.ranking.fuse import Fused, collapse, fuse, join
from searchsvc.ranking.hits import fetch, make_hits
from searchsvc.ranking.lexical import Terms
from searchsvc.ranking.vector import VectorScores, trust_in, vector_scores
from searchsvc.tokens import Tokenizer
from searchsvc.vault import Vault

_MAX_QUERIES = 8
_MAX_REFRESHES = 3
_MAX_TWINS = 3
"""How many addresses of the same text a hit names."""
_ENOUGH_VECTORS = 0.95
"""Share of sections that need vectors before a profile is used: fewer would hide the others."""


@dataclass(frozen=True, slots=True)
class Request:
    """A question with all that decides its ranking."""

    query: str
    queries: tuple[str, ...] = ()
    """The same question in other words."""
    mode: Mode = "hybrid"
    start: int = 0
    size: int = 10
    filters: Filters = field(default_factory=Filters)
    profile: str = ""
    """Name of the embedding model; empty for the best that is ready."""
    explain: bool = False
    related: bool = False
    """Whether forms of a word count even where the word itself is found."""


@dataclass(slots=True)
class Pinned:
    """One consistent generation of every root, for the length of one question."""

    names: list[str]
    catalogs: list[Catalog]
    corpus: Corpus

    def roots(self) -> list[tuple[str, Frame, Catalog]]:
        """Return name, arrays and rows of each root."""
        return list(zip(self.names, self.corpus.frames, self.catalogs, strict=True))


class Searcher:
    """Ranks; safe to use from several threads."""

    def __init__(self, vaults: Sequence[Vault], tokenizer: Tokenizer, slots: Sequence[ModelSlot]) -> None:
        """Take the models in order of preference."""
        self._vaults = vaults
        self._tokenizer = tokenizer
        self._slots = slots
        self._lock = threading.Lock()
        self._corpus: Corpus | None = None
        self._function_terms = {
            code: frozenset(term for word in words for term in (word, *tokenizer.terms(word)))
            for code, words in FUNCTION_WORDS.items()
            if code != "en"
        }

    @contextmanager
    def pinned(self) -> Iterator[Pinned]:
        """Pin the newest generation of every root; arrays are shared between questions."""
        with ExitStack() as stack:
            pairs = [stack.enter_context(vault.reader.pinned()) for vault in self._vaults]
            frames = [frame for frame, _ in pairs]
            with self._lock:
                if self._corpus is None or any(
                    a is not b for a, b in zip(self._corpus.frames, frames, strict=True)
                ):
                    self._corpus = Corpus(frames)
                corpus = self._corpus
            yield Pinned(
                [vault.root.name for vault in self._vaults], [catalog for _, catalog in pairs], corpus
            )

    def search(self, request: Request, *, wait: bool) -> Ranking:
        """Rank; ``wait`` for a model that is still loading, or go by words and say so.

        Notes that have changed since they were indexed are read again first; raises ``QueryError`` for
        a question that cannot be asked and ``NotFound`` for filters that match nothing.
        """
        for _ in range(_MAX_REFRESHES):
            with self.pinned() as pinned:
                ranking, stale = self._rank(request, pinned, wait=wait)
            if not stale or not all(vault.refresh(paths) for vault, paths in stale):
                break
        return _without_stale(ranking, stale) if stale else ranking

    def _rank(
        self, request: Request, pinned: Pinned, *, wait: bool
    ) -> tuple[Ranking, list[tuple[Vault, list[str]]]]:
        corpus = pinned.corpus
        mask = allowed(request.filters, pinned.roots(), datetime.now(UTC)) if request.filters.any else None
        embedder, notices = self._choose_model(request, corpus, wait=wait)
        rankings: list[Fused] = []
        words: dict[str, str] = {}
        for query in _distinct_queries(request):
            pairs = self._tokenizer.query_terms(query)
            words |= {term: word for term, word in reversed(pairs)}
            rankings.append(
                fuse(
                    corpus,
                    self._terms(query, [term for term, _ in pairs]),
                    self._vector(corpus, embedder, query),
                    mode=request.mode,
                    allowed=mask,
                    related=request.related,
                )
            )
        fused = join(rankings)
        return self._build(request, pinned, fused, words, notices)

    def _terms(self, query: str, line: list[str]) -> Terms:
        """Leave out the function words of the question's language, unless there is nothing else."""
        dropped = self._function_terms.get(language_of_question(query), frozenset())
        counted = [term for term in line if term not in dropped] or line
        return Terms(tuple(line), tuple(counted), tuple(self._tokenizer.joined_terms(query)))

    def _build(
        self, request: Request, pinned: Pinned, fused: Fused, words: Mapping[str, str], notices: list[str]
    ) -> tuple[Ranking, list[tuple[Vault, list[str]]]]:
        order, copies = collapse(pinned.corpus, fused.ordinals.tolist())
        scores = dict(zip(fused.ordinals.tolist(), fused.scores.tolist(), strict=True))
        ordinals = order[request.start : request.start + request.size]
        twins = [twin for ordinal in ordinals for twin in copies.get(ordinal, [])[:_MAX_TWINS]]
        roots = list(zip(pinned.names, pinned.catalogs, strict=True))
        rows = fetch(pinned.corpus, roots, [*ordinals, *twins])
        is_copy = {twin for group in copies.values() for twin in group}
        ordinals.sort(key=lambda ordinal: (ordinal in is_copy, -scores[ordinal], rows[ordinal].address))
        hits = make_hits(
            pinned.corpus,
            [rows[ordinal] for ordinal in ordinals],
            [scores[ordinal] for ordinal in ordinals],
            fused,
            words,
            twins=[[rows[twin] for twin in copies.get(ordinal, [])[:_MAX_TWINS]] for ordinal in ordinals],
            explain=request.explain,
        )
        stale = []
        for vault in self._vaults:
            notes = {row.note.id: row.note for row in rows.values() if row.root == vault.root.name}
            changed = vault.stale(notes.values())
            if changed:
                stale.append((vault, changed))
        share = coverage(fused, request.query)
        ranking = Ranking(
            hits=hits,
            total=len(fused.ordinals),
            relevant=request.mode == "vector" or is_relevant(fused, share),
            coverage=round(share, 3),
            relevance=fused.vector.relevance if fused.vector is not None else None,
            weights={match.term: match.idf for match in fused.lexical.matches},
            notices=tuple(notices),
        )
        return ranking, stale

    def _vector(self, corpus: Corpus, embedder: Embedder | None, query: str) -> VectorScores | None:
        if embedder is None:
            return None
        vector, identity = embedder.encode_query(query), embedder.profile.identity
        if not np.any(vector):
            return None
        cosines = corpus.cosines(identity, vector)
        cosines[~corpus.live] = -np.inf
        trust = trust_in(query, embedder.profile.languages, corpus.language_share)
        return vector_scores(cosines, trust, corpus.calibrations(identity))

    def _choose_model(
        self, request: Request, corpus: Corpus, *, wait: bool
    ) -> tuple[Embedder | None, list[str]]:
        """Return the first model in order of preference that is loaded and has embedded enough."""
        if request.mode == "lexical":
            return None, []
        slots = [slot for slot in self._slots if request.profile in ("", slot.name)]
        if request.profile and not slots:
            known = ", ".join(slot.name for slot in self._slots) or "none"
            raise NotFound(f"no profile {request.profile!r}; configured: {known}")
        notices = []
        for slot in slots:
            embedder = slot.get(wait=wait)
            if embedder is None:
                reason = slot.problem or "is still loading; ask again in a moment"
                notices.append(f"model {slot.name}: {reason}")
                continue
            done, wanted = corpus.coverage(embedder.profile.identity)
            if done >= _ENOUGH_VECTORS * wanted:
                if done < wanted:
                    notices.append(f"{wanted - done} of {wanted} sections have no vector yet")
                return embedder, notices
            notices.append(f"model {slot.name}: {done} of {wanted} sections embedded, not used yet")
        if request.mode == "vector":
            raise EmbeddingError(
                "mode 'vector' needs vectors: " + ("; ".join(notices) or "no model configured")
            )
        return None, [*notices, "found by words only"] if slots else []


def _distinct_queries(request: Request) -> list[str]:
    if not request.query.strip():
        raise QueryError("the query is empty; ask a question or give some words")
    if len(request.queries) > _MAX_QUERIES:
        raise QueryError(f"{len(request.queries)} further queries, at most {_MAX_QUERIES}; keep the best")
    return [query for query in dict.fromkeys((request.query, *request.queries)) if query.strip()]


def _without_stale(ranking: Ranking, stale: Sequence[tuple[Vault, list[str]]]) -> Ranking:
    """Leave out notes that have changed and cannot be indexed again because another process writes."""
    gone = {(vault.root.name, path) for vault, paths in stale for path in paths}
    hits = tuple(hit for hit in ranking.hits if (hit.root, hit.path) not in gone)
    notice = f"{len(gone)} notes have just changed and are left out until another process has indexed them"
    return replace(ranking, hits=hits, notices=(*ranking.notices, notice))
