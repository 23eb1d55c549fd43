"""The reading desk: outlines, sections, front matter, documents and images, as the files are now.

Needs no index. Each method answers one reading tool; all but ``frontmatter`` pass through one reader.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import islice
from typing import Any

from searchsvc.answering.assemble import Continuation, Passage, assemble, without_overlaps
from searchsvc.answering.frontmatter import render_front_matter
from searchsvc.answering.listing import Entry, most_tokens, name_entries, render_listing
from searchsvc.answering.match import last_line, match_section
from searchsvc.answering.outlines import make_file_index, make_tree, render_index, render_tree
from searchsvc.answering.passage import Manner, Source, as_call, lines_cost
from searchsvc.answering.selectors import read_range, read_selectors
from searchsvc.config import Config, Root
from searchsvc.errors import QueryError, SearchError
from searchsvc.images import Images
from searchsvc.items import FileIndex, Reply, Section, Tree
from searchsvc.library import Found, Library, is_in
from searchsvc.reading.access import Place
from searchsvc.reading.decode import decode
from searchsvc.reading.frontmatter import read_front_matter
from searchsvc.reading.hosts import is_address
from searchsvc.reading.manifest import DocumentEntry, Manifest, read_manifest
from searchsvc.reading.outline import Outline, outline_of
from searchsvc.reading.walk import FileEntry
from searchsvc.reading.web import fetch
from searchsvc.selecting import (
    Selection,
    fingerprint,
    from_line,
    lines_of_pages,
    open_cursor,
    whole_or_lines,
)
from searchsvc.tokens import cost

MIN_TOKENS = 100
"""Budgets below this cannot hold a header, some text and the way to the rest."""
MAX_IMAGES = 50
_TEXT_KINDS = ("text/", "application/octet-stream", "application/markdown", "application/x-markdown")


class Documents:
    """Reads what a configuration allows; safe to use from several threads."""

    def __init__(self, library: Library, config: Config) -> None:
        self.library = library
        self._config = config

    # One note

    def tree(self, path: str) -> Tree:
        """Return the headings of a note, or those below one section when ``path`` is a section's id."""
        found = self.library.find(path)
        outline = self.library.outline(found.place)
        within = match_section(outline.sections, found.fragment, found.location) if found.fragment else None
        return make_tree(found.location, outline, within)

    def md_tree(self, path: str, *, max_depth: int = 6, max_tokens: int = 4000, cursor: str = "") -> Reply:
        """Answer with the outline of a note; with a cursor, page by page."""
        if not 1 <= max_depth <= 6:
            raise QueryError(f"max_depth is {max_depth}, expected 1 to 6")
        budget, cap, tree = self._budget(max_tokens), self._config.max_reply_tokens, self.tree(path)
        start = read_cursor(cursor, len(tree.rows), "headings")[0] if cursor else -1
        return render_tree(tree, max_depth, budget, cap=cap, start=start)

    def md_section(
        self, path: str, heading: str = "", *, include_subsections: bool = True, max_tokens: int = 4000
    ) -> Reply:
        """Answer with one section, verbatim; ``heading`` may be left out when ``path`` is a section's id."""
        budget = self._budget(max_tokens)
        found = self.library.find(path)
        if not (heading or found.fragment).strip():
            tree = as_call("md_tree", path=found.location)
            whole = as_call("get_documents", select=[found.location])
            raise QueryError(f"heading is missing; {tree} lists the headings, {whole} reads the whole note")
        source = self.open(found)
        within = found.fragment if heading.strip() else ""
        passage = self.section(
            source, found.location, heading if heading.strip() else found.fragment, Manner(),
            whole=include_subsections, within=within,
        )  # fmt: skip
        own = source.outline.cost
        reply = self._assembled([passage], source.outline.problems, budget, tool="get_documents")
        unread = sum(lines_cost(source, row["lines"][1] + 1, passage.last) for row in reply.rows)
        saved = max(0, 1 - (reply.cost + unread) / own) if own else 0
        return with_line(reply, f"· of {own} tok, saves {saved:.0%}" if own else "", budget)

    def md_frontmatter(self, path: str, *, max_tokens: int = 2000) -> Reply:
        """Answer with the properties of a note as typed values."""
        found = self.library.find(path)
        outline, lines = self.library.read(found.place)
        front = read_front_matter(lines)
        return render_front_matter(found.location, front, outline.problems, self._budget(max_tokens))

    # Many notes

    def list_documents(
        self,
        root: str = ".",
        *,
        line_bounds: bool = False,
        section_depth: int | None = None,
        max_tokens: int = 4000,
        cursor: str = "",
    ) -> Reply:
        """Answer with the documents of a folder: id, path, cost, summary and sections."""
        budget = self._budget(max_tokens)
        if section_depth is not None and not 0 <= section_depth <= 6:
            raise QueryError(f"section_depth is {section_depth}, expected 0 to 6")
        folders = dict(self.library.folders(root))
        problems, listed = list[str](), list[tuple[Root, str, Entry]]()
        for vault in self.library.roots:
            manifest = read_manifest(vault, self._config)
            problems += manifest.problems if manifest and vault in folders else ()
            listed += self._entries(vault, manifest)
        name_entries([entry for _, _, entry in listed])  # unique among all, whatever folder is shown
        entries = [entry for vault, path, entry in listed if vault in folders and is_in(path, folders[vault])]
        return render_listing(
            root, entries, problems, line_bounds=line_bounds, budget=budget,
            depth=6 if section_depth is None else section_depth,
            start=read_cursor(cursor, len(entries), "documents")[0],
        )  # fmt: skip

    def get_documents(
        self,
        select: Sequence[Any],
        *,
        include_images: bool = False,
        include_code: bool = True,
        max_tokens: int = 8000,
        max_images: int = 20,
        cursor: str = "",
    ) -> Reply:
        """Answer with documents, sections or lines in the order of ``select``, each line once."""
        selectors, budget = read_selectors(select), self._budget(max_tokens)
        notes: list[str] = []
        passages: list[Passage] = []
        chosen = Selection(self, self._config)
        for selector in selectors:
            images = include_images if selector.include_images is None else selector.include_images
            code = include_code if selector.include_code is None else selector.include_code
            manner = Manner("send" if images else "omit", code)
            passages += chosen.passages(selector, manner, notes)
        kept, overlaps = without_overlaps(passages)
        if not kept and not notes:
            notes.append("nothing to show: the selection holds no text")
        mark = fingerprint(kept, select, include_images, include_code)
        number, line = open_cursor(cursor, mark)
        said = [] if cursor else [*overlaps, *chosen.problems(), *notes]
        options = {"include_images": True} if include_images else {}
        options |= {} if include_code else {"include_code": False}
        is_plain = all(s.include_images is None and s.include_code is None for s in selectors)
        then = Continuation(
            (lambda rest: as_call("get_documents", select=rest, **options)) if is_plain else None,
            lambda at, line: f'same call with cursor="{number + at}-{line}-{mark}"',
        )
        return assemble(from_line(kept, number, line), said, then, budget=budget, max_images=max_images)

    def index(self, uri: str) -> list[FileIndex]:
        """Return the index of a file, an address, or of every note of a folder in path order."""
        return list(self._indexes(uri)[1])

    def index_md(self, uri: str, *, max_tokens: int = 4000, cursor: str = "") -> Reply:
        """Answer with tables of sections of a file, an address or a folder."""
        count, files = self._indexes(uri)
        start, row = read_cursor(cursor, count, "files")
        return render_index(islice(files, start, None), count, start, row, self._budget(max_tokens))

    def read_md_with_images(
        self,
        uri: str,
        *,
        section: str = "",
        line_range: Sequence[int] | None = None,
        pages: Sequence[int] | None = None,
        max_images: int = 10,
        max_tokens: int = 12_000,
    ) -> Reply:
        """Answer with Markdown and its images in the order of the document."""
        if not 0 <= max_images <= MAX_IMAGES:
            raise QueryError(f"max_images is {max_images}, expected 0 to {MAX_IMAGES}")
        budget = self._budget(max_tokens)
        if pages and line_range:
            raise QueryError("both line_range and pages are given, expected at most one of them")
        lines = read_range(line_range, "line_range") if line_range else None
        source, fragment = self._opened(uri)
        manner, notes, asked = Manner("send"), list(source.outline.problems), section or fragment
        passage, are_there = None, True
        if pages:
            lines = lines_of_pages(source, source.location, read_range(pages, "pages", "pages"), notes)
            are_there = lines is not None
        elif asked:
            try:
                passage = self.section(source, source.location, asked, manner)
            except SearchError as error:
                if lines is None:
                    raise
                notes.append(f"line_range is used: {error}")
        if passage is None and are_there:
            passage = whole_or_lines(source, source.location, lines, manner, notes)
        passages = [passage] if passage else []
        # Without the section that was asked for: it would win over the lines, and come again for ever.
        repeat = partial(as_call, "read_md_with_images", uri=source.location)
        then = Continuation(
            lambda rest: repeat(**_lines_of(rest[0])),
            lambda at, line: repeat(line_range=[line, passages[at].last]),
        )
        return assemble(passages, notes, then, budget=budget, max_images=max_images)

    # Within

    def _budget(self, asked: int) -> int:
        if asked < MIN_TOKENS:
            raise QueryError(f"max_tokens is {asked}, expected at least {MIN_TOKENS}")
        return min(asked, self._config.max_reply_tokens)

    def open(self, found: Found) -> Source:
        """Return a note with its text as it is now."""
        outline, lines = self.library.read(found.place)
        return self._made(found.location, outline, lines, found.place, "")

    def _made(
        self, location: str, outline: Outline, lines: tuple[str, ...], place: Place | None, url: str
    ) -> Source:
        @cache
        def entries() -> Mapping[str, Any]:
            manifest = read_manifest(place.root, self._config) if place else None
            return {entry.id: entry for entry in manifest.images} if manifest else {}

        images = Images(self._config, place, url, entries)
        return Source(location, outline, lines, images.show, images.caption)

    def _opened(self, uri: str) -> tuple[Source, str]:
        """Return a document by path, id or address, and the section that the name has in it."""
        if not is_address(uri) or self.library.split_root(uri)[1] != uri:
            found = self.library.find(uri)
            return self.open(found), found.fragment
        address, _, fragment = uri.partition("#")
        fetched = fetch(address, self._config, kinds=_TEXT_KINDS, max_bytes=self._config.max_file_bytes)
        text = decode(_in_utf8(fetched.data, fetched.charset))
        outline = outline_of(address, text)
        return self._made(address, outline, text.lines, None, fetched.url), fragment

    def section(
        self,
        source: Source,
        name: str,
        asked: str,
        manner: Manner,
        *,
        whole: bool = True,
        within: str = "",
    ) -> Passage:
        """Return the passage of a section as a caller calls it; ``whole`` with what lies below it.

        ``within`` names a section that it is looked for in.
        """
        sections = source.outline.sections
        if within:
            sections = _below(sections, match_section(sections, within, source.location))
        section = sections[match_section(sections, asked, source.location)]
        last = last_line(section, asked) if whole else section.line_end
        return Passage(source, name, section.line_start, last, f"section {section.slug}", manner)

    def _assembled(self, passages: list[Passage], notes: Iterable[str], budget: int, *, tool: str) -> Reply:
        then = Continuation(
            lambda rest: as_call(tool, select=rest),
            lambda at, line: f"{tool} with this path and lines [{line}, {passages[at].last}]",
        )
        return assemble(passages, list(notes), then, budget=budget, max_images=0)

    def _entries(self, root: Root, manifest: Manifest | None) -> list[tuple[Root, str, Entry]]:
        known = {entry.path: entry for entry in manifest.documents} if manifest else {}
        costs = self.library.costs(root)
        return [
            (root, file.path, self._entry(root, file, known.get(file.path), costs.get(file.path)))
            for file in self.library.files(root)
        ]

    def _entry(
        self, root: Root, file: FileEntry, known: DocumentEntry | None, indexed: tuple[str, int] | None
    ) -> Entry:
        place = Place(root, file.path)
        is_current = indexed is not None and indexed[0] == file.signature
        return Entry(
            id=known.id if known else "",
            location=self.library.location(place),
            path=file.path,
            tokens=indexed[1] if indexed and is_current else most_tokens(file.size),
            outline=lambda: self._outline_or_none(place),
            title=known.title if known else "",
            summary=known.summary if known else "",
            approx_tokens=known.approx_tokens if known else None,
        )

    def _outline_or_none(self, place: Place) -> Outline | None:
        try:
            return self.library.outline(place)
        except SearchError:
            return None

    def _indexes(self, uri: str) -> tuple[int, Iterator[FileIndex]]:
        """Return how many files an index has, and the index of each as it is asked for."""
        if not is_address(uri) or self.library.split_root(uri)[1] != uri:
            places = self._places(uri)
            if places is not None:
                return len(places), (self._file_index(place) for place in places)
        source, fragment = self._opened(uri)
        sections, within = source.outline.sections, None
        if fragment:
            within = match_section(sections, fragment, source.location)
        return 1, iter([make_file_index(source.location, source.outline, source.lines, within)])

    def _places(self, uri: str) -> list[Place] | None:
        """Return the notes of a folder, or none when ``uri`` is no folder."""
        try:
            folders = self.library.folders(uri)
        except SearchError:
            return None
        return [
            Place(root, path)
            for root, folder in folders
            for path in self.library.notes(root)
            if is_in(path, folder)
        ]

    def _file_index(self, place: Place) -> FileIndex:
        location = self.library.location(place)
        try:
            outline, lines = self.library.read(place)
        except SearchError as error:
            return FileIndex(location, 0, 0, "", (), (str(error),))
        return make_file_index(location, outline, lines)


def with_line(reply: Reply, line: str, budget: int) -> Reply:
    """Return a reply with more at the end of its first line, if there is room for it."""
    if not line or not reply.rows or reply.cost + cost(line) + 3 > budget:
        return reply
    head, _, body = str(reply.blocks[0]).partition("\n")
    text = f"{head} {line}\n{body}" if body else f"{head} {line}"
    return replace(reply, blocks=(text, *reply.blocks[1:]), cost=reply.cost + cost(line) + 1)


def _in_utf8(data: bytes, charset: str) -> bytes:
    """Encode text anew that a server says is in another encoding; what it says wrongly is left as it is."""
    try:
        return data if charset.lower() in ("", "utf-8", "utf8") else data.decode(charset).encode("utf-8")
    except (LookupError, ValueError):
        return data


def _below(sections: Sequence[Section], top: int) -> tuple[Section, ...]:
    """Return a section and those below it, as sections of a note of their own."""
    end = sections[top].subtree_end
    return tuple(
        replace(section, parent=section.parent - top if section.parent >= top else -1)
        for section in sections[top:]
        if section.line_start <= end
    )


def _lines_of(selector: Any) -> dict[str, Any]:
    return {"line_range": selector["lines"]} if isinstance(selector, dict) else {}


def read_cursor(text: str, total: float = math.inf, what: str = "") -> tuple[int, int]:
    """Return what a cursor counts, of ``total`` documents or headings, and rows of the document.

    Raises ``QueryError`` for one that is none or lies past the end.
    """
    found = re.fullmatch(r"(\d{1,8})(?:-(\d{1,8}))?", text or "0", re.ASCII)
    if found is None:
        raise QueryError(f"cursor {text[:40]!r} is not from an earlier reply; leave it out to begin anew")
    if text and int(found[1]) >= total:
        raise QueryError(f"cursor {text!r} lies past the end of {total} {what}; leave it out to begin anew")
    return int(found[1]), int(found[2] or 0)
