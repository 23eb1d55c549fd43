"""A PDF -> Markdown with headings, page marks and images.

Each page is read (``pdf_text``; how text looks, what is drawn and which way it runs say ``pdf_fonts``,
``pdf_objects``, ``pdf_bullets`` and ``pdf_direction``). Its ruled tables (``pdf_tables``, ``pdf_grid``) and
images (``pdf_images``, ``pdf_strips``) become pieces, and its lines are put in reading order
(``pdf_layout``). Over all pages running heads are taken away (``pdf_heads``), lines become blocks
(``pdf_blocks``), headings are found (``pdf_headings``), what ends of pages part is joined (``pdf_joining``),
and all is written (``pdf_write``, ``pdf_markdown``).

A line ``<!-- page N -->`` stands before the first block that begins on page N. A paragraph or table that runs
over the end of a page is kept whole, so the mark comes after it. Pages without text have marks, too.

pdfium is not safe among threads, and is native code that reads what strangers made: convert in a process.
"""

import importlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from searchsvc.errors import ReadingError
from searchsvc.importing.base import Book, Limits
from searchsvc.importing.pdf_blocks import make_blocks, measure_body
from searchsvc.importing.pdf_facts import Facts, read_facts
from searchsvc.importing.pdf_headings import (
    Bookmark,
    add_larger,
    find_headings,
    mark_bookmarks,
    read_bookmarks,
)
from searchsvc.importing.pdf_heads import drop_running_heads
from searchsvc.importing.pdf_images import Images
from searchsvc.importing.pdf_joining import join_over_breaks
from searchsvc.importing.pdf_layout import Line, Run, lay_out
from searchsvc.importing.pdf_shapes import PageText
from searchsvc.importing.pdf_tables import take_ruled
from searchsvc.importing.pdf_text import read_page
from searchsvc.importing.pdf_write import Writer

_HEADER_WITHIN = 1024
"""Bytes from the beginning within which a PDF says that it is one."""
_PASSWORD, _SECURITY = 4, 5
"""Error codes of pdfium."""
_UNREADABLE = 0.2
"""Of the characters of a page: with more of them without a meaning its text is not to be trusted."""


@dataclass(slots=True)
class _Read:
    """What was read of all pages."""

    count: int
    """Of pages of the file; fewer may have been read."""
    pages: list[list[Line]] = field(default_factory=list)
    heights: list[float] = field(default_factory=list)
    bookmarks: list[tuple[Bookmark, float | None]] = field(default_factory=list)
    """With the height that each points to on its page as it is read."""
    empty: list[int] = field(default_factory=list)
    """Numbers of pages without text."""
    damaged: list[int] = field(default_factory=list)
    garbled: list[int] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


def convert(data: bytes, limits: Limits) -> Book:
    """Return a PDF as a ``Book``; raises ``ReadingError`` that says what was found and what to do.

    One call at a time in a process: pdfium is not safe among threads. A damaged file may take long or end
    the process, so run it in one of its own with a limit of time and memory.
    """
    _expect_pdf(data, limits)
    try:
        helpers = importlib.import_module("pypdfium2")
        pdfium = importlib.import_module("pypdfium2.raw")
    except ImportError as error:
        raise ReadingError("a PDF, and nothing to read it with; pip install 'searchsvc[pdf]'") from error
    document = _opened(helpers, data)
    try:
        count = len(document)
        if count > limits.pages:
            raise ReadingError(f"a PDF of {count:,} pages, at most {limits.pages:,} are read; split it")
        images = Images(pdfium, helpers, document, limits)
        bookmarks = read_bookmarks(pdfium, document)
        read = _read_pages(helpers, pdfium, document, images, bookmarks, limits)
        facts = read_facts(pdfium, document)
    finally:
        document.close()
    if len(read.damaged) == count:
        raise ReadingError(f"a PDF of which none of the {count:,} pages can be read; get an undamaged copy")
    return _written(read, images, facts, limits)


def _expect_pdf(data: bytes, limits: Limits) -> None:
    if not data:
        raise ReadingError("the file is empty, expected a PDF")
    if len(data) > limits.file_bytes:
        raise ReadingError(f"a PDF of {len(data):,} bytes, at most {limits.file_bytes:,} are read; split it")
    if b"%PDF-" not in data[:_HEADER_WITHIN]:
        raise ReadingError("not a PDF: it does not begin with %PDF-; give the file its right extension")


def _opened(helpers: Any, data: bytes) -> Any:
    """Open a document; encrypted ones that need no password for reading are read."""
    try:
        return helpers.PdfDocument(data)
    except helpers.PdfiumError as error:
        if error.err_code == _PASSWORD:
            raise ReadingError("a PDF that needs a password; save a copy of it without one") from error
        if error.err_code == _SECURITY:
            raise ReadingError("a PDF with encryption that is not known; save a copy without it") from error
        if b"%%EOF" not in data[-2048:]:
            raise ReadingError("a PDF that is cut off (no %%EOF at its end); get the whole file") from error
        raise ReadingError("a PDF that is damaged or has no pages; open and save it anew") from error


def _read_pages(
    helpers: Any,
    pdfium: Any,
    document: Any,
    images: Images,
    bookmarks: Sequence[Bookmark],
    limits: Limits,
) -> _Read:
    read = _Read(len(document))
    by_page: dict[int, list[Bookmark]] = {}
    for bookmark in bookmarks:
        by_page.setdefault(bookmark.page, []).append(bookmark)
    characters = 0
    for index in range(len(document)):
        lines: list[Line] = []
        height = 0.0
        try:
            page = document[index]
            try:
                found = read_page(pdfium, page)
                lines, height = _lines(found, images.take(index + 1, page, found)), found.height
            finally:
                page.close()
        except helpers.PdfiumError:
            read.damaged.append(index + 1)
            found = PageText(0.0, 0.0)
        else:
            if not found.characters:
                (read.garbled if found.unread else read.empty).append(index + 1)
            elif found.unread > _UNREADABLE * (found.characters + found.unread):
                read.garbled.append(index + 1)
        characters += found.characters
        if characters > limits.text_characters:
            read.notices.append(
                f"only pages 1-{index} were read: a text may have {limits.text_characters:,} characters"
            )
            break
        read.pages.append(lines)
        read.heights.append(height)
        read.bookmarks += [(some, found.height_at(some.x, some.y)) for some in by_page.get(index, ())]
    if not read.pages:
        raise ReadingError(f"a page of more than {limits.text_characters:,} characters; no page holds that")
    _add_notices(read)
    return read


def _lines(found: PageText, pictures: list[Run]) -> list[Line]:
    pieces = [*take_ruled(found), *pictures]
    lines = lay_out(found.words, pieces, found.mirrored)
    for words in found.aside:
        beyond = 1 + max((line.column for line in lines), default=0)
        beside = lay_out(words)
        for line in beside:
            line.column += beyond
            # In the middle: its heights are those of another direction, and it is no head or foot.
            line.y = line.y if len(beside) > 1 else found.height / 2
        lines += beside
    return lines


def _add_notices(read: _Read) -> None:
    def tell(pages: list[int], what: str, then: str) -> None:
        if pages:
            verb = what if len(pages) > 1 else what.replace("have ", "has ").replace("are ", "is ")
            where = ("pages " if len(pages) > 1 else "page ") + _ranges(pages)
            read.notices.append(f"{len(pages)} of {read.count} pages {verb}: {then} {where}")

    tell(read.empty, "have no text layer", "nothing was recognised on")
    tell(read.damaged, "are damaged", "nothing was read of")
    tell(read.garbled, "have fonts that do not say which letters they show", "text is missing or wrong on")


def _ranges(numbers: Iterable[int]) -> str:
    """Return numbers in order as ``1-3, 7``."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def _written(read: _Read, images: Images, facts: Facts, limits: Limits) -> Book:
    body = measure_body(read.pages)
    drop_running_heads(read.pages, read.heights, body.size)
    body = measure_body(read.pages)
    if read.bookmarks:
        mark_bookmarks(read.pages, read.bookmarks)
    blocks = [block for page, lines in enumerate(read.pages) for block in make_blocks(page, lines, body)]
    # One bookmark alone is the title, and tells nothing of what is below it; if nothing is set larger.
    if not (read.bookmarks and add_larger(blocks, body)) and len(read.bookmarks) < 2:
        find_headings(blocks, body, above=len(read.bookmarks))
    blocks = join_over_breaks(blocks, body)
    writer = Writer(blocks, images.once())
    markdown = writer.write(len(read.pages))
    if len(markdown) > limits.text_characters:
        cut = markdown.rfind("\n\n", 0, limits.text_characters)
        markdown = markdown[: max(cut, 0)] + "\n"
        read.notices.append(f"the text was cut at {limits.text_characters:,} characters")
    return Book(
        "pdf",
        markdown,
        title=facts.title or writer.first_heading,
        author=facts.author,
        language=facts.language,
        assets=tuple(writer.shown),
        notices=(*read.notices, *images.notices()),
        pages=read.count,
    )
