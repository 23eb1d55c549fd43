"""Literal search in the text of one section, against an oracle that tries every place."""

import time
import unicodedata
from itertools import groupby

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from searchsvc.ranking.literal import Needle

PIECES = [
    "a", "A", "b", " ", "\n", "\n\n", "\t", "é", "e\u0301", "E\u0301", "ß", "SS", "İ", "ŝ", "s\u0302", "日",
    "a.", "(", "[", "\\", "*", "+", "?", "$", "^", "|", "_", "-", "\u00a0", "\u2028", "\r", "ΐ", "Ϊ\u0301",
    "ﬁ", "😀", "\n<!-- page 3 -->\n",
]  # fmt: skip
written = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)
asked = st.lists(st.sampled_from(PIECES[:-1]), min_size=1, max_size=4).map("".join)


def same(text, *, case_sensitive):
    """Return a text as it is compared."""
    text = unicodedata.normalize("NFC", text)
    return text if case_sensitive else unicodedata.normalize("NFC", text.casefold())


def squeezed(text):
    """Return a text with one blank for each run of white space, none at its ends."""
    words = ["".join(run) for is_blank, run in groupby(text, str.isspace) if not is_blank]
    return " ".join(words)


def times(needle, text):
    """Count places that do not overlap, from the left, letter by letter."""
    found = place = 0
    while place <= len(text) - len(needle):
        is_here = all(text[place + n] == needle[n] for n in range(len(needle)))
        found += is_here
        place += len(needle) if is_here else 1
    return found


def brute_force(query, text, first, *, case_sensitive):
    """Return first line, last line and count of every paragraph that holds a text."""
    needle = squeezed(same(query, case_sensitive=case_sensitive))
    lines = list(enumerate(text.split("\n"), first))
    found = []
    for is_text, run in groupby(lines, lambda pair: bool(pair[1].strip()) and "<!-- page" not in pair[1]):
        block = list(run)
        whole = squeezed(" ".join(same(line, case_sensitive=case_sensitive) for _, line in block))
        count = times(needle, whole) if is_text else 0
        if count:
            found.append((block[0][0], block[-1][0], count))
    return found


def search(query, text, line_start=1, body_start=1, **options):
    return list(Needle(query, **options).paragraphs(text, line_start, body_start))


@pytest.mark.proves("R-literal")
@given(asked, written, st.booleans(), st.integers(1, 99))
@example("cafe", "cafe\u0301", False, 1)
@example("Ϊ\u0301", "ΐ", False, 1)
def test_what_is_found_is_what_trying_every_place_finds(query, text, case_sensitive, first):
    if not query.strip():
        return
    found = search(query, text, first, first, case_sensitive=case_sensitive)
    expected = brute_force(query, text, first, case_sensitive=case_sensitive)
    assert [(part.line_start, part.line_end, part.count) for part in found] == expected
    lines = text.split("\n")
    for part in found:
        assert part.text == "\n".join(lines[part.line_start - first : part.line_end - first + 1])
        assert part.line_start <= part.found[0] <= part.found[-1] <= part.line_end
        assert list(part.found) == sorted(set(part.found))
        assert 1 <= len(part.found) <= part.count


@pytest.mark.parametrize("query", [" ", "\n\t", "\u2028", ""])
def test_a_needle_of_white_space_is_blank(query):
    assert Needle(query).is_blank


def test_a_phrase_is_found_across_line_ends_but_not_across_paragraphs():
    (found,) = search("over the lazy", "jumps over\nthe   lazy dog\n\nover\n\nthe lazy", 10, 10)
    assert (found.line_start, found.line_end, found.found) == (10, 11, (10,))


def test_the_lines_that_are_named_are_those_on_which_the_text_begins():
    (found,) = search("ab", "ab ab\nx\nxaby\nz ab")
    assert found.found == (1, 3, 4)
    assert found.count == 4


def test_letter_case_counts_only_when_it_is_asked_for():
    assert search("STRASSE", "Die Straße")
    assert not search("STRASSE", "Die Straße", case_sensitive=True)
    assert search("Straße", "Die Straße", case_sensitive=True)


def test_letters_that_are_composed_differently_are_the_same():
    for case_sensitive in (False, True):
        assert search("caf\u00e9", "cafe\u0301", case_sensitive=case_sensitive)
        assert search("cafe\u0301", "caf\u00e9", case_sensitive=case_sensitive)
        assert not search("cafe", "cafe\u0301 caf\u00e9", case_sensitive=case_sensitive)


def test_a_heading_is_a_paragraph_of_its_own_and_comes_first():
    heading, body = search("heron", "## Heron\nThe heron stands.\nA heron.", 5, 6)
    assert (heading.line_start, heading.line_end) == (5, 5)
    assert (body.line_start, body.line_end) == (6, 7)
    assert heading.relevance > body.relevance


def test_a_heading_of_two_lines_is_one_paragraph():
    (found,) = search("heron", "The heron\n=====\nbody", 5, 7)
    assert (found.line_start, found.line_end) == (5, 6)


def test_whole_words_count_more_than_parts_of_words_and_five_more_than_one():
    def relevance(text):
        return search("port", text)[0].relevance

    assert relevance("a port") > relevance("a report") > 0
    assert relevance("port port") > relevance("port")
    assert relevance("port " * 5) == relevance("port " * 50)


def test_a_page_mark_parts_paragraphs_and_is_not_found():
    text = "before the\n<!-- page 7 -->\nend of page"
    assert not search("the end", text)
    (found,) = search("page", text)
    assert found.line_start == 3


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("a!" * 4999 + "b", "a!" * 500_000 + "b"),
        ("a" * 9999 + "b", "a" * 1_000_000 + "b"),
        ("a " * 4999 + "b", "a " * 500_000 + "b"),
        ("!a" * 4999 + "!", "!a" * 500_000),
    ],
    ids=["signs", "letters", "words", "many"],
)
def test_a_text_that_nearly_fits_everywhere_costs_no_more_than_its_length(query, text):
    begin = time.process_time()
    assert search(query, text)
    assert time.process_time() - begin < 5
