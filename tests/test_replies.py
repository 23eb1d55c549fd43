"""What replies say holds: costs are those of what is read, lines those of the file, ids lead somewhere."""

import re

import pytest

from searchsvc.answering.listing import most_tokens
from searchsvc.errors import SearchError
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
