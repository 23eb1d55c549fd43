"""Pages of imported documents: which a section stands on, and which lines a page has."""

import pytest

from searchsvc.config import Config, make_root
from searchsvc.documents import Documents
from searchsvc.errors import QueryError
from searchsvc.library import Library
from searchsvc.reading.note import read_note
from searchsvc.service import Service

BOOK = """---
title: A book
pages: 4
---
<!-- page 1 -->

# A book

Opening words.

<!-- page 2 -->

## Herons

Herons stand still.

<!-- page 3 -->

They wait on page three.

<!-- page 4 -->

## Cranes

Cranes dance.
"""


@pytest.fixture
def folder(tmp_path):
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "book.md").write_text(BOOK)
    (notes / "plain.md").write_text("# Plain\n\n<!-- page 7 -->\n\nNo pages here.\n")
    return notes


@pytest.fixture
def desk(folder):
    config = Config(roots=(make_root(folder),))
    return Documents(Library(config.roots, config), config)


def test_a_section_tells_the_pages_its_text_stands_on():
    sections = read_note("book.md", BOOK.encode()).sections
    assert [(s.title, s.pages) for s in sections if s.title] == [
        ("A book", (1, 1)), ("Herons", (2, 3)), ("Cranes", (4, 4)),
    ]  # fmt: skip


def test_comments_in_a_note_without_pages_are_no_page_marks():
    assert [s.pages for s in read_note("plain.md", b"# A\n\n<!-- page 3 -->\n").sections] == [None]
    for value in ("no", "true", "-1", "0", "[1]"):
        text = f"---\npages: {value}\n---\n# A\n\n<!-- page 3 -->\n\nText.\n"
        assert [s.pages for s in read_note("a.md", text.encode()).sections] == [None]


def test_results_carry_page_numbers_and_marks_are_not_searched(folder, tmp_path):
    service = Service(Config(roots=(make_root(folder),), data_dir=tmp_path / "data", model="none"))
    service.index()
    (hit,) = service.search("herons wait").hits[:1]
    assert (hit.path, hit.section.pages) == ("book.md", (2, 3))
    assert "L13-22 · p. 2-3 ·" in service.semantic_search("herons wait", max_tokens=400).text
    found = service.search("page", mode="lexical", path="book.md").hits
    assert [hit.section.title for hit in found] == ["Herons"], "only there it is a word of the text"


def test_pages_are_read_from_mark_to_mark(desk):
    reply = desk.get_documents([{"doc": "book", "pages": [2, 3]}])
    assert reply.rows[0]["lines"] == [11, 20]
    assert "Herons stand still." in reply.text
    assert "page three" in reply.text
    assert "Opening" not in reply.text
    assert "Cranes" not in reply.text
    assert "Cranes dance." in desk.read_md_with_images("book", pages=[4, 4]).text


def test_pages_that_are_not_there_are_said_not_replaced(desk):
    reply = desk.get_documents([{"doc": "book", "pages": [9, 9]}, {"doc": "plain", "pages": [7, 7]}])
    assert reply.rows == ()
    assert any("book has text on pages 1 to 4" in note for note in reply.notes)
    assert any("plain has no pages" in note for note in reply.notes)
    alone = desk.read_md_with_images("book", pages=[9, 9])
    assert "Herons" not in alone.text
    assert any("pages 1 to 4" in note for note in alone.notes)


@pytest.mark.parametrize(
    ("select", "reason"),
    [
        ({"doc": "book", "pages": [1, 2], "lines": [1, 2]}, "lines and pages"),
        ({"doc": "book", "pages": [0, 2]}, "pages are counted from 1"),
        ({"root": ".", "pages": [1, 2]}, "pages goes with doc"),
    ],
)
def test_pages_that_cannot_be_meant_are_refused(desk, select, reason):
    with pytest.raises(QueryError, match=reason):
        desk.get_documents([select])


def test_lines_and_pages_of_one_document_are_not_both_read(desk):
    with pytest.raises(QueryError, match="at most one"):
        desk.read_md_with_images("book", line_range=[1, 2], pages=[1, 2])
