"""Writes small EPUBs for tests: version 2 and 3, whole and broken."""

import io
import zipfile

from searchsvc.importing.base import Book, Limits
from searchsvc.importing.epub import convert
from searchsvc.items import Note
from searchsvc.reading.note import read_note

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40
JPG = b"\xff\xd8\xff\xe0" + b"\0" * 40
CONTAINER = (
    '<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
    "<rootfiles>"
    '<rootfile full-path="{opf}" media-type="application/oebps-package+xml"/></rootfiles></container>'
)
META = "<dc:title>A book</dc:title><dc:language>en</dc:language>"


def pack(members: dict[str, str | bytes] | list[tuple[str, str | bytes]]) -> bytes:
    """Return a zip file with ``mimetype`` first and not compressed, as EPUB wants it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as target:
        target.writestr("mimetype", "application/epub+zip", compress_type=zipfile.ZIP_STORED)
        for name, content in members.items() if isinstance(members, dict) else members:
            target.writestr(name, content)
    return buffer.getvalue()


def page(body: str, head: str = "<title>t</title>") -> str:
    return (
        '<?xml version="1.0" encoding="utf-8"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml" '
        f'xmlns:epub="http://www.idpf.org/2007/ops"><head>{head}</head><body>{body}</body></html>'
    )


def package(documents, *, meta=META, folder="OEBPS/", items="", toc="", spine=None, version="3.0"):
    """Return the package document; ``spine`` is a list of ``itemref`` attributes by document."""
    manifest = "".join(
        f'<item id="d{n}" href="{name}" media-type="application/xhtml+xml"/>'
        for n, name in enumerate(documents)
    )
    refs = spine or [f'idref="d{n}"' for n in range(len(documents))]
    return (
        f'<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="{version}">'
        f'<metadata xmlns:dc="http://purl.org/dc/elements/1.1/" '
        f'xmlns:opf="http://www.idpf.org/2007/opf">{meta}'
        f"</metadata><manifest>{manifest}{items}</manifest>"
        f"<spine{toc}>{''.join(f'<itemref {ref}/>' for ref in refs)}</spine></package>"
    )


def members(bodies, *, nav="", ncx="", extra=None, folder="OEBPS/", **options):
    """Return the members of an EPUB; bodies by file name, or one body."""
    if isinstance(bodies, str):
        bodies = {"a.xhtml": bodies}
    items, toc = options.pop("items", ""), ""
    found = {"META-INF/container.xml": CONTAINER.format(opf=f"{folder}c.opf")}
    if nav:
        items += '<item id="nav" properties="nav" href="nav.xhtml" media-type="application/xhtml+xml"/>'
        found[f"{folder}nav.xhtml"] = page(f'<nav epub:type="toc"><ol>{nav}</ol></nav>')
    if ncx:
        items += '<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>'
        toc = ' toc="ncx"'
        found[f"{folder}toc.ncx"] = (
            '<?xml version="1.0"?><!DOCTYPE ncx PUBLIC "-//NISO//DTD ncx 2005-1//EN" '
            '"http://www.daisy.org/z3986/2005/ncx-2005-1.dtd">'
            f'<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/" version="2005-1"><navMap>{ncx}</navMap></ncx>'
        )
    found[f"{folder}c.opf"] = package(list(bodies), items=items, toc=toc, **options)
    found |= {f"{folder}{name}": page(body) for name, body in bodies.items()}
    return found | {f"{folder}{name}": content for name, content in (extra or {}).items()}


def point(title: str, source: str, inner: str = "") -> str:
    return f'<navPoint><navLabel><text>{title}</text></navLabel><content src="{source}"/>{inner}</navPoint>'


def entry(title: str, source: str, inner: str = "") -> str:
    return f'<li><a href="{source}">{title}</a>{f"<ol>{inner}</ol>" if inner else ""}</li>'


def book(bodies, limits=None, **options) -> Book:
    """Write an EPUB and import it."""
    return convert(pack(members(bodies, **options)), limits or Limits())


def note_of(result: Book) -> Note:
    """Return the Markdown as the reader sees it; every internal link must resolve."""
    note = read_note("book.md", result.markdown.encode())
    anchors = {section.anchor for section in note.sections if section.anchor}
    for link in note.links:
        assert not link.target, link
        assert link.heading in anchors, (link.heading, anchors)
    return note


def headings(result: Book) -> list[tuple[int, str]]:
    return [(section.level, section.title) for section in note_of(result).sections if section.title]


def text(bodies, **options) -> str:
    return book(bodies, **options).markdown
