"""A question -> a ranking over all roots, checked against the files as they are now."""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import numpy as np

from searchsvc.embedding.base import Embedder
from searchsvc.embedding.slot import ModelSlot
from searchsvc.errors import EmbeddingError, NotFound, QueryError
from searchsvc.index.catalog import Catalog, NoteRow
from searchsvc.index.node_names import Spell
from searchsvc.index.open import Frame
from searchsvc.items import Hit, Mode, Ranking
from searchsvc.languages import FUNCTION_WORDS, language_of_question
from searchsvc.models import Models
from searchsvc.nearest import Near, nearest
from searchsvc.ranking.copies import collapse
from searchsvc.ranking.corpus import Corpus, Mask
from searchsvc.ranking.evidence import is_measured, weigh
from searchsvc.ranking.filters import Filters, allowed
from searchsvc.ranking.fuse import Fused, fuse, join, led_by
from searchsvc.ranking.hits import Row, addresses, fetch, make_hits
from searchsvc.ranking.lexical import Terms
from searchsvc.ranking.notices import lacking, taken_for
from searchsvc.ranking.phrases import quoted
from searchsvc.ranking.reasons import Spoken
from searchsvc.ranking.vector import VectorScores, trust_in, vector_scores
from searchsvc.tokens import STOP_WORDS, Tokenizer, fold, unspaced_runs
from searchsvc.vault import Vault

_MAX_QUERIES = 8
_MAX_REFRESHES = 3
_MAX_COPIES = 3
"""How many addresses of the same text, and of nearly the same, a hit names."""
_QUESTION_MARKS = ("?", "？", "؟", "\u037e", "՞")
_CLOSING = " \t\r\n\"'”’»)]*_"
"""What may stand behind the mark."""
_ENOUGH_VECTORS = 0.95
"""Share of sections that need vectors before a profile is used: fewer would hide the others."""

Changed = list[tuple[Vault, list[str]]]
"""Paths of notes that have changed since they were indexed, by root."""


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
    near: Near | None = None
    """Rank by cosine alone, compared in this way."""
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

    def named_catalogs(self) -> list[tuple[str, Catalog]]:
        """Return name and rows of each root."""
        return list(zip(self.names, self.catalogs, strict=True))


class Searcher:
    """Ranks; safe to use from several threads."""

    def __init__(self, vaults: Sequence[Vault], tokenizer: Tokenizer, models: Models, spell: Spell) -> None:
        """``spell`` says which note or folder a path filter means that is none as it stands."""
        self._vaults = vaults
        self._spell = spell
        self._tokenizer = tokenizer
        self._models = models
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

        Notes that have changed since they were indexed are read again first. Those that cannot be, since
        another process writes the index or they change all the time, are left out. Raises ``QueryError``
        for a question that cannot be asked and ``NotFound`` for filters that match nothing.
        """
        for _ in range(_MAX_REFRESHES):
            with self.pinned() as pinned:
                ranking, stale = self._rank(request, pinned, wait=wait)
            if not stale:
                return ranking
            if not all([vault.refresh(paths) for vault, paths in stale]):
                break
        with self.pinned() as pinned:
            return self._rank(request, pinned, wait=wait, only_unchanged=True)[0]

    def _rank(
        self, request: Request, pinned: Pinned, *, wait: bool, only_unchanged: bool = False
    ) -> tuple[Ranking, Changed]:
        """Return a page of the ranking, and the notes on it that have changed since they were indexed.

        With ``only_unchanged`` the sections of changed notes are left out of the whole ranking.
        """
        mask = None
        if request.filters.any:
            mask = allowed(request.filters, pinned.roots(), datetime.now(UTC), self._spell)
        embedder, notices = self._choose_model(request, pinned.corpus, mask, wait=wait)
        if mask is not None and not (mask & pinned.corpus.live).any():
            notices.append("no section meets all the filters")
        if request.near is not None:
            fused, said = nearest(request.near, request.query, pinned.roots(), pinned.corpus, embedder, mask)
            return self._ranking(request, pinned, fused, {}, [*notices, *said], only_unchanged=only_unchanged)
        try:
            fused, words = self._fuse(request, pinned.corpus, embedder, mask)
        except EmbeddingError as error:
            if request.mode == "vector":
                raise
            notices += [f"the model failed: {error}", "found by words only"]
            fused, words = self._fuse(request, pinned.corpus, None, mask)
        return self._ranking(request, pinned, fused, words, notices, only_unchanged=only_unchanged)

    def _ranking(
        self,
        request: Request,
        pinned: Pinned,
        fused: Fused,
        words: Mapping[str, str],
        notices: list[str],
        *,
        only_unchanged: bool = False,
    ) -> tuple[Ranking, Changed]:
        """Return the page of a fused ranking that is asked for, and the notes on it that have changed."""
        if only_unchanged:
            fused, left_out = self._without_changed(pinned, fused)
            if left_out:
                notices.append(f"{left_out} notes have just changed and are left out until they are indexed")
        if request.mode == "vector" and not is_measured(fused.vector):
            notices.append("the model cannot tell whether anything here is relevant to this question")
        evidence = weigh(fused, request.query)
        if evidence.holder is not None and request.mode != "vector":
            fused = led_by(fused, evidence.holder)
        hits, rows = _page(request, pinned, fused, self._spoken(request, words))
        relevant = bool(hits) and (
            request.filters.names_section or evidence.is_relevant(by_vectors_alone=request.mode == "vector")
        )
        if request.mode != "vector":
            notices += taken_for(fused, words) + lacking(pinned.corpus, fused, request.query, relevant)
        ranking = Ranking(
            hits=hits,
            total=len(fused.ordinals),
            relevant=relevant,
            nearly=not relevant and evidence.is_near,
            coverage=round(evidence.coverage, 3),
            relevance=evidence.relevance,
            weights={match.term: match.idf for match in fused.lexical.matches},
            notices=tuple(notices),
        )
        return ranking, self._changed(rows)

    def _fuse(
        self, request: Request, corpus: Corpus, embedder: Embedder | None, mask: Mask | None
    ) -> tuple[Fused, dict[str, str]]:
        """Return the ranking of all phrasings together, and the word that each of their terms was."""
        rankings, words = list[Fused](), dict[str, str]()
        for query in _distinct_queries(request):
            pairs = self._tokenizer.query_terms(query) if request.mode != "vector" else []
            words |= {term: word for term, word in reversed(pairs)}
            rankings.append(
                fuse(
                    corpus,
                    self._terms(query, pairs),
                    self._vector(corpus, embedder, query),
                    mode=request.mode,
                    allowed=mask,
                    related=request.related,
                    everything=request.filters.names_section,
                )
            )
        return join(rankings), words

    def _spoken(self, request: Request, words: Mapping[str, str]) -> Spoken:
        """Return the words of a question, from the word that each of its terms was, for its reasons."""
        parts = {term: self._tokenizer.written(term, word).lower() for term, word in words.items()}
        words = {term: word.lower() for term, word in words.items()}
        runs = [run for query in (request.query, *request.queries) for run in unspaced_runs(query)]
        return Spoken(words, parts, list(dict.fromkeys(runs)))

    def _terms(self, query: str, pairs: Sequence[tuple[str, str]]) -> Terms:
        """Take terms with their words; do not count function words, unless there is nothing else.

        English ones are known by the word as well: the stem of some, such as "does", is another word.
        """
        if not pairs:
            return Terms()
        line = [term for term, _ in pairs]
        dropped = self._function_terms.get(language_of_question(query), frozenset())
        counted = [
            term for term, word in pairs if term not in dropped and fold(word) not in STOP_WORDS
        ] or line
        asks = query.rstrip(_CLOSING).endswith(_QUESTION_MARKS)
        phrases = (tuple(term for term, _ in self._tokenizer.query_terms(text)) for text in quoted(query))
        return Terms(
            line=tuple(line),
            counted=tuple(counted),
            joined=tuple(self._tokenizer.joined_terms(query)),
            phrases=tuple(phrase for phrase in phrases if len(phrase) > 1),
            asks=asks,
        )

    def _changed(self, rows: Iterable[Row]) -> Changed:
        """Return which notes of these sections have changed on disk, by root."""
        notes: dict[str, dict[int, NoteRow]] = {vault.root.name: {} for vault in self._vaults}
        for row in rows:
            notes[row.root][row.note.id] = row.note
        stale = [(vault, vault.stale(notes[vault.root.name].values())) for vault in self._vaults]
        return [(vault, paths) for vault, paths in stale if paths]

    def _without_changed(self, pinned: Pinned, fused: Fused) -> tuple[Fused, int]:
        """Leave the sections of changed notes out of a ranking; return how many notes those were."""
        rows = fetch(pinned.corpus, pinned.named_catalogs(), fused.ordinals.tolist())
        gone = {(vault.root.name, path) for vault, paths in self._changed(rows.values()) for path in paths}
        kept = np.array(
            [(row.root, row.note.path) not in gone for row in (rows[o] for o in fused.ordinals.tolist())],
            bool,
        )
        return replace(fused, ordinals=fused.ordinals[kept], scores=fused.scores[kept]), len(gone)

    def _vector(self, corpus: Corpus, embedder: Embedder | None, query: str) -> VectorScores | None:
        if embedder is None:
            return None
        vector, identity = embedder.encode_query(query), embedder.profile.identity
        if not np.any(vector):
            return None
        cosines = corpus.cosines(identity, vector)
        trust = trust_in(query, embedder.profile.languages, corpus.language_share)
        return vector_scores(cosines, trust, corpus.calibrations(identity))

    def _slots(self, request: Request, corpus: Corpus) -> Sequence[ModelSlot]:
        """Return the models that may serve a question, in order of preference."""
        if not request.profile:
            return self._models.slots([frame.active for frame in corpus.frames])
        slot = self._models.named(request.profile)
        if slot is None:
            slots = self._models.slots()
            known = dict.fromkeys([*(s.name for s in slots), *(card.name for card in self._models.cards())])
            raise NotFound(f"no profile {request.profile!r}; there are: {', '.join(known) or 'none'}")
        return [slot]

    def _choose_model(
        self, request: Request, corpus: Corpus, mask: Mask | None, *, wait: bool
    ) -> tuple[Embedder | None, list[str]]:
        """Return the first model in order of preference that is loaded and has embedded enough.

        Enough is asked of the sections that the mask lets through alone.
        """
        near = request.near
        if request.mode == "lexical" or (near is not None and near.vector is not None):
            return None, []
        if near is not None and near.embedder is not None:
            return near.embedder, []
        slots = self._slots(request, corpus)
        waiting = []
        for slot in slots:
            embedder = slot.get(wait=wait)
            if embedder is None:
                reason = f"cannot be used: {slot.problem}" if slot.problem else "is still loading"
                waiting.append(f"{slot.name} {reason}")
                continue
            identity = embedder.profile.identity
            (done, wanted), failed = corpus.coverage(identity, mask), corpus.failed(identity, mask)
            if done + failed >= _ENOUGH_VECTORS * wanted:
                notices = [f"meaning by {slot.name} yet: {', '.join(waiting)}"] if waiting else []
                if done < wanted:
                    notices.append(f"{wanted - done} of {wanted} sections have no vector yet")
                return embedder, notices
            waiting.append(_too_few(slot.name, identity, done, wanted, corpus))
        if request.mode == "vector":
            raise EmbeddingError(
                f"search by meaning needs vectors: {', '.join(waiting) or 'no model configured'}; ask again "
                "once they are made, or search by words"
            )
        return None, [f"by words only yet: {', '.join(waiting)}"] if slots else []


def _too_few(name: str, identity: str, done: int, wanted: int, corpus: Corpus) -> str:
    """Say that a model has too few vectors, and what to run where another one has them."""
    others = {frame.active for frame in corpus.frames} - {"", identity}
    if done or not others:
        return f"{name} has {done} of {wanted} sections"
    return (
        f"the index was made with {', '.join(sorted(others))} and has no vectors of {identity}: run "
        f"`searchsvc embed --model {name}`, or leave the model to the index"
    )


def _distinct_queries(request: Request) -> list[str]:
    if not request.query.strip():
        raise QueryError("the query is empty; ask a question or give some words")
    if len(request.queries) > _MAX_QUERIES:
        raise QueryError(f"{len(request.queries)} further queries, at most {_MAX_QUERIES}; keep the best")
    return [query for query in dict.fromkeys((request.query, *request.queries)) if query.strip()]


def _page(
    request: Request, pinned: Pinned, fused: Fused, spoken: Spoken
) -> tuple[tuple[Hit, ...], list[Row]]:
    """Return the hits of one page, and the rows of all sections that they name."""
    kept, copies = collapse(pinned.corpus, _in_order(pinned, fused))
    scores = dict(zip(fused.ordinals.tolist(), fused.scores.tolist(), strict=True))
    ordinals = kept[request.start : request.start + request.size]
    named = [
        [group.get(ordinal, [])[:_MAX_COPIES] for group in (copies.same, copies.like)] for ordinal in ordinals
    ]
    rows = fetch(
        pinned.corpus,
        pinned.named_catalogs(),
        [*ordinals, *(copy for groups in named for group in groups for copy in group)],
    )
    hits = make_hits(
        pinned.corpus,
        [rows[ordinal] for ordinal in ordinals],
        [scores[ordinal] for ordinal in ordinals],
        fused,
        spoken,
        copies=[([rows[o].id for o in same], [rows[o].id for o in like]) for same, like in named],
        explain=request.explain,
    )
    return hits, list(rows.values())


def _in_order(pinned: Pinned, fused: Fused) -> list[int]:
    """Return the ordinals of a ranking, best first, equally good ones in order of their addresses.

    Ordinals are no order that stays: a note that is indexed again moves to the end.
    """
    is_tied = np.zeros(len(fused.ordinals), bool)
    is_tied[1:] = fused.scores[1:] == fused.scores[:-1]
    is_tied[:-1] |= is_tied[1:]
    if not is_tied.any():
        return list(fused.ordinals.tolist())
    tied = fused.ordinals[is_tied].tolist()
    places = addresses(pinned.corpus, pinned.named_catalogs(), tied)
    by_address = {ordinal: number for number, ordinal in enumerate(sorted(tied, key=places.__getitem__))}
    ranks = np.zeros(len(is_tied), np.int64)
    ranks[is_tied] = [by_address[ordinal] for ordinal in tied]
    return list(fused.ordinals[np.lexsort((ranks, -fused.scores))].tolist())
