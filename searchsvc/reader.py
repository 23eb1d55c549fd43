"""The reader's desk: documents listed, opened, outlined and searched, for agents that know Reader's tools."""

import heapq
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from searchsvc.answering.match import last_line, match_section
from searchsvc.answering.render import open_page, render
from searchsvc.answering.shelf import Found, render_opened, render_paragraphs, render_shelf
from searchsvc.documents import read_cursor, with_line
from searchsvc.errors import QueryError
from searchsvc.index.shelf import Shelf
from searchsvc.items import Answer, FileType, Ranking, Reply
from searchsvc.locating import Located, Locator, Shelved, find_document, shelve
from searchsvc.nearest import Near
from searchsvc.ranking.corpus import Corpus
from searchsvc.ranking.filters import Filters
from searchsvc.ranking.literal import Needle, Paragraph
from searchsvc.reader_models import ModelArguments, choose
from searchsvc.reading.outline import Outline
from searchsvc.searching import Pinned, Request
from searchsvc.service import Service

NOWHERE = Locator()
NO_MODEL = ModelArguments()
_MAX_QUERY = 10_000
_ADVICE = 'To read one: reader.open_document(doc_id="<its id>").'
_WEAK = "nothing here stands out from the rest for this question: probably off topic"


class Reader:
    """Answers the reader's tools over one service; safe to use from several threads."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._known: tuple[Corpus | None, list[Shelved]] = None, []

    def list_documents(
        self,
        *,
        limit: int = 100,
        file_types: Sequence[FileType] = (),
        max_tokens: int = 8000,
        cursor: str = "",
    ) -> Reply:
        """Answer with documents and what is known of them, those changed last first."""
        _within("limit", limit, 1, 500)
        types, budget = _types(file_types), self.service.budget(max_tokens)
        start = read_cursor(cursor)[0]
        documents = [item.document for item in self._shelf() if item.document.metadata.file_type in types]
        return render_shelf(documents, start, limit, budget)

    def open_document(
        self, locator: Locator, *, max_chars: int = 12_000, max_tokens: int = 20_000, cursor: str = ""
    ) -> Reply:
        """Answer with the text of a document as it is now, verbatim, piece by piece."""
        _within("max_chars", max_chars, 200, 400_000)
        budget, located = self.service.budget(max_tokens), self._locate(locator)
        document = located.shelved.document
        library = self.service.documents.library
        outline, lines = library.read(library.find(document.id).place)
        notes = [located.note, *outline.problems]
        span = _span(outline, located) or (outline.body_start, len(lines))
        return render_opened(document, lines, span, notes, max_chars=max_chars, budget=budget, cursor=cursor)

    def get_markdown_outline(self, locator: Locator, *, max_tokens: int = 4000, cursor: str = "") -> Reply:
        """Answer with the headings of a document, their lines, pages and costs."""
        located = self._locate(locator)
        name = located.shelved.document.id + (f"#{located.fragment}" if located.fragment else "")
        budget = self.service.budget(max_tokens)
        reply = self.service.documents.md_tree(name, max_tokens=budget, cursor=cursor)
        return replace(with_line(reply, f"· {located.note}", budget), notes=(located.note, *reply.notes))

    def search_markdown(
        self,
        query: str,
        locator: Locator = NOWHERE,
        *,
        case_sensitive: bool = False,
        limit: int = 20,
        max_tokens: int = 4000,
        cursor: str = "",
    ) -> Reply:
        """Answer with the paragraphs that hold a text as it is written, by relevance, then the latest."""
        _within("limit", limit, 1, 200)
        budget, start = self.service.budget(max_tokens), read_cursor(cursor)[0]
        needle = Needle(query[:_MAX_QUERY], case_sensitive=case_sensitive)
        if needle.is_blank:
            raise QueryError("the query is empty; give the text to look for")
        left = self.service.refresh_changed()
        with self.service.pinned() as pinned:
            shelf = self._shelf_of(pinned)
            located = self._find(locator, shelf) if locator else None
            among = [located.shelved] if located else shelf
            among = [item for item in among if (item.root, item.path) not in left]
            total, page = _search(needle, among, self._lines(located), pinned, start, limit)
        notes = [located.scope] if located else []
        if left:
            notes.append(f"{len(left)} notes have just changed and are left out until they are indexed")
        return render_paragraphs(query, page, notes, total=total, start=start, budget=budget)

    def semantic_search_documents(
        self,
        query: str = "",
        locator: Locator = NOWHERE,
        *,
        query_vector: Sequence[float] = (),
        top_k: int = 10,
        min_score: float = -1.0,
        scan_limit: int = 0,
        batch_size: int = 0,
        file_types: Sequence[FileType] = (),
        model: ModelArguments = NO_MODEL,
        max_tokens: int = 4000,
        cursor: str = "",
    ) -> Answer:
        """Answer with the sections nearest to a question or vector, by cosine.

        ``min_score`` is the least cosine, ``scan_limit`` how many sections are compared at most (those
        changed last), ``batch_size`` how many vectors are read at a time. Raises ``QueryError`` for a vector
        of another dimension than the profile's and for values out of range, ``NotFound`` for a profile that
        has no vectors here.
        """
        _check(query, query_vector, top_k, min_score, scan_limit, batch_size)
        types, budget = _types(file_types), self.service.budget(max_tokens)
        located = self._locate(locator) if locator else None
        path = f"{located.shelved.root}:{located.shelved.path}" if located else ""
        path += f"#{located.fragment}" if located and located.fragment else ""
        vector = _unit(query_vector) if query_vector else None
        chosen = choose(self.service, model, vector.shape[0] if vector is not None else 0)
        near = Near(vector, chosen.identity, chosen.embedder, min_score, scan_limit, batch_size)
        deciding: dict[str, Any] = {
            "path": path, "types": sorted(file_types), "vector": list(query_vector), "scan": scan_limit,
            "least": min_score, "profile": chosen.identity,
        }  # fmt: skip
        page = open_page(query, top_k, cursor, deciding)
        request = Request(
            query, mode="vector", start=page.start, size=top_k, profile=chosen.identity, near=near,
            filters=Filters(path=path, file_types=types if file_types else ()),
        )  # fmt: skip
        ranking = self.service.ask(request)
        notes = [located.scope] if located else []
        return render(_scored(ranking, notes), self.service.terms_of, page, budget=budget, advice=_ADVICE)

    def recent(self, count: int) -> list[Shelved]:
        """Return the documents that were changed last."""
        return self._shelf()[:count]

    def document(self, root: str, path: str) -> Shelved | None:
        """Return the document at a path of a root, if it is indexed."""
        return next((item for item in self._shelf() if (item.root, item.path) == (root, path)), None)

    # Within

    def _shelf(self) -> list[Shelved]:
        left = self.service.refresh_changed()
        with self.service.pinned() as pinned:
            shelf = self._shelf_of(pinned)
        gone = {key for key in left if not self._is_there(*key)}
        return [item for item in shelf if (item.root, item.path) not in gone]

    def _is_there(self, root: str, path: str) -> bool:
        return any(vault.file(path).is_file() for vault in self.service.vaults if vault.root.name == root)

    def _shelf_of(self, pinned: Pinned) -> list[Shelved]:
        made_for, shelf = self._known
        if made_for is not pinned.corpus:
            shelf = shelve(pinned)
            self._known = pinned.corpus, shelf
        return shelf

    def _lines(self, located: Located | None) -> tuple[int, int] | None:
        """Return the lines of the section that was meant; none for whole documents."""
        if located is None or not located.fragment:
            return None
        library = self.service.documents.library
        return _span(library.outline(library.find(located.shelved.document.id).place), located)

    def _locate(self, locator: Locator) -> Located:
        return self._find(locator, self._shelf())

    def _find(self, locator: Locator, shelf: Sequence[Shelved]) -> Located:
        return find_document(locator, shelf, self.service.documents.library)


_Match = tuple[tuple[Any, ...], Shelved, int, Paragraph]
"""Order, document, id of the section, paragraph."""


def _search(
    needle: Needle,
    among: Collection[Shelved],
    span: tuple[int, int] | None,
    pinned: Pinned,
    start: int,
    limit: int,
) -> tuple[int, list[Found]]:
    """Return how many paragraphs hold a text, and a page of them, best first; ``span`` bounds the lines.

    Only that page is kept: a hostile note may hold the text a million times.
    """
    shelved = {(item.root, item.note): item for item in among}
    total = 0

    def matches() -> Iterator[_Match]:
        nonlocal total
        for root, catalog in pinned.named_catalogs():
            notes = [note for name, note in shelved if name == root]
            for section in Shelf(catalog).texts(notes if len(notes) < len(catalog.modified()) else None):
                item = shelved.get((root, section.note))
                if item is None:
                    continue
                for part in needle.paragraphs(section.text, section.line_start, section.body_start):
                    if span is None or span[0] <= part.line_start <= span[1]:
                        total += 1
                        order = -part.relevance, -item.document.modified, item.document.id, part.line_start
                        yield order, item, section.id, part

    found = heapq.nsmallest(start + limit, matches(), key=lambda match: match[0])[start:]
    return total, _with_sections(found, pinned)


def _with_sections(found: Sequence[_Match], pinned: Pinned) -> list[Found]:
    sections = {
        root: catalog.sections({number for _, item, number, _ in found if item.root == root})
        for root, catalog in pinned.named_catalogs()
    }
    rows = []
    for _, item, number, part in found:
        section = sections[item.root][number].section
        rows.append(
            Found(
                f"{item.document.id}#{section.slug}", section, part.line_start, part.line_end, part.found,
                part.text, part.count, part.column,
            )
        )  # fmt: skip
    return rows


def _span(outline: Outline, located: Located) -> tuple[int, int] | None:
    """Return the lines of the section that was meant; none for a whole document."""
    if not located.fragment:
        return None
    place = match_section(outline.sections, located.fragment, located.shelved.document.id)
    section = outline.sections[place]
    return section.line_start, last_line(section, located.fragment)


def _scored(ranking: Ranking, notes: Sequence[str]) -> Ranking:
    """Return a ranking by cosine as this tool shows it: with scores, and without hiding what is weak."""
    hits = tuple(replace(hit, why=(f"score {hit.score:.3f}",)) for hit in ranking.hits)
    notices = (*notes, *ranking.notices)
    if hits and not ranking.relevant:
        return replace(ranking, hits=hits, notices=(_WEAK, *notices), relevant=True)
    return replace(ranking, hits=hits, notices=notices)


def _check(
    query: str, vector: Sequence[float], top_k: int, min_score: float, scan_limit: int, batch_size: int
) -> None:
    if bool(query.strip()) == bool(vector):
        found = "both" if vector else "neither"
        raise QueryError(f"give either query, in words, or query_vector; found {found}")
    _within("top_k", top_k, 1, 200)
    if not -1 <= min_score <= 1:
        raise QueryError(f"min_score is {min_score}, expected a cosine from -1 to 1")
    for name, value in (("scan_limit", scan_limit), ("batch_size", batch_size)):
        if value < 0:
            raise QueryError(f"{name} is {value}, expected at least 1, or nothing")


def _unit(values: Sequence[float]) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return a vector of length 1."""
    vector = np.array(values, np.float64)
    largest = float(np.abs(vector).max())
    if not np.isfinite(largest) or largest == 0:
        raise QueryError("query_vector has no direction: its numbers are all 0, or some are no numbers")
    vector /= largest  # so that no square is too large or too small
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def _types(asked: Sequence[FileType]) -> tuple[FileType, ...]:
    known: tuple[FileType, ...] = get_args(FileType)
    unknown = [name for name in asked if name not in known]
    if unknown:
        raise QueryError(f"file_types has {unknown[0]!r}, expected some of: {', '.join(known)}")
    return tuple(asked) or known


def _within(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise QueryError(f"{name} is {value}, expected {least} to {most}")
