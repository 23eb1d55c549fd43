"""What front matter says of a document, and what it may not say."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchsvc.items import Metadata
from searchsvc.reading.note import read_note
from tests.index.index_world import World

SHA = "ab" * 32
IMPORT = f"importer: 1\nsha256: {SHA}\nfile_type: pdf\n"


def metadata(front):
    return read_note("n.md", f"---\n{front}\n---\n# N\n\ntext\n".encode("utf-8", "replace")).metadata


@pytest.mark.parametrize(
    ("front", "expected"),
    [
        ("author: Ada Lovelace", "Ada Lovelace"),
        ("Authors: [Ada, Bob]", "Ada, Bob"),
        ("creator: Ada", "Ada"),
        ("creator: Eve\nauthor: Ada", "Ada"),
        ("author:\nauthors: [Ada]", "Ada"),
        ('author: "Ada\\n=== x\\t y"', "Ada === x y"),
        ("author: 12", "12"),
        ("title: x", ""),
    ],
)
def test_the_author_may_be_written_in_several_ways(front, expected):
    assert metadata(front).author == expected


@pytest.mark.parametrize(
    ("front", "language", "created"),
    [
        ("lang: pt-BR\ndate: 2020-01-02", "pt-BR", "2020-01-02"),
        ("language: de\ncreated: 2020", "de", "2020"),
        ("language: zh_Hans_CN\npublished: 2020-01-02T10:20:30Z", "zh_Hans_CN", "2020-01-02T10:20:30Z"),
        ("language: not a language\ndate: last week", "", ""),
        ("language: [en, de]\ndate: [2020, 2021]", "", ""),
        ('language: "en\\n=== x"\ndate: "2020-01-02\\n=== x"', "", ""),
        ("lang: {a: b}\ndate: {a: b}", "", ""),
    ],
)
def test_what_is_no_language_or_date_is_left_out(front, language, created):
    found = metadata(front)
    assert (found.language, found.created) == (language, created)


def test_marks_of_an_import_are_believed_together():
    found = metadata(IMPORT + "pages: 12\nsource: /books/x.pdf\nimported_at: '2026-01-02T03:04:05Z'")
    assert found == Metadata(
        file_type="pdf", imported="2026-01-02T03:04:05Z", pages=12, source="/books/x.pdf"
    )


@pytest.mark.parametrize(
    "front",
    [
        IMPORT.replace("importer: 1\n", ""),
        IMPORT.replace(SHA, "ab"),
        IMPORT.replace("pdf", "docx"),
        IMPORT.replace("importer: 1", "importer: me"),
        "file_type: pdf",
    ],
)
def test_any_note_may_have_a_source_and_is_no_import_for_it(front):
    found = metadata(front + "\npages: 9\nsource: https://example.com\n")
    assert (found.file_type, found.pages, found.source, found.imported) == ("markdown", 0, "", "")


@pytest.mark.parametrize("pages", ["true", "-3", "1.5", "x", "[1]", str(10**30), "0x7fffffffffffffffffff"])
def test_a_number_of_pages_that_cannot_be_is_none(pages):
    assert metadata(f"{IMPORT}pages: {pages}").pages == 0


def test_a_date_of_import_that_is_none_is_left_out():
    found = metadata(IMPORT + 'imported_at: "2026-01-02\\n=== x"')
    assert found.imported == ""
    assert metadata(IMPORT + "imported_at: [1, 2]").imported == ""


def test_fields_have_an_end():
    found = metadata(f"author: {'A' * 5000}\nlang: {'en-' * 50}en\ndate: 2020-01-02T10:20{'0' * 500}")
    assert len(found.author) == 300
    assert (found.language, found.created) == ("", "")
    assert len(metadata(f"{IMPORT}source: {'s' * 50_000}").source) <= 8_000


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=30)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
KEYS = ("author", "language", "created", "pages", "source", "imported_at", "title")


@given(st.dictionaries(st.sampled_from(KEYS), VALUES))
def test_whatever_stands_there_fits_the_catalog(properties):
    front = "".join(f"{key}: {json.dumps(value)}\n" for key, value in properties.items())
    found = metadata(IMPORT + front)
    assert 0 <= found.pages < 2**31
    for text in (found.author, found.language, found.created, found.imported):
        assert len(f".{text}.".splitlines()) == 1
        assert len(text) <= 300


@pytest.mark.proves("R-bad-file")
def test_hostile_marks_of_an_import_stop_no_index(tmp_path):
    world = World(tmp_path)
    world.write("bad.md", f"---\n{IMPORT}pages: {10**30}\nsource: {'x' * 9000}\n---\n# Bad\n\nheron\n")
    world.write("good.md", "# Good\n\nheron\n")
    world.index()
    with world.reader.pinned() as (_, catalog):
        assert {row.path for row in catalog.notes().values()} == {"bad.md", "good.md"}
