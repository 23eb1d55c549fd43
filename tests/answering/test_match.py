import re
import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchsvc.answering.match import THRESHOLD, Headings, heading_fits, match_section
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
        ("Installation", "Installing"),
        ("how to install", "Installation"),
        ("the setup section", "Setup"),
        ("3.2", "3.2 Options"),
        ("section 3", "3. Options"),
        ("ToC", "Table of Contents"),
        ("k8s", "Kubernetes"),
        ("C#", "C# bindings"),
        ("--help", "The `--help` flag"),
        ("nodejs", "Node.js"),
        ("login", "Log in"),
        ("log in", "Login"),
        ("whats new", "What’s new?"),
        ("instalar", "Instalación"),
        ("instalacion rapida", "Instalación rápida"),
        ("步骤", "安装步骤"),
        ("安装的步骤说明", "安装步骤说明"),
        ("ＡＰＩ Ｌａｙｅｒ", "API Layer"),
        ("“Setup”:", "Setup"),
        ("Don't panic", "Don’t panic"),
        ("## Setup ##", "Setup"),
        ("##Setup", "Setup"),
        ("＃＃ Setup", "Setup"),
        ("## See [the docs](x.md) {#see}", "See the docs"),
        ("**Setup**", "Setup"),
        ("_Setup_", "Setup"),
        ("max tokens", "`max_tokens`"),
        ("TCP/IP", "TCP/IP"),
        ("./config", "Config"),
        ("FAQ\u200b", "FAQ"),
    ],
)
def test_a_heading_is_found_as_callers_remember_it(asked, heading):
    assert unicodedata.normalize("NFC", found(asked, "Other words", heading, "Conocimiento")) == (
        unicodedata.normalize("NFC", heading.replace("`", ""))
    )


@pytest.mark.parametrize(
    "asked",
    [
        "no",
        "zz",
        "x",
        "unrelated question",
        "",
        "  ",
        "!?",
        "#",
        "ion",
        "ent",
        "a.md#",
        "s",
        "rsion",
        "5",
        "版",
    ],
)
def test_what_is_not_there_is_not_guessed(asked):
    with pytest.raises(NotFound, match=r"md_tree\(path\) with path='a.md'"):
        found(asked, "Conocimiento", "Database", "Installation", "版本 4", "55")


@pytest.mark.parametrize(
    ("asked", "heading"),
    [
        ("heat", "The atlas"),
        ("content", "Contest"),
        ("database", "Data"),
        ("version 3", "Version 2"),
        ("release version 3", "Release version 2"),
        ("3", "3.2 Options"),
        ("3", "30 days"),
        ("C++", "C"),
        ("c", "C++ code"),
        (" ".join(f"word{n}" for n in range(1_000)), "Other word1"),
    ],
)
def test_what_only_looks_alike_is_not_meant(asked, heading):
    with pytest.raises(NotFound):
        found(asked, heading)


def test_a_refusal_names_the_nearest_and_of_nothing_the_first():
    with pytest.raises(NotFound, match=r"nearest: a\.md#database \('Database', L5-8\)"):
        found("Databse", "Database", "Other")
    with pytest.raises(NotFound, match=r"begins with: a\.md#_intro \('Title', L1-4\); a\.md#database"):
        found("", "Database")
    with pytest.raises(NotFound, match="no sections at all"):
        match_section((), "x", "a.md")


def test_whole_words_come_before_parts_of_words():
    assert found("test", "Testing the contest", "Test") == "Test"
    assert found("art", "Articles", "Art") == "Art"
    assert found("config", "Configuration", "Config file") == "Config file"
    assert found("code", "Encoder", "Codec") == "Codec"
    assert found("sqlite", "SQLite for beginners and others", "SQLite notes") == "SQLite notes"
    assert found("3.2", "Python 3.2 support", "3.2 Options") == "3.2 Options"


def test_the_scale_is_that_of_the_description():
    def score(asked, heading):
        (fit,) = heading_fits(Headings(sections_of(heading)[1:]), asked).values()
        return round(fit[0], 3)

    assert score("setup", "Setup") == 1.0
    assert score("roadmap", "Road map") == 0.95
    assert score("installing", "Installation") == 0.9
    assert score("data", "Database") == round(0.8 * (0.8 + 0.2 * 4 / 8), 3)
    assert score("db", "Database") == 0.75
    assert score("rl", "Release Log") == 0.7
    assert score("base", "Database") == round(0.65 * (0.8 + 0.2 * 4 / 8), 3)
    assert score("part", "A long heading about many things and a compartment") >= THRESHOLD
    assert score("setup other", "Setup") == 0.5


def test_a_heading_above_tells_sections_of_one_name_apart():
    sections = sections_of("## Linux", "### Setup", "#### Proxy", "## Windows", "### Setup")
    for asked, slug in (
        ("linux setup", "linux/setup"),
        ("setup on Windows", "windows/setup"),
        ("linux", "linux"),
        ("linux setup proxy", "linux/setup/proxy"),
        ("Linux > prox", "linux/setup/proxy"),
    ):
        assert sections[match_section(sections, asked, "a.md")].slug == slug


def test_a_parent_that_says_it_itself_beats_children_that_inherit():
    sections = sections_of("## Linux packages", "### Guide words", "### Guide signs")
    assert sections[match_section(sections, "linux packages guidance", "a.md")].slug == "linux-packages"


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
    parts = str(said.value).split("give one id: ")[1].split("; ")
    named = [part.split(" ")[0] for part in parts]
    assert len(named) == 2 and all(re.search(r" \('.+', L\d+-\d+\)$", part) for part in parts)
    for name in named:
        assert sections[match_section(sections, name, "a.md")].slug == name.partition("#")[2]


def test_the_marks_of_a_heading_choose_its_level():
    sections = sections_of("## Setup", "### Setup")
    assert sections[match_section(sections, "### Setup", "a.md")].level == 3
    assert sections[match_section(sections, "## Setup", "a.md")].level == 2


def test_marks_of_a_level_that_is_not_there_leave_the_text():
    sections = sections_of("## Setup")
    assert sections[match_section(sections, "#### Setup", "a.md")].slug == "setup"
    assert sections[match_section(sections, "## Title", "a.md")].slug == "_intro"


def test_ids_anchors_and_headings_are_tried_in_this_order():
    sections = sections_of(
        "## A", "### Setup", "## B", "### Setup", "## Other {#Own-Id}", "## FAQ", "### faq"
    )
    for asked, slug in (
        ("a/setup", "a/setup"),
        ("#b/setup", "b/setup"),
        ("#setup", "a/setup"),
        ("setup-1", "b/setup"),
        ("SETUP-1", "b/setup"),
        ("Own-Id", "other"),
        ("own-id", "other"),
        ("FAQ", "faq"),
        ("_intro", "_intro"),
        ("root:a.md#a/setup", "a/setup"),
    ):
        assert sections[match_section(sections, asked, "a.md")].slug == slug
    assert match_section(sections, "a.md#a/setup", "root:a.md") == match_section(sections, "a/setup", "a.md")
    for asked in ("setup", "Setup", "SETUP", "### Setup", "#Setup"):
        with pytest.raises(QueryError):
            match_section(sections, asked, "a.md")


def test_text_before_the_first_heading_has_an_id():
    sections = outline_of("a.md", Text(("words", "", "## Setup"))).sections
    assert match_section(sections, "_preamble", "a.md") == 0


@pytest.mark.parametrize(
    "asked",
    ["Linux > Setup", "Linux/Setup", "Linux#Setup", "linux/setup", "## Linux > ### Setup", "Title>Setup"],
)
def test_a_path_of_headings_leads_to_one_of_several(asked):
    sections = sections_of(
        "## Linux", "### Setup", "## Windows", "### Install" if "Title" in asked else "### Setup"
    )
    assert sections[match_section(sections, asked, "a.md")].heading_path == ("Title", "Linux", "Setup")


WORDS = st.sampled_from(
    ["setup", "Setup", "API", "a/b", "# c", "3.2", "Über", "安装", "`x`", "_y_", "no", "-1", "{#z}"]
)
TEXT = st.one_of(st.text(max_size=25), st.lists(WORDS, max_size=4).map(" ".join))
HEADINGS = st.lists(TEXT.map(lambda text: re.sub(r"[\r\n]", " ", text)), max_size=12)


def nested(headings):
    return sections_of(*(f"{'#' * (n % 3 + 2)} {text}" for n, text in enumerate(headings)))


@settings(max_examples=200, deadline=None)
@given(HEADINGS)
def test_every_id_anchor_and_unique_heading_leads_back(headings):
    sections = nested(headings)
    ids = {section.slug for section in sections}
    slugs = ids | {slug.rpartition("/")[2] for slug in ids}
    titles = [section.title for section in sections]
    anchors = [name for s in sections for name in (s.anchor, s.custom_anchor) if name]
    for place, section in enumerate(sections):
        assert match_section(sections, section.slug, "a.md") == place
        assert match_section(sections, f" a.md#{section.slug} ", "a.md") == place
        if section.anchor and anchors.count(section.anchor) == 1 and section.anchor not in slugs:
            assert match_section(sections, section.anchor, "a.md") == place
        if section.anchor and anchors.count(section.anchor) == 1 and section.anchor not in ids:
            assert match_section(sections, f"#{section.anchor}", "a.md") == place
        bare = section.title.lstrip("#").strip("/")
        if bare and titles.count(section.title) == 1 and not {bare, section.title} & {*slugs, *anchors}:
            assert match_section(sections, section.title, "a.md") == place


@settings(max_examples=300, deadline=None)
@given(HEADINGS, TEXT)
def test_any_question_ends_well_and_alike_each_time(headings, asked):
    sections = nested(headings)
    scores = heading_fits(Headings(sections), asked)
    assert all(0 <= score <= 1.000001 for score, _ in scores.values())
    ends = []
    for _ in range(2):
        try:
            ends.append(match_section(sections, asked, "a.md"))
        except (NotFound, QueryError) as error:
            ends.append(str(error))
    assert ends[0] == ends[1]


@pytest.mark.parametrize(
    "asked",
    [
        "word " * 1_000,
        "x" * 5_000,
        "a/" * 2_500,
        "[(" * 2_500,
        "# a" + " " * 5_000 + "b",
        "é" * 5_000,
        "head " * 9,
    ],
)
def test_a_very_long_question_is_answered_at_once(asked):
    sections = sections_of(*(f"Heading{n % 50} number {n}" for n in range(2_000)))
    started = time.process_time()
    with pytest.raises((NotFound, QueryError)):
        match_section(sections, asked, "a.md")
    assert time.process_time() - started < 0.5  # it is a tenth of that; slow machines are no failure
