"""EPUB 2 and 3 -> one Markdown file and its images.

The zip file is read member by member, nothing is unpacked to disk. Chapters are parsed by Beautiful Soup
with Python's own HTML parser: that one honours ``<a id="x"/>``, which XHTML is full of, keeps CDATA, has
no depth at which it drops the rest, and needs no further package.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from searchsvc.errors import ReadingError
from searchsvc.importing.base import Book, Limits
from searchsvc.importing.epub_contents import is_contents
from searchsvc.importing.epub_depth import flatten
from searchsvc.importing.epub_images import Pictures
from searchsvc.importing.epub_links import HEADING_NUMBER, Place, Weave
from searchsvc.importing.epub_marks import tidy_names
from searchsvc.importing.epub_notes import Notes, find_notes, mark
from searchsvc.importing.epub_package import Package, read_package
from searchsvc.importing.epub_placing import place_notes
from searchsvc.importing.epub_protection import refuse_protected
from searchsvc.importing.epub_text import Chapter, convert_chapter
from searchsvc.importing.epub_xml import declared_entities, decode, resolve_names, strip_declarations
from searchsvc.importing.epub_zip import Archive

_KEPT_CHARACTERS = 10_000_000
"""Parsed documents are kept up to this much text, and parsed twice beyond."""
_MAX_DOCUMENT_BYTES = 50_000_000


def convert(data: bytes, limits: Limits) -> Book:
    """Return a book as Markdown; raises ``ReadingError`` when it is none, protected, damaged or too large."""
    _need_packages()
    if len(data) > limits.file_bytes:
        raise ReadingError(f"the EPUB has {len(data)} bytes, expected at most {limits.file_bytes}")
    archive = Archive(data, limits)
    refuse_protected(archive)
    package = read_package(archive)
    return _Work(archive, package, limits).book()


def _need_packages() -> None:
    try:
        import bs4  # noqa: F401
        import markdownify  # noqa: F401
    except ImportError as error:
        raise ReadingError(
            "reading an EPUB needs two more packages; install them with: pip install 'searchsvc[epub]'"
        ) from error


@dataclass(slots=True)
class _Part:
    """A document of the book, converted."""

    text: str
    first_heading: int
    """Number of its first heading; -1 without."""
    path: str


class _Work:
    """The conversion of one book."""

    def __init__(self, archive: Archive, package: Package, limits: Limits) -> None:
        self.archive, self.package, self.limits = archive, package, limits
        self.weave = Weave()
        self.pictures = Pictures(archive, limits)
        self.sources = self._read_sources()
        self.kept: dict[str, Any] = {}
        self.kept_characters = 0
        self.pages: list[int] = []

    def _read_sources(self) -> dict[str, str]:
        """Return the text of all documents, in reading order."""
        sources, characters = dict[str, str](), 0
        limit = 4 * self.limits.text_characters
        for name in self.package.documents:
            data = self.archive.read(name, _MAX_DOCUMENT_BYTES)
            if data is None:
                continue
            source = decode(data)
            text = resolve_names(strip_declarations(source), declared_entities(source))
            characters += len(text)
            if characters > limit:
                self.archive.notices.append(f"the text was cut: documents hold more than {limit} characters")
                break
            sources[name] = text
        return sources

    def book(self) -> Book:
        """Convert everything."""
        self._leave_out_contents()
        notes = find_notes(((path, self._soup(path)) for path in self.sources), self._known)
        order = {path: index for index, path in enumerate(self.sources)}
        parts, length, definitions = list[_Part](), 0, dict[int, str]()
        homes = dict[int, int]()
        for (path, _), number in notes.references.items():
            homes.setdefault(number, order[path])
        for path in self.sources:
            part = self._convert(path, notes, definitions)
            length += len(part.text)
            if length > self.limits.text_characters:
                self._cut(part, length - self.limits.text_characters)
                parts.append(part)
                break
            parts.append(part)
        texts = place_notes([part.text for part in parts], homes, definitions)
        text = "\n\n".join(text.strip("\n") for text in texts if text.strip())
        return self._finish(self.weave.finish(text, self._chapter_level(parts)))

    def _leave_out_contents(self) -> None:
        """Drop lists of contents; not what the navigation itself names, as that is more than a list."""
        named = {entry.place.path for entry in self.package.entries}
        for path in self.package.contents:
            if path in self.sources and path not in named and len(self.sources) > 1:
                if is_contents(self._soup(path)):
                    del self.sources[path]

    def _finish(self, text: str) -> Book:
        if not text.strip():
            raise ReadingError(
                "the EPUB holds no text and no images; open it in a reader to see whether it is complete"
            )
        package = self.package
        first = next((line.lstrip("#").strip() for line in text.split("\n") if line.startswith("#")), "")
        return Book(
            kind="epub",
            markdown=text.strip("\n") + "\n",
            title=package.title or _plain(first),
            author=package.author,
            language=package.language,
            assets=tuple(self.pictures.assets),
            notices=(*self.archive.notices, *self.pictures.notices()),
            pages=max(self.pages, default=0),
        )

    def _cut(self, part: _Part, surplus: int) -> None:
        end = part.text.rfind("\n\n", 0, max(0, len(part.text) - surplus))
        part.text = part.text[: max(0, end)]
        self.archive.notices.append(f"the text was cut after {self.limits.text_characters} characters")

    def _soup(self, path: str) -> Any:
        """Return the tree of a document."""
        if path in self.kept:
            return self.kept[path]
        from bs4 import BeautifulSoup

        source = self.sources[path]
        try:
            soup: Any = BeautifulSoup(source, "html.parser")
        except Exception as error:  # the parser of some versions of Python gives up on hostile text
            self.archive.notices.append(
                f"a document could not be parsed and was left out: {type(error).__name__}"
            )
            soup = BeautifulSoup("", "html.parser")
        tidy_names(soup)
        soup = flatten(soup, lambda text: BeautifulSoup(text, "html.parser"))
        if self.kept_characters + len(source) <= _KEPT_CHARACTERS:
            self.kept_characters += len(source)
            self.kept[path] = soup
        return soup

    def _known(self, place: Place) -> Place | None:
        path = self.archive.find(place.path)
        return Place(path, place.anchor) if path in self.sources else None

    def _convert(self, path: str, notes: Notes, definitions: dict[int, str]) -> _Part:
        """Convert a document; titles of the navigation become headings where it has none itself."""
        titles = {
            entry.place.anchor: (entry.title, entry.depth)
            for entry in reversed(self.package.entries)
            if entry.place.path == path
        }
        pages = len(self.pages)
        text = self._markdown(path, notes, definitions, titles, is_certain=False)
        if titles and text and not self._has_own_headings(text):
            self.kept.pop(path, None)
            known = {place.anchor for place in self.weave.places if place.path == path}
            titles = {anchor if anchor in known else "": title for anchor, title in titles.items()}
            for anchor in known:
                self.weave.places.pop(Place(path, anchor), None)
            del self.pages[pages:]
            text = self._markdown(path, notes, definitions, titles, is_certain=True)
        self.kept.pop(path, None)
        first = HEADING_NUMBER.search(text)
        return _Part(text, int(first.group(1)) if first else -1, path)

    def _has_own_headings(self, text: str) -> bool:
        return not all(self.weave.is_named[int(number)] for number in HEADING_NUMBER.findall(text))

    def _markdown(
        self,
        path: str,
        notes: Notes,
        definitions: dict[int, str],
        titles: dict[str, tuple[str, int]],
        *,
        is_certain: bool,
    ) -> str:
        soup = self._soup(path)
        mark(path, soup, notes)
        chapter = Chapter(
            path=path,
            weave=self.weave,
            picture=self.pictures.name_of,
            known=self._known,
            titles=dict(titles),
            is_certain=is_certain,
            max_page=self.limits.pages,
        )
        text = convert_chapter(chapter, soup)
        definitions.update(chapter.definitions)
        self.pages += chapter.pages
        return text

    def _chapter_level(self, parts: list[_Part]) -> int:
        """Return the level most chapters begin with; they are what the navigation names first."""
        top = {entry.place.path for entry in self.package.entries if entry.depth == 1}
        begun = [part for part in parts if part.first_heading >= 0]
        begun = [part for part in begun if not self.weave.is_named[part.first_heading]]
        begun = [part for part in begun if part.path in top] or begun
        levels = [self.weave.levels[part.first_heading] for part in begun]
        counts = Counter(levels)
        return min(counts, key=lambda level: (-counts[level], level), default=1)


def _plain(text: str) -> str:
    from searchsvc.reading.structure import plain_text

    return plain_text(text)
