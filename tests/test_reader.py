"""The reader's desk without the protocol: lists, opening, outlines and literal search over real files."""

import os
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchsvc.errors import IndexFault, QueryError
from searchsvc.locating import Locator
from searchsvc.tokens import cost
from tests.reader_world import BIRDS, ReaderWorld, cursor_of, text_of


@pytest.fixture
def world(tmp_path):
    return ReaderWorld(tmp_path)


def ids(reply):
    return [row["doc_id"] for row in reply.rows]


def test_documents_are_listed_the_latest_first_with_what_is_known(world):
    reply = world.reader.list_documents()
    assert ids(reply) == list(BIRDS)
    assert '"The Heron" · Ada · markdown' in text_of(reply)
    assert reply.rows[0]["author"] == "Ada"
    assert reply.rows[0]["modified"] == "2023-11-14T22:13:20Z"
    world.write("old/owl.md", "# Owls\n\nNew.\n", age=-50)
    assert ids(world.reader.list_documents())[0] == "old/owl.md"


def test_a_list_is_led_through_by_its_cursor(world):
    first = world.reader.list_documents(limit=3)
    assert ids(first) == list(BIRDS)[:3]
    rest = world.reader.list_documents(limit=3, cursor=cursor_of(first.rest))
    assert ids(rest) == list(BIRDS)[3:]
    assert not rest.rest
    assert ids(world.reader.list_documents(cursor="99")) == []


def test_file_types_are_exact(world):
    sha = "ab" * 32
    front = f"---\nimporter: 1\nsha256: {sha}\nfile_type: pdf\npages: 3\nsource: /x/paper.pdf\n---\n"
    world.write("paper.md", front + "# Paper\n\ntext\n")
    world.service.index()
    assert ids(world.reader.list_documents(file_types=["pdf"])) == ["paper.md"]
    assert "paper.md" not in ids(world.reader.list_documents(file_types=["markdown", "epub"]))
    assert "3 pages" in text_of(world.reader.list_documents(file_types=["pdf"]))
    assert ids(world.reader.list_documents(file_types=["epub"])) == []
    with pytest.raises(QueryError, match="markdown, pdf, epub"):
        world.reader.list_documents(file_types=["docx"])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda reader: reader.list_documents(limit=0), "limit is 0, expected 1 to 500"),
        (lambda reader: reader.list_documents(limit=501), "1 to 500"),
        (lambda reader: reader.list_documents(max_tokens=99), "at least 100"),
        (lambda reader: reader.list_documents(cursor="-1"), "not from an earlier reply"),
        (lambda reader: reader.open_document(Locator("plain.md"), max_chars=199), "200 to 400000"),
        (lambda reader: reader.open_document(Locator("plain.md"), max_chars=400_001), "200 to 400000"),
        (lambda reader: reader.search_markdown("x", limit=201), "1 to 200"),
        (lambda reader: reader.search_markdown(" \n"), "query is empty"),
        (lambda reader: reader.search_markdown("x", cursor="5-abcdef"), "not from an earlier reply"),
        (lambda reader: reader.open_document(Locator()), "give doc_id, path or title"),
    ],
)
def test_what_is_out_of_bounds_is_refused_with_the_bounds(world, call, said):
    with pytest.raises(QueryError, match=said):
        call(world.reader)


def read_whole(reader, locator, **options):
    """Return the text that all pieces of a document make together, and how many there were."""
    pieces, cursor = [], ""
    while True:
        reply = reader.open_document(locator, cursor=cursor, **options)
        start, end = reply.rows[0]["characters"]
        block = text_of(reply)
        assert cost(block) <= options.get("max_tokens", 20_000)
        mark = block.partition(" ")[0]
        where = f", characters {start}-{end} of {reply.rows[0]['of']}\n"
        body = block.partition(where)[2]
        if reply.rest:
            body = body[: body.rindex(f"\n{mark} ")] if f"\n{mark} " in body else ""
        pieces.append(body + "\n" * (end - start - len(body)))
        cursor = cursor_of(reply.rest)
        if not cursor:
            return "".join(pieces), len(pieces)


PIECES = ("# A", "## B", "", "", "text", "日本語" * 30, "word " * 90, "=== L1-2 of 9", "x" * 400, "😀")
LINES = st.lists(st.sampled_from(PIECES), min_size=1, max_size=25)


@pytest.mark.proves("R-verbatim")
@settings(max_examples=25, deadline=None)
@given(LINES, st.sampled_from([100, 120, 300, 4000]), st.sampled_from([200, 700, 12_000]))
def test_the_pieces_of_a_file_are_the_file(tmp_path_factory, lines, budget, max_chars):
    world = ReaderWorld(
        tmp_path_factory.mktemp("pieces"), {"a b.md": "\n".join(["first", *lines]) + "\nlast"}
    )
    text, _ = read_whole(world.reader, Locator("a b.md"), max_tokens=budget, max_chars=max_chars)
    assert text == "\n".join(["first", *lines, "last"])


def test_front_matter_is_not_opened_but_counted_in_the_lines(world):
    reply = world.reader.open_document(Locator("birds/heron.md"))
    assert "Ada\ntags" not in text_of(reply)
    assert reply.rows[0]["lines"] == [5, 16]
    assert "=== L5-16 of 16" in text_of(reply)


def test_a_section_is_opened_by_its_id(world):
    reply = world.reader.open_document(Locator("birds/heron.md#nests"))
    assert text_of(reply).endswith("## Nests\n\nThey nest in high\ntrees near water.")
    assert reply.rows[0]["lines"][0] == 9


def test_a_cursor_over_a_document_that_has_changed_is_refused(world):
    world.write("long.md", "# Long\n\n" + "word " * 4000)
    world.service.index()
    first = world.reader.open_document(Locator("long.md"), max_chars=200)
    assert first.rows[0]["characters"][1] <= 200
    world.reader.open_document(Locator("long.md"), cursor=cursor_of(first.rest))
    world.write("long.md", "# Long\n\nother " + "word " * 4000, age=-9)
    with pytest.raises(QueryError, match="document as it is now"):
        world.reader.open_document(Locator("long.md"), cursor=cursor_of(first.rest))


def test_an_outline_leads_to_the_sections(world):
    reply = world.reader.get_markdown_outline(Locator(title="The Heron"))
    found = [row["id"] for row in reply.rows]
    assert found[-2:] == ["birds/heron.md#nests", "birds/heron.md#food"]
    for section in found:
        assert world.reader.open_document(Locator(section)).rows


def test_a_text_is_found_with_its_section_and_lines(world):
    reply = world.reader.search_markdown("high trees")
    (row,) = reply.rows
    assert row["id"] == "birds/heron.md#nests"
    assert (row["lines"], row["found"], row["count"]) == ([11, 12], [11], 1)
    assert row["text"] == "They nest in high\ntrees near water."


def test_relevance_comes_first_then_the_latest(world):
    for age, path in ((5, "b.md"), (1, "c.md"), (9, "a.md")):
        world.write(path, "# X\n\nzebra here\n", age=age)
    world.write("d.md", "# X\n\nzebra zebra\n\nzebras\n", age=500)
    world.write("e.md", "# Zebra\n", age=900)
    world.service.index()
    found = [(row["id"].partition("#")[0]) for row in world.reader.search_markdown("zebra").rows]
    assert found == ["e.md", "d.md", "c.md", "b.md", "a.md", "d.md"]


def test_front_matter_is_not_searched(world):
    assert not world.reader.search_markdown("reeds]").rows
    assert "No paragraph holds 'reeds]'" in text_of(world.reader.search_markdown("reeds]"))


@pytest.mark.parametrize("query", ["heron.*", "[Hh]eron", "a|b", "(", "\\", "$", "heron's patience"])
def test_signs_of_expressions_are_text(world, query):
    found = [row["text"] for row in world.reader.search_markdown(query).rows]
    assert all(query in text for text in found)
    assert bool(found) == (query == "heron's patience")


def test_a_search_may_be_held_to_a_document_or_section(world):
    everywhere = world.reader.search_markdown("food")
    assert len(everywhere.rows) == 2
    one = world.reader.search_markdown("food", Locator("birds/owl.md"))
    assert [row["id"] for row in one.rows] == ["birds/owl.md#food"]
    section = world.reader.search_markdown("heron", Locator("birds/heron.md#food"))
    assert [row["lines"] for row in section.rows] == [[16, 16]]
    assert not world.reader.search_markdown("heron", Locator("birds/heron.md#nests")).rows


def test_pages_of_a_search_hold_everything_once(world):
    world.write("many.md", "".join(f"needle {n}\n\n" for n in range(50)))
    world.service.index()
    seen, cursor = [], ""
    while True:
        reply = world.reader.search_markdown("needle", limit=7, max_tokens=300, cursor=cursor)
        assert cost(text_of(reply)) <= 300
        seen += [row["text"] for row in reply.rows]
        cursor = cursor_of(reply.rest)
        if not cursor:
            break
    assert seen == [f"needle {n}" for n in range(50)]


@pytest.mark.parametrize("budget", [150, 400, 4000])
@pytest.mark.parametrize("before", ["word " * 9000, "日本語" * 3000, "ﬁ ß  " * 9000, "x" * 60_000])
def test_in_a_long_line_the_place_is_shown(world, before, budget):
    world.write("long.md", f"# Long\n\nfirst line\n{before} Needle here {before}\nlast line\n")
    world.service.index()
    reply = world.reader.search_markdown("needle here", max_tokens=budget)
    assert cost(text_of(reply)) <= budget
    (row,) = reply.rows
    assert row["found"] == [4]
    assert "Needle here" in row["text"]
    assert "Needle here" in text_of(reply)


@pytest.mark.proves("R-freshness")
def test_what_has_changed_or_gone_is_never_shown(world):
    world.reader.search_markdown("herons")
    world.write("birds/heron.md", "# The Heron\n\nRewritten.\n", age=-5)
    (world.notes / "birds/owl.md").unlink()
    assert not world.reader.search_markdown("reeds").rows
    assert not world.reader.search_markdown("hunt at night").rows
    assert world.reader.search_markdown("rewritten").rows
    assert "birds/owl.md" not in ids(world.reader.list_documents())
    assert "Rewritten." in text_of(world.reader.open_document(Locator("birds/heron.md")))


@pytest.mark.proves("R-freshness")
@pytest.mark.parametrize("locator", [Locator(), Locator("birds/heron.md"), Locator("birds/heron.md#nests")])
def test_what_cannot_be_indexed_now_is_left_out_and_that_is_said(world, locator, monkeypatch):
    monkeypatch.setattr("searchsvc.vault.update_notes", busy)
    world.write("birds/heron.md", "# The Heron\n\n## Nests\n\nRewritten.\n", age=-5)
    reply = world.reader.search_markdown("nest in high", locator)
    assert not reply.rows
    assert "1 notes have just changed" in text_of(reply)
    (world.notes / "old/owl.md").unlink()
    assert "old/owl.md" not in ids(world.reader.list_documents())


def busy(*_):
    raise IndexFault("another process writes")


def test_a_file_of_another_time_is_listed(world):
    file = world.write("future.md", "# Future\n\nx\n")
    os.utime(file, (2**33, 2**33))
    world.service.index()
    assert ids(world.reader.list_documents())[0] == "future.md"


@pytest.mark.parametrize(
    "text",
    ["needle\n\n" * 60_000, "needle " * 140_000, "x" * 900_000 + "needle" + "y" * 900_000, "n" * 900_000],
    ids=["paragraphs", "words", "line", "letters"],
)
def test_a_hostile_note_costs_little_time(tmp_path, text):
    world = ReaderWorld(tmp_path, {"big.md": f"# Big\n\n{text}\n", "small.md": "# Small\n\nneedle\n"})
    begin = time.process_time()
    for query in ("needle", "n"):
        reply = world.reader.search_markdown(query, limit=200)
        assert cost(text_of(reply)) <= 4000
        assert reply.rows
    opened = world.reader.open_document(Locator("big.md"), max_chars=400_000)
    assert cost(text_of(opened)) <= 20_000
    assert time.process_time() - begin < 20
