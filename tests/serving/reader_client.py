"""Servers with the reader's tools over files that lie about, for tests over the protocol."""

import io
import re

import anyio
from reportlab.pdfgen import canvas

from searchsvc.config import Config, make_root
from searchsvc.serving.server import make_server
from tests.importing import epub_world
from tests.notes import write_notes

HERONS = "Herons stand still in the reeds and wait for fish."
PATIENCE = 60


def pdf(*pages: tuple[str, str], title: str = "Marsh birds", author: str = "Ada") -> bytes:
    """Return a PDF with a heading and a text on each page."""
    out = io.BytesIO()
    paper = canvas.Canvas(out)
    paper.setTitle(title)
    paper.setAuthor(author)
    for heading, text in pages or (("Herons", HERONS), ("Bitterns", "A bittern booms at night.")):
        paper.bookmarkPage(heading)
        paper.addOutlineEntry(heading, heading, 0)
        paper.setFont("Helvetica-Bold", 18)
        paper.drawString(72, 720, heading)
        paper.setFont("Helvetica", 11)
        for row, line in enumerate(re.findall(r".{1,70}(?:\s|$)", text)):
            paper.drawString(72, 690 - 14 * row, line.strip())
        paper.showPage()
    paper.save()
    return out.getvalue()


def epub(text: str = "Owls hunt at night.", title: str = "Owls") -> bytes:
    """Return an EPUB of one chapter."""
    meta = f"<dc:title>{title}</dc:title><dc:language>en</dc:language><dc:creator>Bea</dc:creator>"
    bodies = {"a.xhtml": f"<h1>{title}</h1><p>{text}</p><h2>Mice</h2><p>They eat mice.</p>"}
    return epub_world.pack(epub_world.members(bodies, meta=meta))


def configure(tmp_path, **settings) -> Config:
    """Return settings over a vault that has files to import, and a folder outside."""
    notes = write_notes(tmp_path / "notes")
    (notes / "papers").mkdir(exist_ok=True)
    (notes / "papers/marsh.pdf").write_bytes(pdf())
    (notes / "papers/owls.epub").write_bytes(epub())
    (notes / "papers/damaged.pdf").write_bytes(pdf()[:700])
    (tmp_path / "outside").mkdir(exist_ok=True)
    (tmp_path / "outside/secret.pdf").write_bytes(pdf(("Secret", "Nobody may read this.")))
    fixed = {"model": "none", "instant_model": "none", "data_dir": tmp_path / "data"}
    return Config(roots=(make_root(notes),), **{**fixed, **settings})


def serve(config: Config, toolsets: str = "reader"):
    return make_server(config, toolsets)


def text_of(result) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


def cursor_of(result) -> str:
    found = re.search('cursor="([^"]+)"', result.structured_content.get("rest", ""))
    return found[1] if found else ""


async def until(ask, is_so):
    """Ask until the result is as it should become, and return it."""
    with anyio.fail_after(PATIENCE):
        while True:
            result = await ask()
            if is_so(result):
                return result
            await anyio.sleep(0.1)
