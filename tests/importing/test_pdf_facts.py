"""Title, author and language that PDFs say they have."""

import pytest

pytest.importorskip("pypdfium2", reason="PDFs are read with pypdfium2 (extra pdf)")
pytest.importorskip("reportlab", reason="PDFs for the tests are made with reportlab")

import pdf_world as world

from searchsvc.importing.base import Limits
from searchsvc.importing.pdf import convert


def read(data):
    return convert(data, Limits())


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("A Good Title", "A Good Title"),
        ("Microsoft Word - report.doc", ""),
        ("Microsoft Word - Annual Report", "Annual Report"),
        ("untitled", ""),
        ("paper_final.pdf", ""),
        ("(anonymous)", ""),
        ("(unspecified)", ""),
        ("Untitled-1", ""),
        ("<unknown>", ""),
        ("unnamed.", "unnamed."),
        ("Microsoft Word - a long name.docx", ""),
        ("Microsoft Word - foo.doc [Compatibility Mode]", ""),
        ("Annual report 2020 final.docx", ""),
        ("PowerPoint Presentation", ""),
        ("Slide 1", ""),
        ("Dokument2", ""),
        ("C:\\Users\\me\\report", ""),
        ("file:///home/me/a.html", ""),
        ("annual_report_v3", ""),
        ("无标题", ""),
        ("2020-01-01", ""),
        ("The Unknown Soldier", "The Unknown Soldier"),
        ("Untitled Works of a Painter", "Untitled Works of a Painter"),
        ("Document Analysis", "Document Analysis"),
        ("A Book of Slides", "A Book of Slides"),
        ("A\0 Title\n here", "A Title here"),
    ],
)
def test_a_title_is_taken_from_the_document_when_it_is_one(said, title):
    def draw(canv, _):
        canv.setTitle(said)
        canv.setAuthor("Ann Lee; Bo Chen")
        world.lines(canv, world.prose())

    found = read(world.drawn(draw, lang="de-DE"))
    assert (found.title, found.author, found.language) == (title, "Ann Lee, Bo Chen", "de-DE")


@pytest.mark.parametrize(
    "said",
    [
        "(anonymous)",
        "(unspecified)",
        "unknown",
        "Administrator",
        "Microsoft Office User",
        "user1",
        "N/A",
        "-",
    ],
)
def test_an_author_who_is_nobody_is_left_out(said):
    def draw(canv, _):
        canv.setAuthor(f"{said}; Ann Lee")
        world.lines(canv, world.prose())

    assert read(world.drawn(draw)).author == "Ann Lee"


def test_a_document_that_names_no_title_has_that_of_its_first_heading():
    def draw(canv, _):
        canv.setTitle("untitled")
        world.lines(canv, ["The Heading"], y=740, size=18)
        world.lines(canv, world.prose())

    assert read(world.drawn(draw)).title == "The Heading"
