"""The reading desk: outlines, sections, documents, images, as the files are now."""

import io
import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image as Pillow

from searchsvc.config import Config, make_root
from searchsvc.documents import Documents
from searchsvc.errors import AccessDenied, NotFound, QueryError, SearchError
from searchsvc.items import Picture
from searchsvc.library import Library
from searchsvc.tokens import cost

GUIDE = """---
title: Guide
---
# Guide

Words before all.

## Setup

Install it.

```python
a = 1

b = 2
```

### Linux

Use apt.

## Setup

Twice.

## Pictures

See ![a plot](img/plot.png) and ![[plot.png|again]] here.
"""


def png(width=8, height=6, colour=(10, 200, 30)):
    out = io.BytesIO()
    Pillow.new("RGB", (width, height), colour).save(out, "PNG")
    return out.getvalue()


def make_desk(folder: Path, **settings_of) -> Documents:
    config = Config(roots=(make_root(folder),), **settings_of)
    return Documents(Library(config.roots, config), config)


@pytest.fixture
def vault(tmp_path):
    folder = tmp_path / "vault"
    (folder / "img").mkdir(parents=True)
    (folder / "sub").mkdir()
    (folder / "guide.md").write_text(GUIDE, encoding="utf-8")
    (folder / "sub" / "guide.md").write_text("# Other\n\nOther words.\n", encoding="utf-8")
    (folder / "sub" / "notes.md").write_bytes(b"# Caf\xe9\n\nna\xefve\n")
    (folder / "img" / "plot.png").write_bytes(png())
    return folder


@pytest.fixture
def desk(vault):
    return make_desk(vault)


def pictures(reply):
    return [block for block in reply.blocks if isinstance(block, Picture)]


# Outlines and sections


def test_a_tree_has_every_heading_with_lines_and_a_name_that_leads_back(desk):
    tree = desk.tree("guide.md")
    assert [(row.name, row.line_start, row.line_end) for row in tree.rows] == [
        ("_intro", 4, 7),
        ("setup", 8, 21),
        ("linux", 18, 21),
        ("setup-1", 22, 25),
        ("pictures", 26, 28),
    ]
    for row in tree.rows:
        text = desk.md_section("guide.md", row.name).text
        assert f"· L{row.line_start}–{row.line_end} ===" in text
        assert desk.md_section(row.id).text.split("\n", 1)[1] == text.split("\n", 1)[1]


def test_a_tree_of_a_section_has_what_lies_below_it(desk):
    assert [row.name for row in desk.tree("guide.md#setup").rows] == ["setup", "linux"]


def test_a_tree_that_does_not_fit_loses_its_deepest_levels_and_says_so(tmp_path):
    text = "# T\n\n" + "".join(f"## Part {n}\n\n### Deep heading number {n}\n\nx\n\n" for n in range(40))
    (tmp_path / "long.md").write_text(text, encoding="utf-8")
    desk = make_desk(tmp_path)
    reply = desk.md_tree("long.md", max_tokens=700)
    assert "deep-heading" not in reply.text and "40 headings more" in reply.text
    again = re.search(r"same call with max_tokens=(\d+)", reply.rest)
    assert "deep-heading-number-39" in desk.md_tree("long.md", max_tokens=int(again[1])).text


def test_a_section_comes_with_or_without_those_below_it_and_tells_the_saving(desk):
    text = desk.md_section("guide.md#setup").text
    assert "### Linux" in text and "saves" in text
    assert "### Linux" not in desk.md_section("guide.md#setup", include_subsections=False).text


def test_the_title_means_the_whole_note_and_its_id_the_text_under_it(desk):
    assert "Twice." in desk.md_section("guide.md", "Guide").text
    assert "Twice." not in desk.md_section("guide.md#_intro").text


def test_an_ambiguous_heading_names_the_candidates_and_each_of_them_is_accepted(desk):
    with pytest.raises(QueryError) as said:
        desk.md_section("guide.md", "## Setup")
    for name in re.findall(r"guide\.md#[\w/-]+", str(said.value)):
        assert "## Setup" in desk.md_section(name).text


@pytest.mark.proves("R-reading-rest")
@pytest.mark.parametrize("budget", [100, 130, 200])
def test_a_long_section_is_cut_and_the_advised_call_returns_the_rest(tmp_path, budget):
    lines = [f"Line number {n} of the long section." for n in range(100)]
    (tmp_path / "a.md").write_text("\n".join(["# T", "", "## Long", *lines]), encoding="utf-8")
    desk = make_desk(tmp_path)
    reply, got = desk.md_section("a.md", "Long", max_tokens=budget), []
    for _ in range(200):
        assert reply.cost <= budget
        got += [line for line in reply.text.split("\n") if line.startswith("Line number")]
        if not reply.rest:
            break
        select = json.loads(re.fullmatch(r"get_documents\(select=(.*)\)", reply.rest)[1])
        reply = desk.get_documents(select, max_tokens=budget)
    assert got == lines


def test_a_file_is_read_as_it_is_now(vault, desk):
    assert "Install it." in desk.md_section("guide.md#setup").text
    changed = GUIDE.replace("Install it.", "Build it.").replace("## Setup", "## Setting up", 1)
    (vault / "guide.md").write_text(changed, encoding="utf-8")
    assert "Build it." in desk.md_section("guide.md", "Setting up").text
    (vault / "new.md").write_text("# New\n", encoding="utf-8")
    assert "New" in desk.md_section("new.md", "New").text
    (vault / "guide.md").unlink()
    with pytest.raises(SearchError):
        desk.md_tree("guide.md#setup")


def test_front_matter_is_typed_and_bad_yaml_is_told_with_its_line(vault, desk):
    (vault / "typed.md").write_text("---\na: no\nb: 3\nc: [x, 1.5]\n---\ntext\n", encoding="utf-8")
    (vault / "bad.md").write_text("---\ntitle: x: y\n---\n# Kept\n", encoding="utf-8")
    assert desk.md_frontmatter("typed.md").rows[0]["properties"] == {"a": "no", "b": 3, "c": ["x", 1.5]}
    said = desk.md_frontmatter("bad.md").text
    assert "front matter is not read" in said and "line" in said
    assert "Kept" in desk.md_tree("bad.md").text or "_intro" in desk.md_tree("bad.md").text
    assert "no front matter" in desk.md_frontmatter("sub/guide.md").text


# Names


@pytest.mark.parametrize(
    "asked", ["guide.md", "guide", "./guide.md", "GUIDE.md", "guide.md#", "vault:guide.md", "ABS/guide.md"]
)
def test_a_note_is_found_by_every_reasonable_spelling_of_its_path(vault, desk, asked):
    assert desk.tree(asked.replace("ABS", str(vault))).location == "guide.md"


def test_a_unique_name_is_enough_and_an_ambiguous_one_lists_the_notes(vault, desk):
    assert desk.tree("notes").location == "sub/notes.md"
    (vault / "guide.md").unlink()
    (vault / "other").mkdir()
    (vault / "other" / "guide.md").write_text("# G\n", encoding="utf-8")
    with pytest.raises(QueryError, match=r"other/guide\.md, sub/guide\.md"):
        desk.tree("guide")


def test_a_missing_note_names_the_nearest(desk):
    with pytest.raises(NotFound, match=r"sub/notes\.md"):
        desk.tree("sub/note.md")


@pytest.mark.parametrize(
    "asked", ["../x.md", "/etc/passwd", "~/x.md", "sub\\notes.md", ".hidden.md", "img/plot.png"]
)
def test_what_lies_outside_or_is_no_note_is_refused(vault, desk, asked):
    (vault / ".hidden.md").write_text("secret", encoding="utf-8")
    with pytest.raises((AccessDenied, NotFound)):
        desk.tree(asked)


def test_allowed_paths_are_read_beside_the_roots(vault, tmp_path):
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "extra.md").write_text("# Extra\n\nbeside\n", encoding="utf-8")
    with pytest.raises(SearchError):
        make_desk(vault).tree("extra.md")
    desk = make_desk(vault, allow_paths=(tmp_path / "more",))
    assert "beside" in desk.md_section("extra.md", "Extra").text
    assert "beside" in desk.md_section(str(tmp_path / "more" / "extra.md"), "Extra").text


def test_a_path_that_two_roots_hold_is_told_apart_by_the_name_of_the_root(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.md").write_text(f"# In {name}\n", encoding="utf-8")
    config = Config(roots=(make_root(tmp_path / "one"), make_root(tmp_path / "two")))
    desk = Documents(Library(config.roots, config), config)
    with pytest.raises(QueryError, match="one:a.md, two:a.md"):
        desk.tree("a.md")
    assert "In two" in desk.md_section("two:a.md", "_intro").text


# Documents


def test_documents_come_in_the_order_asked_with_placeholders(desk):
    reply = desk.get_documents(["notes", "guide.md#pictures", {"doc": "guide", "lines": [10, 14]}])
    heads = re.findall(r"^=== (.*) ===(?: quoted data)?$", reply.text, re.MULTILINE)
    assert heads == [
        "notes (sub/notes.md) · L1–3",
        "guide.md · section pictures · L26–28",
        "guide (guide.md) · L10–14",
    ]
    assert "[image omitted: img/plot.png — a plot]" in reply.text
    assert "sub/notes.md: is not UTF-8, read as Windows-1252" in reply.text
    assert "Café" in reply.text


def test_code_may_be_left_out_and_cut_code_is_fenced_again(desk):
    assert (
        "[code block omitted: python, 3 lines, L12–16]"
        in desk.get_documents(["guide.md"], include_code=False).text
    )
    cut = desk.get_documents([{"doc": "guide.md", "lines": [13, 14]}]).text
    assert "```python\na = 1\n\n```" in cut
    assert desk.get_documents([{"doc": "guide.md", "lines": [15, 16]}]).text.endswith("```python\nb = 2\n```")


def test_a_cut_never_leaves_a_fence_without_code(tmp_path):
    text = (
        "# T\n\n"
        + "some words before the code begins here\n" * 6
        + "\n```python\n"
        + "x = 1\n" * 40
        + "```\n"
    )
    (tmp_path / "a.md").write_text(text, encoding="utf-8")
    desk = make_desk(tmp_path)
    for budget in range(100, 200, 3):
        assert "```python\n```" not in desk.md_section("a.md", "T", max_tokens=budget).text


@pytest.mark.proves("R-reading-once")
def test_overlapping_selectors_return_each_line_once_and_say_so(desk):
    reply = desk.get_documents(["guide.md#setup", {"doc": "guide.md", "lines": [1, 30]}])
    body = [line for line in reply.text.split("\n") if not line.startswith(("=", "-"))]
    assert body.count("Install it.") == 1 and body.count("Twice.") == 1
    assert "overlaps" in reply.text and "L8–21 are returned once" in reply.text


def test_what_is_not_there_goes_to_the_notes_and_fails_nothing(desk):
    reply = desk.get_documents(
        [
            "nope",
            {"doc": "guide.md", "sections": ["zzz"]},
            "../secret.md",
            {"root": "missing"},
            "sub/guide.md",
            {"doc": "guide.md", "lines": [500, 600]},
        ]
    )
    assert "Other words." in reply.text
    assert len(reply.notes) == 5
    assert "Notes:" in reply.text


@pytest.mark.parametrize(
    ("select", "said"),
    [
        ([{"doc": "a", "root": "b"}], "both doc and root"),
        ([{"sections": ["x"]}], "neither doc nor root"),
        ([{"doc": "a", "colour": 1}], "no field 'colour'"),
        ([{"doc": "a", "sectons": ["x"]}], "did you mean 'sections'"),
        ([{"doc": "a", "sections": []}], "sections is empty"),
        ([{"doc": "a", "lines": [9, 3]}], "reversed"),
        ([{"doc": "a", "lines": [0, 3]}], "counted from 1"),
        ([{"doc": "a", "lines": [1]}], "expected [first, last]"),
        ([{"doc": "a", "lines": [True, 2]}], "whole numbers"),
        ([{"doc": "a", "include_code": "no"}], "true or false"),
        ([7], "expected a document id"),
        ([""], "empty text"),
        ([], "select is empty"),
        ([{"root": "x", "lines": [1, 2]}], "not with root"),
        ([{"doc": "a", "sections": ["x"], "lines": [1, 2]}], "has sections and lines"),
    ],
)
def test_malformed_selectors_are_rejected_with_the_reason(desk, select, said):
    with pytest.raises(QueryError, match=re.escape(said)):
        desk.get_documents(select)


def test_a_folder_stands_for_its_documents_in_path_order(desk):
    heads = re.findall(r"^=== (.*?) ·", desk.get_documents([{"root": "sub"}]).text, re.MULTILINE)
    assert heads == ["sub/guide.md", "sub/notes.md"]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_reply_exceeds_its_budget_and_every_selection_is_verbatim(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("any")
    line = st.text(st.characters(exclude_characters="\r\n\x00", codec="utf-8"), max_size=60)
    special = st.sampled_from(["# A", "## B", "## B", "```", "~~~", "- x", "> q", "", "![p](a.png)", "=== x"])
    lines = data.draw(st.lists(st.one_of(special, line), min_size=1, max_size=40))
    (folder / "a.md").write_text("\n".join(lines), encoding="utf-8")
    desk = make_desk(folder)
    stored = (folder / "a.md").read_text(encoding="utf-8").split("\n")
    first = data.draw(st.integers(1, len(stored)))
    last = data.draw(st.integers(first, len(stored)))
    budget = data.draw(st.integers(100, 600))
    try:
        reply = desk.read_md_with_images("a.md", line_range=[first, last], max_images=0, max_tokens=budget)
    except SearchError:
        return
    assert reply.cost <= budget and cost(reply.text) <= budget
    for row in reply.rows:
        start, end = row["lines"]
        assert "\n".join(stored[start - 1 : end]).strip("\n") in reply.text
    for call in (desk.md_tree, desk.index_md):
        assert call("a.md", max_tokens=budget).cost <= budget
    assert desk.list_documents(max_tokens=budget).cost <= budget
    for row in desk.tree("a.md").rows:
        assert desk.md_section(row.id, max_tokens=budget).cost <= budget


@pytest.mark.proves("R-reading-rest")
@pytest.mark.parametrize("budget", [120, 300])
@pytest.mark.parametrize("options", [{}, {"include_code": False}])
def test_a_long_selection_is_read_to_its_end_by_what_each_reply_advises(tmp_path, budget, options):
    wanted = []
    for number in range(12):
        lines = [f"Note {number} line {n} with some words in it." for n in range(20)]
        name = f"a folder with a name/and another one/note number {number:02}.md"
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("\n".join(lines), encoding="utf-8")
        wanted += lines
    desk, got = make_desk(tmp_path), []
    arguments = {"select": [{"root": "."} | options]}
    for _ in range(300):
        reply = desk.get_documents(**arguments, max_tokens=budget)
        assert reply.cost <= budget
        got += [line for line in reply.text.split("\n") if line.startswith("Note ")]
        if not reply.rest:
            break
        cursor = re.search(r'cursor="([\w-]+)"', reply.rest)
        if cursor:
            arguments["cursor"] = cursor[1]
        else:
            arguments = {"select": json.loads(re.fullmatch(r"get_documents\(select=(.*)\)", reply.rest)[1])}
    assert got == wanted


def pages(call, **arguments):
    """Return the replies of a call and of all that they advise by a cursor."""
    replies = [call(**arguments)]
    while cursor := re.search(r'cursor="([\d-]+)"', replies[-1].rest):
        assert len(replies) < 500
        replies.append(call(**arguments, cursor=cursor[1]))
    assert not replies[-1].rest
    return replies


@pytest.mark.proves("R-reading-rest")
@pytest.mark.parametrize("budget", [100, 150, 300])
def test_outlines_indexes_and_lists_are_read_to_their_end_by_cursors(tmp_path, budget):
    long = "目录" * 20
    for name in (
        "a.md",
        "b c.md",
        f"{long}/{long}.md",
        'q"uote.md',
        *(f"n{number:02}.md" for number in range(30)),
    ):
        headings = "".join(
            f"\n## Heading {n} of {name}\n\n### Deep {n}\n" for n in range(25 if name < "n" else 1)
        )
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"# T{headings}", encoding="utf-8")
    (tmp_path / "index.json").write_text(json.dumps({"documents": [{"id": n} for n in range(50)]}), "utf-8")
    desk = make_desk(tmp_path)
    paths = desk.library.notes(desk.library.roots[0])

    listed = pages(desk.list_documents, max_tokens=budget)
    assert [row["path"] for reply in listed for row in reply.rows] == paths
    indexed = pages(desk.index_md, uri=".", max_tokens=budget)
    ids = [section["id"] for reply in indexed for row in reply.rows for section in row["sections"]]
    assert ids == [row.id for path in paths for row in desk.tree(path).rows]
    for reply in [*listed, *indexed]:
        assert reply.cost <= budget and cost(reply.text) <= budget
        assert not reply.rest or reply.rest in reply.text
    assert re.search(r"^! \d+ problems( more)?: larger max_tokens$", listed[0].text, re.MULTILINE)


@pytest.mark.parametrize("budget", [100, 150])
def test_an_outline_too_long_for_any_reply_is_read_page_by_page(tmp_path, budget):
    text = "# T\n" + "".join(f"\n## Heading {n}\n\n### Deep {n}\n" for n in range(120))
    (tmp_path / "a.md").write_text(text, encoding="utf-8")
    desk = make_desk(tmp_path, max_reply_tokens=budget)
    overview = desk.md_tree("a.md", max_tokens=budget)
    assert overview.rest and overview.rest in overview.text
    got, cursor = [], "0"
    while cursor:
        reply = desk.md_tree("a.md", max_tokens=budget, cursor=cursor)
        assert reply.rows and reply.cost <= budget
        got += [row["id"] for row in reply.rows]
        cursor = (re.search(r'cursor="(\d+)"', reply.rest) or [None, ""])[1]
    assert got == [row.id for row in desk.tree("a.md").rows]


def test_a_cursor_of_documents_that_have_changed_since_is_refused(tmp_path):
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text("# T\n\n" + f"line of {name}\n" * 100, encoding="utf-8")
    desk = make_desk(tmp_path)
    first = desk.get_documents([{"root": ".", "include_code": False}], max_tokens=150)
    cursor = re.search(r'cursor="([\w-]+)"', first.rest)[1]
    assert desk.get_documents([{"root": ".", "include_code": False}], max_tokens=150, cursor=cursor).rows
    (tmp_path / "a.md").write_text("# T\n\nnew\n" + "line of a.md\n" * 100, encoding="utf-8")
    with pytest.raises(QueryError, match="changed"):
        desk.get_documents([{"root": ".", "include_code": False}], max_tokens=150, cursor=cursor)


def test_a_line_that_no_reply_can_hold_is_told_and_what_follows_is_reached(tmp_path):
    (tmp_path / "a.md").write_text("# T\n\n" + "word " * 60_000 + "\n\nlast\n", encoding="utf-8")
    reply = make_desk(tmp_path).get_documents([{"doc": "a.md", "lines": [3, 5]}], max_tokens=2_000)
    assert '"lines": [4, 5]' in reply.rest and reply.cost <= 2_000
    assert any("L3 is cut" in note for note in reply.notes)


def test_a_heading_is_looked_for_in_the_section_that_the_path_names(tmp_path):
    lines = [
        "# T",
        "## Server",
        "### Setup",
        "for the server",
        "## Client",
        "### Setup",
        "for the client",
        "## Data",
    ]
    text = "\n\n".join(lines)
    (tmp_path / "a.md").write_text(text, encoding="utf-8")
    desk = make_desk(tmp_path)
    assert "for the client" in desk.md_section("a.md#client", "setup").text
    with pytest.raises(NotFound):
        desk.md_section("a.md#client", "Data")


def test_a_name_that_was_searched_for_means_the_nearer_note_once_there_is_one(vault, desk):
    assert desk.tree("notes").location == "sub/notes.md"
    (vault / "notes.md").write_text("# Nearer\n", encoding="utf-8")
    assert desk.tree("notes").location == "notes.md"


def test_ids_of_the_graph_are_accepted_here_too(desk):
    assert desk.tree("sub_guide").location == "sub/guide.md"


# Lists and indexes


@pytest.mark.proves("R-tree-ids")
def test_a_list_has_ids_that_every_tool_accepts(desk):
    reply = desk.list_documents(line_bounds=True)
    assert [row["id"] for row in reply.rows] == ["guide.md", "sub/guide", "notes"] or [
        row["id"] for row in reply.rows
    ] == ["guide", "sub/guide", "notes"]
    for row in reply.rows:
        assert desk.tree(row["id"]).location == row["path"]
        assert desk.get_documents([row["id"]]).rows[0]["path"] == row["path"]
    for name in re.findall(r"^\s+(\S+#\S+) L", reply.text, re.MULTILINE):
        assert desk.md_section(name).rows


@pytest.mark.proves("R-tree-ids")
def test_ids_in_the_list_of_a_folder_are_unique_in_the_whole_vault(desk):
    (row,) = [row for row in desk.list_documents("sub").rows if row["path"] == "sub/guide.md"]
    assert desk.tree(row["id"]).location == "sub/guide.md"


def test_a_long_list_gives_folders_and_a_cursor_that_reaches_every_document_once(tmp_path):
    for number in range(120):
        (tmp_path / f"f{number % 3}").mkdir(exist_ok=True)
        (tmp_path / f"f{number % 3}" / f"note-{number:03}.md").write_text(f"# N {number}\n\nwords\n", "utf-8")
    desk, cursor, seen = make_desk(tmp_path), "", []
    for _ in range(60):
        reply = desk.list_documents(max_tokens=500, cursor=cursor)
        assert reply.cost <= 500
        seen += [row["path"] for row in reply.rows]
        if not reply.rest:
            break
        cursor = re.search(r'cursor="(\d+)"', reply.rest)[1]
    assert len(seen) == 120 == len(set(seen))
    assert "f0/ · 40 documents" in desk.list_documents(max_tokens=700).text


def test_an_index_file_gives_ids_summaries_and_costs_and_its_problems_are_listed(vault, desk):
    entries = [
        {
            "id": "start",
            "path": "guide.md",
            "title": "Start",
            "summary": "Where to begin",
            "approx_tokens": 77,
        },
        {"id": "x", "path": "../outside.md", "title": "X", "summary": "", "approx_tokens": 1},
    ]
    (vault / "index.json").write_text(json.dumps({"documents": entries}), encoding="utf-8")
    reply = desk.list_documents()
    assert "start · guide.md · 77 tok" in reply.text and "Where to begin" in reply.text
    assert any("documents[1]" in problem for problem in reply.notes)
    assert "Install it." in desk.get_documents(["start"]).text
    assert desk.tree("start#setup").location == "guide.md"
    assert "Use apt." in desk.md_section("start", "linux").text


def test_an_index_of_a_file_has_a_row_for_each_section(desk):
    text = desk.index_md("guide.md").text
    assert text.startswith('<file path="guide.md" lines="28"')
    assert "heading\tline_start\tn_images\tchar_count\ttokens" in text
    assert re.search(r"^## Pictures\t26\t2\t\d+\t\d+$", text, re.MULTILINE)
    assert "title: Guide" in text
    assert desk.index_md(".").text.count("<file ") == 3


# Images


def test_images_stand_where_the_document_has_them(desk):
    reply = desk.read_md_with_images("guide.md", section="pictures")
    (picture,) = pictures(reply)
    assert (picture.media_type, picture.width) == ("image/png", 8)
    before, after = reply.blocks[0], reply.blocks[2]
    assert before.endswith("[image: img/plot.png — a plot]")
    assert "here." in after


def test_an_image_index_gives_stubs_files_and_captions(vault, desk):
    images = [{"id": "p1", "file": "img/plot.png", "caption": "The plot"}]
    (vault / "images").mkdir()
    (vault / "images" / "index.json").write_text(json.dumps({"images": images}), encoding="utf-8")
    (vault / "stub.md").write_text("# S\n\n![[image:p1]] and ![[image:none]]\n", encoding="utf-8")
    assert "[image omitted: image:p1 — The plot]" in desk.get_documents(["stub"]).text
    reply = desk.get_documents(["stub"], include_images=True)
    assert len(pictures(reply)) == 1
    assert any("none" in note for note in reply.notes)


@pytest.mark.proves("R-pictures")
def test_one_bad_image_is_a_note_and_the_limit_leaves_markdown(vault, desk):
    (vault / "bad.md").write_text(
        "![a](img/bad.png) ![b](missing.png) ![c](../../secret.png) ![d](img/plot.png)\n", encoding="utf-8"
    )
    (vault / "img" / "bad.png").write_bytes(b"not an image")
    reply = desk.read_md_with_images("bad.md")
    assert len(pictures(reply)) == 1 and len(reply.notes) == 3
    assert "![b](missing.png)" in reply.text
    none = desk.read_md_with_images("bad.md", max_images=0)
    assert not pictures(none) and "![d](img/plot.png)" in none.text


def test_pictures_that_do_not_fit_wait_for_the_next_call_and_all_are_sent_in_the_end(vault, desk):
    for number in range(5):
        (vault / f"p{number}.png").write_bytes(png(700, 700, (number, 0, 0)))
    text = "\n".join(f"before {n} ![i](p{n}.png) after" for n in range(5))
    (vault / "many.md").write_text(text, encoding="utf-8")
    lines, seen, rest = None, [], "begin"
    while rest:
        reply = desk.read_md_with_images("many.md", line_range=lines, max_tokens=1_500)
        assert reply.cost <= 1_500
        seen += pictures(reply)
        rest = reply.rest
        lines = json.loads(re.search(r"line_range=(\[.*?\])", rest)[1]) if rest else None
    assert len({picture.data for picture in seen}) == len(seen) == 5


def test_a_repeated_image_is_sent_once(vault, desk):
    (vault / "twice.md").write_text("![a](img/plot.png)\n\n![b](img/plot.png)\n", encoding="utf-8")
    reply = desk.read_md_with_images("twice.md")
    assert len(pictures(reply)) == 1 and "shown above at L1" in reply.text


def test_an_absent_section_falls_back_to_the_lines(desk):
    reply = desk.read_md_with_images("guide.md", section="zzz", line_range=[8, 10])
    assert "Install it." in reply.text and "line_range is used" in reply.text
    with pytest.raises(NotFound):
        desk.read_md_with_images("guide.md", section="zzz")


def test_addresses_are_refused_unless_their_host_is_allowed(vault, desk):
    with pytest.raises(AccessDenied, match="allow-domain"):
        desk.read_md_with_images("https://example.com/a.md")
    for asked in ("file:///etc/passwd", "ftp://example.com/a.md"):
        with pytest.raises(AccessDenied):
            desk.index_md(asked)


def test_large_and_binary_files_are_named(vault, desk):
    (vault / "big.md").write_text("x" * 5_000, encoding="utf-8")
    (vault / "binary.md").write_bytes(bytes(range(32)) * 50)
    small = make_desk(vault, max_file_bytes=2_000)
    with pytest.raises(SearchError, match="5,000 bytes, at most 2,000"):
        small.tree("big.md")
    with pytest.raises(SearchError, match="binary"):
        desk.tree("binary.md")
    assert "Other words." in desk.get_documents(["binary.md", "sub/guide.md"]).text


@pytest.mark.parametrize("asked", [{"uri": "a.md#b"}, {"uri": "a.md", "section": "b"}])
def test_the_call_for_the_rest_of_a_section_goes_on_behind_what_was_shown(
    tmp_path: Path, asked: dict[str, str]
) -> None:
    text = "\n".join(["# A", "## B", *(f"line {number} of a long section" for number in range(200))])
    (tmp_path / "a.md").write_text(text, encoding="utf-8")
    desk = make_desk(tmp_path)
    reply = desk.read_md_with_images(**asked, max_tokens=300)
    match = re.search(r'read_md_with_images\(uri="(.*?)", line_range=\[(\d+), (\d+)\]\)', reply.text)
    assert match and int(match[2]) == reply.rows[-1]["lines"][1] + 1
    rest = desk.read_md_with_images(match[1], line_range=[int(match[2]), int(match[3])], max_tokens=300)
    assert rest.rows[0]["lines"][0] == int(match[2])
