"""PDF and EPUB files made of real Markdown text, for measuring how they are imported."""

import html
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmark.errors import BenchmarkError
from searchsvc.reading.note import read_note
from searchsvc.reading.structure import plain_text

Chapter = tuple[str, list[str]]
"""A title and its paragraphs."""
_PARAGRAPHS = 9
_CHAPTERS = 4
_MIN_CHARACTERS = 80
_MAX_CHARACTERS = 1_200


def read_chapters(sources: Sequence[Path]) -> Callable[[int], list[Chapter]]:
    """Return what gives the chapters of a document by its number, made of the Markdown under some folders."""
    paragraphs = [text for source in sources for text in _paragraphs(source)]
    if len(paragraphs) < _PARAGRAPHS * _CHAPTERS:
        raise BenchmarkError(f"{len(paragraphs)} paragraphs of text under --source, expected more")

    def chapters(number: int) -> list[Chapter]:
        start = number * _PARAGRAPHS * _CHAPTERS
        chosen = [paragraphs[(start + n) % len(paragraphs)] for n in range(_PARAGRAPHS * _CHAPTERS)]
        return [
            (f"Chapter {c + 1} of {number}", chosen[c * _PARAGRAPHS : (c + 1) * _PARAGRAPHS])
            for c in range(_CHAPTERS)
        ]

    return chapters


def _paragraphs(source: Path) -> Iterator[str]:
    """Yield running text of notes: paragraphs without code, tables and lists."""
    for file in sorted(source.rglob("*.md")):
        note = read_note(file.name, file.read_bytes())
        for section in note.sections:
            for block in note.text(section.body_start, section.line_end).split("\n\n"):
                text = " ".join(plain_text(block).split())
                if _MIN_CHARACTERS <= len(text) <= _MAX_CHARACTERS and re.match(r"\w", block):
                    yield text


def make_pdf(file: Path, title: str, chapters: Sequence[Chapter]) -> None:
    """Write a PDF with bookmarks, running heads, page numbers and lists."""
    try:
        from reportlab.lib.styles import getSampleStyleSheet
        from reportlab.platypus import ListFlowable, PageBreak, Paragraph, SimpleDocTemplate
    except ImportError as error:
        raise BenchmarkError("reportlab is needed: pip install 'searchsvc[bench]'") from error
    styles = getSampleStyleSheet()

    def furnish(canvas: Any, document: Any) -> None:
        canvas.setFont("Helvetica", 8)
        canvas.drawString(72, 800, title)
        canvas.drawRightString(520, 30, f"Page {document.page}")

    flow = list[Any]()
    for name, paragraphs in chapters:
        flow.append(Paragraph(f'<a name="{name}"/>{html.escape(name)}', styles["Heading1"]))
        flow += [Paragraph(html.escape(text), styles["BodyText"]) for text in paragraphs]
        points = [Paragraph(html.escape(text[:90]), styles["BodyText"]) for text in paragraphs[:3]]
        flow += [ListFlowable(points, bulletType="bullet"), PageBreak()]
    document = SimpleDocTemplate(str(file), title=title, author="Benchmark")
    document.build(flow, onFirstPage=furnish, onLaterPages=furnish)


def make_epub(file: Path, title: str, chapters: Sequence[Chapter]) -> None:
    """Write an EPUB 3 with one file a chapter."""
    items = "".join(
        f'<item id="c{n}" href="c{n}.xhtml" media-type="application/xhtml+xml"/>'
        for n in range(len(chapters))
    )
    spine = "".join(f'<itemref idref="c{n}"/>' for n in range(len(chapters)))
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        book.writestr(
            "META-INF/container.xml",
            '<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="book.opf" media-type="application/oebps-package+xml"/></rootfiles>'
            "</container>",
        )
        book.writestr(
            "book.opf",
            '<package version="3.0" xmlns="http://www.idpf.org/2007/opf"><metadata '
            f'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{html.escape(title)}</dc:title>'
            f"<dc:language>en</dc:language></metadata><manifest>{items}</manifest><spine>{spine}</spine></package>",
        )
        for number, (name, paragraphs) in enumerate(chapters):
            body = "".join(f"<p>{html.escape(text)}</p>" for text in paragraphs)
            book.writestr(
                f"c{number}.xhtml",
                f'<html xmlns="http://www.w3.org/1999/xhtml"><head><title>{html.escape(name)}</title></head>'
                f"<body><h1>{html.escape(name)}</h1>{body}</body></html>",
            )
