import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchsvc.answering.match import match_section
from searchsvc.errors import NotFound, QueryError
from searchsvc.reading.decode import Text
from searchsvc.reading.outline import outline_of


def sections_of(*headings):
    lines = ["# Title", "", "intro"]
    for heading in headings:
        lines += ["", heading if heading.startswith("#") else f"## {heading}", "", "words"]
    return outline_of("a.md", Text(tuple(lines))).sections


def found(asked, *headings):
    sections = sections_of(*headings)
    return sections[match_section(sections, asked, "a.md")].title


@pytest.mark.parametrize(
    ("asked", "heading"),
    [
        ("db", "Database"),
        ("API", "API Layer"),
        ("road map plan", "Roadmap"),
        ("faq", "FAQ"),
        ("dat", "Database"),
        ("rl", "Release Log"),
        ("getting start", "Getting started"),
        ("install", "Installation"),
        ("instalación", "Instalacion"),
        ("Uberblick", "Überblick"),
        ("`uv lock`", "Using uv lock"),
        ("node.js", "Node.js"),
        ("C++", "C++"),
        ("安装", "快速安装指南"),
        ("  setup  ", "Setup"),
        ("## Setup", "Setup"),
        ("#setup", "Setup"),
        ("a.md#setup", "Setup"),
        ("a\u00e9".replace("a", "caf"), unicodedata.normalize("NFD", "Café")),
    ],
)
def test_a_heading_is_found_as_callers_remember_it(asked, heading):
    assert unicodedata.normalize("NFC", found(asked, "Other words", heading, "Conocimiento")) == (
        unicodedata.normalize("NFC", heading)
    )


@pytest.mark.parametrize("asked", ["no", "zz", "x", "unrelated question", "", "  ", "!?", "#", "ion", "ent"])
def test_what_is_not_there_is_not_guessed(asked):
    with pytest.raises(NotFound, match=r"md_tree\(path\)"):
        found(asked, "Conocimiento", "Database", "Installation")


def test_whole_words_come_before_parts_of_words():
    assert found("test", "Testing the contest", "Test") == "Test"
    assert found("art", "Articles", "Art") == "Art"


@pytest.mark.parametrize(
    ("asked", "headings"),
    [
        ("Usage", ("Usage", "### Deep", "Usage")),
        ("config", ("Config file", "Config path")),
        ("Examples", ("Examples", "Other", "Examples")),
    ],
)
def test_near_ties_are_told_with_ids_that_are_accepted(asked, headings):
    sections = sections_of(*headings)
    with pytest.raises(QueryError) as said:
        match_section(sections, asked, "a.md")
    named = [part.split(" ")[0] for part in str(said.value).split("give one id: ")[1].split("; ")]
    assert len(named) == 2
    for name in named:
        assert sections[match_section(sections, name, "a.md")].slug == name.partition("#")[2]


def test_the_marks_of_a_heading_choose_its_level():
    sections = sections_of("## Setup", "### Setup")
    assert sections[match_section(sections, "### Setup", "a.md")].level == 3
    assert sections[match_section(sections, "## Setup", "a.md")].level == 2


@pytest.mark.parametrize("asked", ["Linux > Setup", "Linux/Setup", "Linux#Setup", "linux/setup"])
def test_a_path_of_headings_leads_to_one_of_several(asked):
    sections = sections_of("## Linux", "### Setup", "## Windows", "### Setup")
    assert sections[match_section(sections, asked, "a.md")].heading_path == ("Title", "Linux", "Setup")


HEADINGS = st.lists(st.text(max_size=25).map(lambda t: t.replace("\n", " ").replace("\r", " ")), max_size=12)


@settings(max_examples=150, deadline=None)
@given(HEADINGS, st.text(max_size=30))
def test_every_id_leads_back_and_any_question_ends_well(headings, asked):
    sections = sections_of(*(f"{'#' * (n % 3 + 2)} {text}" for n, text in enumerate(headings)))
    for place, section in enumerate(sections):
        assert match_section(sections, section.slug, "a.md") == place
        assert match_section(sections, f"a.md#{section.slug}", "a.md") == place
    try:
        assert 0 <= match_section(sections, asked, "a.md") < len(sections)
    except (NotFound, QueryError) as error:
        assert str(error)


def test_a_very_long_question_is_answered_at_once():
    sections = sections_of(*(f"Heading number {n}" for n in range(2_000)))
    with pytest.raises((NotFound, QueryError)):
        match_section(sections, "word " * 2_000, "a.md")
