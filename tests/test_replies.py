"""What replies say holds: costs are those of what is read, lines those of the file, ids lead somewhere."""

import re

import pytest

from searchsvc.answering.listing import most_tokens
from searchsvc.config import Config, Root
from searchsvc.errors import NotFound, SearchError
from searchsvc.locating import Locator
from searchsvc.reader import Reader
from searchsvc.service import Service
from tests.notes import open_service, write_notes

GUIDE = (
    "---\ntitle: Guide\ntags: [manual]\n---\n# Guide\n\nAbout keys.\n\n"
    "## Rotating keys\n\nKeys are rotated monthly.\n\n"
    "### By hand\n\nCall the keeper of the keys, who rotates them.\n\n"
    "### By machine\n\nThe machine rotates keys at night.\n\n"
    "## Losing keys\n\nTell everyone.\n"
)


@pytest.fixture
def service(tmp_path) -> Service:
    notes = {"ops/guide.md": GUIDE, "plain.md": "Keys without any heading.\n\n# Later\n\nKeys again.\n"}
    service = open_service(write_notes(tmp_path / "notes", notes), tmp_path / "data")
    service.index()
    return service


def read(service: Service, address: str, **more) -> dict:
    """Return what is known of the one passage that reading an id returns."""
    (row,) = service.documents.md_section(address, **more).rows
    return row


# Costs and lines


def test_a_hit_says_what_its_own_lines_cost_and_what_its_id_returns_beyond(service):
    hits = service.search("rotating keys", top_k=20).hits
    assert {hit.section.slug for hit in hits} >= {"_intro", "rotating-keys", "rotating-keys/by-hand"}
    for hit in hits:
        own, whole = read(service, hit.id, include_subsections=False), read(service, hit.id)
        assert own["lines"] == [hit.section.line_start, hit.section.line_end]
        assert own["tokens"] == hit.cost
        below = [other for other in hits if other.section.slug.startswith(f"{hit.section.slug}/")]
        assert hit.cost_below == sum(other.cost for other in below)
        assert whole["lines"] == [hit.section.line_start, hit.section.read_end]
        assert (whole["tokens"] > own["tokens"]) == bool(hit.cost_below)


@pytest.mark.parametrize("ask", ["semantic_search", "md_find"])
def test_a_list_says_what_an_id_costs_with_the_sections_below_it(service, ask):
    text = getattr(service, ask)("rotating keys").text
    hit = next(h for h in service.search("rotating keys").hits if h.section.slug == "rotating-keys")
    assert hit.cost_below > 0
    assert f"ops/guide.md#rotating-keys · L9-12 · {hit.cost} tok +{hit.cost_below} in subsections" in text
    assert text.count("in subsections") == 1  # no other section has any


def test_a_list_of_documents_shows_lines_and_costs_of_what_each_id_returns(service):
    text = service.documents.list_documents(line_bounds=True).text
    rows = re.findall(r"^ +(\S+#\S+) L(\d+)-(\d+) (\d+)$", text, re.MULTILINE)
    assert "ops/guide.md#rotating-keys" in [name for name, *_ in rows]
    for name, first, last, tokens in rows:
        whole = read(service, name)
        assert whole["lines"] == [int(first), int(last)]
        assert int(tokens) >= whole["tokens"]


def test_an_error_about_a_section_names_the_lines_that_its_ids_return(service):
    with pytest.raises(SearchError) as error:
        service.documents.md_section("ops/guide.md", "zzzz")
    named = re.findall(r"(\S+#\S+) \('[^']+', L(\d+)-(\d+)\)", str(error.value))
    assert named[0][0] == "ops/guide.md#_intro"
    for name, first, last in named:
        assert read(service, name)["lines"] == [int(first), int(last)]


def test_the_title_of_a_note_stands_for_all_of_it_and_the_id_of_its_intro_for_the_text_alone(service):
    whole = {hit.section.slug for hit in service.search("keys", path="ops/guide.md#Guide").hits}
    assert whole > {"_intro", "losing-keys"}
    assert [hit.section.slug for hit in service.search("keys", path="ops/guide.md#_intro").hits] == ["_intro"]
    assert read(service, "ops/guide.md#Guide")["lines"] == [5, 23]


KINDS = {
    "latin": "# Keys\n\n" + "The keeper rotates all keys, as agreed, on the first day of each month.\n" * 40,
    "chinese": "# 设置\n\n" + "认证系统使用令牌。令牌每小时更新一次，旧的令牌随即失效。\n" * 40,
    "code": "# C\n\n```c\n" + "for (int i = 0; i < n; ++i) { a[i] = b[i] * (c[i] - 1); }\n" * 40 + "```\n",
    "table": "# T\n\n| key | age |\n| --- | --- |\n" + "| k-17 | 31.5 d |\n" * 60,
    "front": "---\ndescription: " + "all about keys and who keeps them, " * 40 + "\n---\n# K\n\nShort.\n",
}


@pytest.mark.parametrize("is_indexed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_list_says_at_least_what_a_document_costs_to_read(tmp_path, kind, is_indexed):
    service = open_service(write_notes(tmp_path / "notes", {"a.md": KINDS[kind]}), tmp_path / "data")
    if is_indexed:
        service.index()
    whole = service.documents.get_documents(["a.md"], max_tokens=20_000).rows[0]["tokens"]
    assert whole <= most_tokens(len(KINDS[kind].encode())) <= 2.3 * whole
    for depth in (None, 0):
        for budget in (100, 4000):
            (row,) = service.documents.list_documents(section_depth=depth, max_tokens=budget).rows
            assert whole <= row["tokens"] <= (1.1 if is_indexed else 2.3) * whole + 2
    file = service.vaults[0].file("a.md")
    file.write_text(KINDS[kind] * 2, encoding="utf-8")  # what was indexed no longer counts
    (row,) = service.documents.list_documents(section_depth=0, max_tokens=100).rows
    assert row["tokens"] >= 2 * whole - 2


def test_a_list_that_is_short_of_room_says_which_details_it_leaves_out_and_how_to_get_them(tmp_path):
    text = "# Title\n\nA summary of some words.\n\n" + "".join(f"## S{n}\n\n### D{n}\n\n" for n in range(4))
    notes = {f"{folder}/note-{n}.md": text for folder in ("a", "b") for n in range(6)}
    desk = open_service(write_notes(tmp_path / "notes", notes), tmp_path / "data").documents
    seen = set()
    for budget in range(100, 3000, 50):
        shown = desk.list_documents(line_bounds=True, max_tokens=budget).text
        has_summaries, has_sections, has_deep = ("A summary" in shown, "#s0 " in shown, "/d0 " in shown)
        assert all(" L1-" in line for line in shown.split("\n") if line.startswith("- ") and "…" not in line)
        said = re.search(r"\(left out: ([^;)…]*)", shown)
        names = set(said[1].split(", ")) if said else set()
        assert ("summaries" in names) == (not has_summaries)
        assert ("sections" in names) == (not has_sections)
        assert ("sections below depth 1" in names) == (has_sections and not has_deep)
        seen.add(frozenset(names))
    assert len(seen) == 4
    assert (
        "larger max_tokens, a folder as root, or md_tree(path) has them)"
        in desk.list_documents(max_tokens=300).text
    )
    whole = desk.list_documents(root="a", section_depth=0, max_tokens=400).text
    assert "left out" not in whole and "A summary" in whole


def saved(text: str) -> int | None:
    """Return the share that a reply says it saves, in percent."""
    found = re.search(r"saves (\d+)%", text)
    return int(found[1]) if found else None


def test_what_a_section_saves_is_no_more_for_being_cut(tmp_path):
    body = "".join(f"Line {n} of the part that is read, of some length.\n" for n in range(60))
    text = f"# Note\n\n{'Words of the introduction. ' * 90}\n\n## Part\n\n{body}\n## End\n\nBye.\n"
    desk = open_service(write_notes(tmp_path / "notes", {"a.md": text}), tmp_path / "data").documents
    whole = desk.md_section("a.md", "Part", max_tokens=4000)
    assert not whole.rest and saved(whole.text) > 20
    for budget in (150, 300, 600):
        cut = desk.md_section("a.md", "Part", max_tokens=budget)
        assert cut.rest and abs(saved(cut.text) - saved(whole.text)) < 10


def test_an_outline_says_what_it_saves_only_when_nothing_of_it_is_left_out(tmp_path):
    text = "# Note\n" + "".join(f"\n## Part {n}\n\nText.\n\n### Deep {n}\n\nText.\n" * 2 for n in range(30))
    desk = open_service(write_notes(tmp_path / "notes", {"a.md": text}), tmp_path / "data").documents
    assert saved(desk.md_tree("a.md").text) is not None
    for more in ({"max_tokens": 300}, {"max_tokens": 700}, {"cursor": "5"}, {"max_depth": 1}):
        assert saved(desk.md_tree("a.md", **more).text) is None


def test_a_header_names_the_lines_that_are_shown_and_no_more(tmp_path):
    lines = [f"Line {n} of some length, so that not many fit." for n in range(1, 60)]
    notes = {"a.md": "\n".join(lines), "b.md": "Words of a line that is long. " * 300 + "\nEnd.\n"}
    desk = open_service(write_notes(tmp_path / "notes", notes), tmp_path / "data").documents
    select = [{"doc": "a.md", "lines": [3, 50]}]
    calls = [
        lambda budget: desk.get_documents(["a.md"], max_tokens=budget),
        lambda budget: desk.get_documents([*select, "b.md"], max_tokens=budget),
        lambda budget: desk.read_md_with_images("a.md", line_range=[3, 50], max_tokens=budget),
        lambda budget: desk.md_section("a.md", "_preamble", max_tokens=budget),
    ]
    for call in calls:
        for budget in (120, 200, 400, 4000):
            text = call(budget).text
            (first, last), *_ = re.findall(r"^=== a\.md.* · L(\d+)–(\d+) ===", text, re.MULTILINE)
            numbers = [int(found) for found in re.findall(r"^Line (\d+) ", text, re.MULTILINE)]
            assert numbers == list(range(int(first), int(last) + 1))
    assert desk.get_documents(["b.md"], max_tokens=150).text.startswith(
        "=== b.md · L1… === quoted data\nWords"
    )


# Ids and folders


@pytest.fixture
def shelves(tmp_path) -> Service:
    """Two roots that share names of notes and of folders, and one index file with ids of its own."""
    one = {
        "index.md": "# One\n\n[a](ops/guide.md)\n",
        "ops/guide.md": GUIDE,
        "ops/index.md": "# Operations\n\nx\n",
    }
    two = {"index.md": "# Two\n\nKeys.\n", "ops/guide.md": GUIDE, "a#b.md": "# Sharp\n\nKeys.\n"}
    listed = '{"documents": [{"id": "start here", "path": "a#b.md", "title": "Start", "summary": ""}]}'
    roots = (Root("one", write_notes(tmp_path / "one", one)), Root("two", write_notes(tmp_path / "two", two)))
    (roots[1].path / "index.json").write_text(listed, encoding="utf-8")
    config = Config(roots=roots, data_dir=tmp_path / "data", model="none", instant_model="none")
    service = Service(config)
    service.index()
    return service


def names_told(service: Service) -> dict[str, str]:
    """Return every id and path that a tool tells, with the place of the note that it is told of."""
    documents, told = service.documents, dict[str, str]()
    for row in documents.list_documents().rows:
        told |= {row["id"]: row["path"], row["path"]: row["path"]}
    for row in documents.index_md(".").rows:
        told |= {section["id"]: row["path"] for section in row["sections"]}
    for path in set(told.values()):
        told |= {row["id"]: path for row in documents.md_tree(path).rows}
        told |= {f"{path}#{row.name}": path for row in documents.tree(path).rows}
    told |= {hit.id: hit.location for hit in service.search("keys", top_k=50).hits}
    told |= {hit.location: hit.location for hit in service.search("keys", top_k=50).hits}
    told |= {row["doc_id"]: row["path"] for row in Reader(service).list_documents().rows}
    for query in ("isolated", "most_connected"):
        for row in service.md_vault_index(query).rows[0].get("nodes", ()):
            told |= {row["id"]: row["path"], row["path"]: row["path"]}
    return told


@pytest.mark.proves("R-tree-ids")
def test_every_tool_takes_every_id_and_path_that_any_tool_tells(shelves):
    documents, reader = shelves.documents, Reader(shelves)
    told = names_told(shelves)
    assert told.keys() >= {"start here", "one:ops/guide.md#rotating-keys", "one_index", "a#b.md#_intro"}
    for name, path in told.items():
        assert documents.tree(name).location == path
        assert documents.get_documents([name]).rows[0]["path"] == path
        assert path in documents.md_frontmatter(name).text
        assert path in documents.read_md_with_images(name).text
        assert documents.index_md(name).rows[0]["path"] == path
        assert {hit.location for hit in shelves.search("zzz keys", path=name).hits} <= {path}
        assert shelves.md_vault_index("node", node_id=name).rows[0]["node"]["path"] == path
        assert reader.open_document(Locator(doc_id=name)).rows[0]["path"] == path
        assert reader.open_document(Locator(path=name)).rows[0]["path"] == path


@pytest.mark.parametrize(
    ("asked", "holds"),
    [
        ("two/ops", ["two:ops/guide.md"]),
        ("two", ["two:index.md", "two:ops/guide.md", "a#b.md"]),
        ("two:", ["two:index.md", "two:ops/guide.md", "a#b.md"]),
        ("two/index.md", ["two:index.md"]),
        ("ops", ["one:ops/guide.md", "ops/index.md", "two:ops/guide.md"]),
        ("ops/", ["one:ops/guide.md", "ops/index.md", "two:ops/guide.md"]),
    ],
)
def test_a_path_to_search_in_may_begin_with_the_name_of_a_root(shelves, asked, holds):
    found = shelves.search("keys one two ops x", path=asked, top_k=50).hits
    assert sorted({hit.location for hit in found}) == sorted(holds)


def test_a_path_that_names_nothing_is_an_error_that_names_the_nearest(shelves):
    with pytest.raises(NotFound, match="nearest: 'ops/guide.md'"):
        shelves.search("keys", path="ops/guid.md")
    with pytest.raises(SearchError, match="one:ops/guide.md, two:ops/guide.md"):
        shelves.search("keys", path="guide")


@pytest.mark.parametrize("asked", ["ops", "ops/", "ops#x", "one/ops", "one:ops"])
def test_a_folder_given_for_a_note_is_an_error_that_names_its_notes_and_the_tool_that_lists_them(
    shelves, asked
):
    documents = shelves.documents
    calls = [
        lambda: documents.md_tree(asked),
        lambda: documents.md_section(asked, "Rotating keys"),
        lambda: documents.md_frontmatter(asked),
        lambda: documents.read_md_with_images(asked),
    ]
    folder = asked.partition("#")[0]
    count = 2 if "one" in asked else 3
    said = rf"'{folder}' is a folder of {count} notes, not a note: one:ops/guide.md, .*ops/index.md"
    for call in calls:
        with pytest.raises(NotFound, match=said) as error:
            call()
        listed = re.search(r"list_documents\(root='(.*)'\) lists them", str(error.value))
        assert len(documents.list_documents(root=listed[1]).rows) == count
    assert re.search(said, documents.get_documents([asked]).notes[0])
    with pytest.raises(NotFound, match="ops/?. is a folder of"):
        Reader(shelves).open_document(Locator(path=folder))
    with pytest.raises(NotFound, match=f"is a folder, not a note; .* its {count} notes"):
        shelves.md_vault_index("node", node_id=folder)


def test_a_note_given_for_a_folder_is_an_error_that_says_so(shelves):
    for asked in ("ops/index.md", "ops/index", "ops/index.md#_intro"):
        with pytest.raises(NotFound, match=r"is a note, not a folder; md_tree\(path='ops/index.md'\)"):
            shelves.documents.list_documents(root=asked)
        assert "is a note, not a folder" in shelves.documents.get_documents([{"root": asked}]).notes[0]
    with pytest.raises(NotFound, match="nearest: ops"):
        shelves.documents.list_documents(root="opps")
    with pytest.raises(NotFound, match=r"nearest folder: ops; list_documents\(root='ops'\)"):
        shelves.documents.md_tree("opps")
    assert shelves.md_find("keys", vault_path="two:").text == shelves.md_find("keys", vault_path="two").text
    with pytest.raises(NotFound, match="is a folder, not a vault"):
        shelves.md_find("keys", vault_path="ops")


# Other ways on


def test_an_outline_of_one_section_is_not_held_against_the_whole_file(service):
    assert "saves" in service.documents.md_tree("ops/guide.md").text
    assert "saves" not in service.documents.md_tree("ops/guide.md#rotating-keys").text


def test_filters_that_leave_nothing_are_told(service):
    found = service.search("keys", since="2999-01-01")
    assert not found.hits and "no section meets all the filters" in found.notices
    assert "no section meets all the filters" in service.semantic_search("keys", since="2999-01-01").text
    assert not service.search("keys", since="1990-01-01").notices


def test_an_unknown_tag_or_property_is_an_error_that_names_those_there_are(service):
    with pytest.raises(NotFound, match="no note has the tag 'zzzz'; there are 1: manual; leave it out"):
        service.search("keys", tags=["zzzz"])
    with pytest.raises(NotFound, match="the property 'zzzz'; there are 2: tags, title; leave it out"):
        service.search("keys", properties={"zzzz": 1})


def test_a_missing_heading_is_an_error_with_calls_that_can_be_made(service):
    with pytest.raises(SearchError) as error:
        service.documents.md_section("guide")
    assert 'md_tree(path="ops/guide.md") lists the headings' in str(error.value)
    assert 'get_documents(select=["ops/guide.md"]) reads the whole note' in str(error.value)


def test_a_cursor_past_the_end_is_an_error_and_no_empty_list(service):
    documents = service.documents
    for call in (
        lambda: documents.list_documents(cursor="2"),
        lambda: documents.md_tree("guide", cursor="50"),
        lambda: documents.index_md(".", cursor="2"),
    ):
        with pytest.raises(SearchError, match="lies past the end of"):
            call()
    assert len(documents.list_documents(cursor="1").rows) == 1


def test_an_index_of_a_section_has_the_rows_that_its_id_returns(service):
    def headings(uri: str) -> list[str]:
        return [row["heading"] for row in service.documents.index_md(uri).rows[0]["sections"]]

    assert headings("guide#rotating-keys") == ["## Rotating keys", "### By hand", "### By machine"]
    assert headings("guide#_intro") == ["# Guide"]
    assert len(headings("guide")) == 5


def test_what_a_reply_could_not_do_is_counted_when_it_does_not_fit(service):
    asked = [f"nowhere-{n}-{'x' * 60}" for n in range(9)]
    for budget in range(100, 400, 20):
        reply = service.documents.get_documents(["plain.md", *asked], max_tokens=budget)
        told = [line for line in reply.text.split("\n") if line.startswith("- no note")]
        more = re.search(r"^- (\d+) notes? more$", reply.text, re.MULTILINE)
        assert len(told) + (int(more[1]) if more else 0) == len(reply.notes) == 9


@pytest.mark.parametrize(
    "text",
    [
        "![[plot.png]]\n\nThe summary.\n",
        "![a plot](img/plot.png 'of it')\n\nThe summary.\n",
        "[![badge](https://a.b/c.svg)](https://a.b)\n[![x][y]][z]\n\nThe summary.\n",
    ],
)
def test_the_summary_of_a_document_is_its_first_text_and_not_an_image(tmp_path, text):
    desk = open_service(
        write_notes(tmp_path / "notes", {"a.md": f"# T\n\n{text}"}), tmp_path / "data"
    ).documents
    assert desk.list_documents().text.split("\n")[1].endswith("· The summary.")
