"""Selectors of get_documents -> passages of documents; a cursor -> the passages from there on."""

import hashlib
import json
import re
import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from searchsvc.answering.assemble import Passage
from searchsvc.answering.passage import Manner, Source
from searchsvc.answering.selectors import Selector
from searchsvc.config import Config
from searchsvc.errors import QueryError, SearchError
from searchsvc.library import Found, is_in
from searchsvc.reading.access import Place

if TYPE_CHECKING:
    from searchsvc.documents import Documents


_MAX_DOCUMENTS = 500
"""Of one folder in one call: more would be read for a reply that cannot hold them."""


class Selection:
    """Resolves the selectors of one call; every document is read once."""

    def __init__(self, desk: "Documents", config: Config) -> None:
        self._desk = desk
        self._config = config
        self._sources: dict[Place, Source] = {}

    def passages(self, selector: Selector, manner: Manner, notes: list[str]) -> list[Passage]:
        """Return what a selector means; what is not there goes to the notes."""
        if selector.root is not None:
            return self._folder(selector.root, manner, notes)
        try:
            name, source, fragment = self._document(selector.doc)
        except SearchError as error:
            notes.append(str(error))
            return []
        wanted = selector.sections or ((fragment,) if fragment else ())
        if not wanted:
            lines = selector.lines
            if selector.pages:
                lines = lines_of_pages(source, name, selector.pages, notes)
                if lines is None:
                    return []
            found = whole_or_lines(source, name, lines, manner, notes)
            return [found] if found else []
        passages = []
        for asked in wanted:
            try:
                passages.append(self._desk.section(source, name, asked, manner))
            except SearchError as error:
                notes.append(str(error))
        return passages

    def problems(self) -> list[str]:
        """Return what was wrong with the files that were read."""
        return [f"{s.location}: {problem}" for s in self._sources.values() for problem in s.outline.problems]

    def _folder(self, asked: str, manner: Manner, notes: list[str]) -> list[Passage]:
        passages = []
        try:
            folders = self._desk.library.folders(asked)
        except SearchError as error:
            notes.append(str(error))
            return []
        library = self._desk.library
        for root, folder in folders:
            paths = [path for path in library.notes(root) if is_in(path, folder)]
            if len(paths) > _MAX_DOCUMENTS:
                notes.append(
                    f"{asked} has {len(paths)} documents, the first {_MAX_DOCUMENTS} are looked at; "
                    "select folders below it, or documents from list_documents"
                )
            for path in paths[:_MAX_DOCUMENTS]:
                place = Place(root, path)
                try:
                    source = self._read(Found(place, library.location(place)))
                except SearchError as error:
                    notes.append(str(error))
                    continue
                found = whole_or_lines(source, source.location, None, manner, notes)
                passages += [found] if found else []
        return passages

    def _document(self, asked: str) -> tuple[str, Source, str]:
        located = self._desk.library.find(asked)
        name = asked if not located.fragment and len(asked) <= len(located.location) else located.location
        return name, self._read(located), located.fragment

    def _read(self, found: Found) -> Source:
        if found.place not in self._sources:
            self._sources[found.place] = self._desk.open(found)
        return self._sources[found.place]


def whole_or_lines(
    source: Source, name: str, lines: tuple[int, int] | None, manner: Manner, notes: list[str]
) -> Passage | None:
    """Return lines of a document, or all of it; what lies past its end is said in the notes."""
    count = len(source.lines)
    if not count:
        notes.append(f"{name} is empty")
        return None
    first, last = lines or (1, count)
    if first > count:
        notes.append(f"{name} has {count} lines; L{first}–{last} lie past its end")
        return None
    if last > count:
        notes.append(f"{name} has {count} lines; L{first}–{last} ends there")
    return Passage(source, name, first, min(last, count), manner=manner, is_whole=lines is None)


def lines_of_pages(
    source: Source, name: str, pages: tuple[int, int], notes: list[str]
) -> tuple[int, int] | None:
    """Return the lines of some pages of a document; what it does not have is said in the notes."""
    known = source.outline.pages.numbers
    if not known:
        notes.append(f"{name} has no pages: it was not imported from a document with pages; give lines")
        return None
    lines = source.outline.pages.range(*pages, len(source.lines))
    if lines is None or pages[1] > max(known):
        notes.append(f"{name} has text on pages {min(known)} to {max(known)}")
    return lines


def fingerprint(passages: Sequence[Passage], *deciding: Any) -> str:
    """Return what a cursor must bear to fit: it changes with the arguments and with any of the documents."""
    text = json.dumps([deciding, [_state(passage) for passage in passages]], sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:6]


def _state(passage: Passage) -> list[Any]:
    """Return what tells a passage from what it was before a change of its document."""
    text = "\n".join(passage.source.lines)
    return [passage.source.location, passage.first, passage.last, zlib.crc32(text.encode("utf-8", "replace"))]


def open_cursor(cursor: str, mark: str) -> tuple[int, int]:
    """Return the number of a passage and a line in it; 0 and 0 without a cursor. Raises ``QueryError``."""
    if not cursor:
        return 0, 0
    found = re.fullmatch(r"(\d{1,6})-(\d{1,9})-(\w{6})", cursor)
    if found is None or found[3] != mark:
        raise QueryError(
            f"cursor {cursor[:40]!r} does not belong to this selection, or a document has changed since; "
            "repeat the call that gave it with the same arguments, or leave cursor out to begin anew"
        )
    return int(found[1]), int(found[2])


def from_line(passages: list[Passage], number: int, line: int) -> list[Passage]:
    """Return the passages from one on, the first of them from a line on."""
    left = passages[number:]
    if left and left[0].first < line <= left[0].last:
        left[0] = replace(left[0], first=line, is_whole=False)
    return left
