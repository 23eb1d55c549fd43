"""Whatever comes in as selectors, paths and headings: an answer, or an error that says why."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchsvc.answering.selectors import Selector, read_selectors
from searchsvc.config import Config, make_root
from searchsvc.documents import Documents
from searchsvc.errors import QueryError, SearchError
from searchsvc.library import Library

SCALARS = st.none() | st.booleans() | st.integers(-5, 50) | st.floats() | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner)
)
FIELDS = st.sampled_from(["doc", "root", "sections", "lines", "include_images", "include_code", "path", "x"])
SELECTORS = st.lists(VALUES | st.dictionaries(FIELDS, VALUES, max_size=4), max_size=4)


@settings(max_examples=300, deadline=None)
@given(SELECTORS)
def test_any_selection_is_understood_or_refused_with_its_place(select):
    try:
        made = read_selectors(select)
    except QueryError as error:
        assert "select" in str(error)
        return
    assert made and all(isinstance(selector, Selector) for selector in made)
    for selector in made:
        assert bool(selector.doc) != (selector.root is not None)
        assert selector.lines is None or 1 <= selector.lines[0] <= selector.lines[1]


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    folder = outside / "vault"
    for name in (
        "a.md",
        "sub/b.md",
        "sub/c d.md",
        "#1 [x].md",
        "Ünï.MD",
        ".hidden/h.md",
        "node_modules/m.md",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"# Note {name}\n\n## Part\n\nwords\n", encoding="utf-8")
    (outside / "secret.md").write_text("# forbiddenfruit\n", encoding="utf-8")
    (folder / "out").symlink_to(outside)
    (folder / "leak.md").symlink_to(outside / "secret.md")
    config = Config(roots=(make_root(folder),))
    return Documents(Library(config.roots, config), config)


PIECES = (
    *("..", ".", "/", "\\", "~", "a.md", "sub", "b", "c d.md", "#", "Part", "out", "leak", "secret.md"),
    *("vault", ":", ".hidden", "h.md", "node_modules", "m.md", "%2e%2e", "\x00", "\n", "Ü", "é", " ", "C:"),
    *("*", "file://", "https://x.org/", "//", "#part", "_intro"),
)


def test_no_path_leads_out_of_the_root_or_to_what_is_hidden(desk):
    chance = random.Random(7)
    calls = (desk.md_tree, desk.md_section, desk.md_frontmatter, desk.index_md, desk.read_md_with_images,
             desk.list_documents, lambda path: desk.get_documents([path]),
             lambda path: desk.get_documents([{"root": path}]))  # fmt: skip
    answered = 0
    for _ in range(3_000):
        asked = "".join(chance.choices(PIECES, k=chance.randint(1, 5)))
        try:
            text = chance.choice(calls)(asked).text
        except SearchError as error:
            text = str(error)
        else:
            answered += 1
        assert "forbiddenfruit" not in text
        assert "Note .hidden" not in text and "Note node_modules" not in text
        assert str(desk.library.roots[0].path) not in text
    assert answered > 100
