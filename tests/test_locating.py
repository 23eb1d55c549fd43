"""What callers call a document, and which one is meant."""

import pytest

from searchsvc.errors import NotFound, QueryError
from searchsvc.locating import Locator
from tests.reader_world import ReaderWorld, text_of

SHA = "ab" * 32


def imported(source, title):
    front = f"importer: 1\nsha256: {SHA}\nfile_type: pdf\nsource: {source}\ntitle: {title}\n"
    return f"---\n{front}---\n# {title}\n\ntext\n"


@pytest.fixture
def world(tmp_path):
    world = ReaderWorld(tmp_path)
    world.write("one-0123456789ab/index.md", imported("/books/a/paper.pdf", "Paper A"))
    world.write("two-0123456789ab/index.md", imported("/books/b/paper.pdf", "Paper B"))
    world.write("notes [draft] #1 *.md", "# Draft\n\nbrackets\n")
    world.write("Ümlaut/é.md", "# Übung\n\nx\n")
    world.write("control.md", '---\ntitle: "Tab\\tand\\nbreak"\n---\ntext\n')
    world.service.index()
    return world


def found(world, *parts, **named):
    reply = world.reader.open_document(Locator(*parts, **named))
    return reply.rows[0]["doc_id"], reply.notes


@pytest.mark.parametrize(
    ("locator", "expected"),
    [
        (Locator("birds/heron.md"), "birds/heron.md"),
        (Locator("birds/heron"), "birds/heron.md"),
        (Locator("heron"), "birds/heron.md"),
        (Locator("birds/heron.md#food"), "birds/heron.md"),
        (Locator(path="birds/heron.md"), "birds/heron.md"),
        (Locator(path="/books/a/paper.pdf"), "one-0123456789ab/index.md"),
        (Locator(path="b/paper.pdf"), "two-0123456789ab/index.md"),
        (Locator(title="The Heron"), "birds/heron.md"),
        (Locator(title="the  HERON"), "birds/heron.md"),
        (Locator(title="aper b"), "two-0123456789ab/index.md"),
        (Locator("notes [draft] #1 *.md"), "notes [draft] #1 *.md"),
        (Locator("notes [draft] #1 *.md#draft"), "notes [draft] #1 *.md"),
        (Locator("U\u0308mlaut/e\u0301.md"), "Ümlaut/é.md"),
        (Locator(title="ÜBUNG"), "Ümlaut/é.md"),
        (Locator(title="Tab and break"), "control.md"),
        (Locator("birds/owl.md", title="Owls"), "birds/owl.md"),
    ],
)
def test_a_document_is_found_by_any_of_its_names(world, locator, expected):
    assert world.reader.open_document(locator).rows[0]["doc_id"] == expected


def test_the_path_of_a_file_on_disk_is_one_of_its_names(world):
    assert found(world, path=str(world.notes / "plain.md"))[0] == "plain.md"


@pytest.mark.proves("R-none-picked")
def test_several_that_fit_are_all_listed_and_none_is_picked(world):
    for locator in (Locator(title="Owls"), Locator(title="owl"), Locator(path="paper.pdf")):
        with pytest.raises(QueryError, match="fits 2 documents; give the doc_id") as refused:
            world.reader.open_document(locator)
        pair = ("owl.md", "owl.md") if locator.title else ("one-", "two-")
        assert all(name in str(refused.value) for name in pair)
    with pytest.raises(QueryError, match="birds/owl.md.*old/owl.md"):
        world.reader.search_markdown("owls", Locator(title="Owls"))


def test_what_a_note_says_of_its_source_takes_no_other_notes_place(world):
    world.write("evil.md", imported("/x/birds/heron.md", "Evil"))
    world.write("evil-2.md", imported(world.notes / "plain.md", "Evil"))
    world.service.index()
    assert found(world, path="birds/heron.md")[0] == "birds/heron.md"
    for path in ("heron.md", str(world.notes / "plain.md")):
        with pytest.raises(QueryError, match="path fits 2 documents"):
            found(world, path=path)


def test_more_than_a_few_are_counted(world):
    for number in range(20):
        world.write(f"same/{number}.md", "# Same\n")
    world.service.index()
    with pytest.raises(QueryError, match="fits 20 documents.* and 12 more"):
        world.reader.open_document(Locator(title="Same"))


def test_a_part_that_fits_several_is_decided_by_another(world):
    assert found(world, path="paper.pdf", title="Paper B")[0] == "two-0123456789ab/index.md"
    assert found(world, path="old/owl.md", title="Owls")[0] == "old/owl.md"
    with pytest.raises(QueryError, match="fits 2"):
        found(world, path="paper.pdf", title="The Heron")


def test_what_matched_is_said_and_what_missed_before_it(world):
    doc, notes = found(world, "nowhere.md", "", "The Heron")
    assert doc == "birds/heron.md"
    assert notes[0] == "doc_id 'nowhere.md' matched no document; found by title"
    doc, notes = found(world, "nowhere.md", "old/owl.md")
    assert notes[0].endswith("found by path")
    assert found(world, "old/owl.md")[1] == ("found by doc_id",)
    searched = world.reader.search_markdown("owls", Locator("nowhere.md", title="The Heron"))
    assert "only in birds/heron.md: doc_id 'nowhere.md' matched no document; found by title" in text_of(
        searched
    )
    outline = world.reader.get_markdown_outline(Locator(title="The Heron"))
    assert text_of(outline).split("\n")[0].endswith("· found by title")


def test_what_missed_and_what_is_near_are_named(world):
    with pytest.raises(NotFound, match="doc_id 'birds/herom.md'.*nearest: birds/heron.md"):
        found(world, "birds/herom.md")
    with pytest.raises(NotFound, match="title 'The Hern'.*nearest: birds/heron.md"):
        found(world, title="The Hern")
    with pytest.raises(NotFound, match="nothing is called alike; reader.list_documents"):
        found(world, "qqqqqqqqqq")


@pytest.mark.parametrize(
    "path", ["../../x.md", "/etc/passwd", "birds", "\0", "x" * 5000, ".hidden.md", "#", " "]
)
def test_what_leads_out_or_nowhere_is_not_found(world, path):
    (world.notes / ".hidden.md").write_text("# Hidden\n\nsecret\n", encoding="utf-8")
    for locator in (Locator(path), Locator(path=path)):
        with pytest.raises((NotFound, QueryError)) as refused:
            world.reader.open_document(locator)
        assert str(world.notes) not in str(refused.value)
        assert len(str(refused.value)) < 600


def test_a_note_that_is_not_indexed_yet_is_no_document(world):
    world.write("new.md", "# New\n\nx\n")
    with pytest.raises(NotFound):
        found(world, "new.md")
    world.service.index()
    assert found(world, "new.md")[0] == "new.md"


def test_a_section_that_is_not_there_is_an_error_with_the_nearest(world):
    with pytest.raises(NotFound, match="nests"):
        found(world, "birds/heron.md#nest-boxes-of-steel")


def test_an_empty_shelf_says_how_to_begin(tmp_path):
    empty = ReaderWorld(tmp_path, {})
    with pytest.raises(NotFound, match="reader.import_document"):
        found(empty, "x.md")
    assert text_of(empty.reader.list_documents()) == "0 documents"
