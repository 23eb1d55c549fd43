"""What holds for every note, whatever stands in it."""

import json

from hypothesis import example, given, settings
from hypothesis import strategies as st

from searchsvc.errors import ReadingError
from searchsvc.index.links import Anchor, Anchors
from searchsvc.items import Note
from searchsvc.reading.decode import split_lines
from searchsvc.reading.note import read_note

settings.register_profile("calm", deadline=None)  # a busy machine is no fault
settings.load_profile("calm")

PIECES = st.sampled_from(
    "# A|## B|### B|#|# a-1|# A 1|```|~~~|    x|> # q|- # i|<!--|-->|<pre>|</pre>|---|a: 1".split("|")
    + "|![i](p.png)|[x](a.md#b)|[r]: a.md|[r]|`c`|text|# _intro|# {#id}|# 标题|1. # z|...|#tag".split("|")
    + ["A\n===", "B\n---", "[[A#B|c]]", "<b>", "&amp;", "\\#", "***", "\t", "\u2028", "\ufeff", "\x0c"]
)
LINE_ENDS = st.sampled_from(["\n", "\n", "\r\n", "\r", "\n\n"])
MARKDOWN = st.lists(st.tuples(PIECES, LINE_ENDS), max_size=30).map(lambda parts: "".join(map("".join, parts)))
ANY_TEXT = st.one_of(MARKDOWN, st.text(max_size=200))


def read(text: str) -> Note:
    return read_note("n.md", text.encode("utf-8", "replace"))


def _read_or_refused(text: str) -> Note | None:
    try:
        return read(text)
    except ReadingError:
        return None


@given(ANY_TEXT)
def test_own_lines_tile_the_body_from_its_first_word_to_the_end(text: str) -> None:
    note = _read_or_refused(text)
    if note is None:
        return
    last = len(note.lines)
    written = [n for n in range(note.body_start, last + 1) if note.lines[n - 1].strip(" \t")]
    if not written:
        only_front_matter = [(1, note.body_start - 1)] if note.body_start > 1 else []
        assert [(s.line_start, s.line_end) for s in note.sections] == only_front_matter
        return
    nexts = [s.line_start for s in note.sections[1:]] + [last + 1]
    assert note.sections[0].line_start == written[0]
    for section, following in zip(note.sections, nexts, strict=True):
        assert section.line_end == following - 1 >= section.line_start
        assert section.line_start <= section.body_start <= section.line_end + 1


@given(ANY_TEXT)
def test_subtrees_nest_and_end_where_the_next_heading_of_their_level_begins(text: str) -> None:
    note = _read_or_refused(text)
    for number, section in enumerate(note.sections if note else ()):
        assert note is not None
        later = [s for s in note.sections[number + 1 :] if s.level <= section.level]
        if section.level:
            assert section.subtree_end == (later[0].line_start - 1 if later else len(note.lines))
        if section.parent >= 0:
            parent = note.sections[section.parent]
            assert section.parent < number and parent.level < section.level
            assert parent.line_start < section.line_start and section.subtree_end <= parent.subtree_end
            assert section.heading_path == (*parent.heading_path, section.title)


@given(ANY_TEXT)
@example("# A\n# A\n# A 1\n# A-1\n")
def test_ids_are_unique_without_empty_parts_and_without_regard_to_blanks(text: str) -> None:
    note = _read_or_refused(text)
    slugs = [section.slug for section in (note.sections if note else ())]
    assert len(slugs) == len(set(slugs))
    assert all(part and part == "".join(part.split()) for slug in slugs for part in slug.split("/"))


@given(ANY_TEXT)
def test_every_github_anchor_leads_back_to_its_section(text: str) -> None:
    note = _read_or_refused(text)
    sections = note.sections if note else ()
    anchors = Anchors(
        [Anchor(n, s.level, s.title, s.anchor, "", s.line_start, s.line_end) for n, s in enumerate(sections)]
    )
    for number, section in enumerate(sections):
        if section.anchor:
            found = anchors.find(section.anchor, wiki=False)
            assert found is not None and found.id == number


@given(st.binary(max_size=300))
@example(b"\xff\xfe")
@example(b"\xff\xfe\x00\xd8")
@example(b"\xef\xbb\xbf---\n\x85: [\n---\n")
@example(b"---\n? {a: b}\n: c\n---\n")
@example(b'---\ntitle: "\\uD800"\n---\n')
def test_reading_refuses_binary_data_and_fails_on_nothing_else(data: bytes) -> None:
    try:
        note = read_note("n.md", data)
    except ReadingError:
        return
    for text in (*note.lines, note.title, *note.tags, *note.aliases, *(s.title for s in note.sections)):
        text.encode("utf-8")
    json.dumps(note.properties, allow_nan=False)
    assert all(1 <= link.line <= max(len(note.lines), 1) for link in note.links)


YAML = st.text(st.sampled_from("ab:-[]{}&*!|>'\"#%@`,? \n\t0.1e~\\x"), max_size=40)


@given(YAML)
@settings(max_examples=300)
def test_front_matter_never_costs_more_than_itself(block: str) -> None:
    note = read(f"---\n{block}\n---\n\n# Heading\n\nbody\n")
    assert note.sections[-1].title == "Heading"
    assert json.loads(json.dumps(note.properties, allow_nan=False)) == note.properties
    assert not (note.properties and any("not read" in problem for problem in note.problems))


@given(ANY_TEXT)
def test_lines_are_those_of_the_file_whatever_ends_them(text: str) -> None:
    lines = split_lines(text)
    assert "\n".join(lines) == text.replace("\r\n", "\n").replace("\r", "\n").removesuffix("\n")


@given(MARKDOWN)
def test_line_ends_make_no_difference(text: str) -> None:
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    unix, dos, mac = (read(plain.replace("\n", end)) for end in ("\n", "\r\n", "\r"))
    assert unix == dos == mac
