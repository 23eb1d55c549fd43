"""Headings that a question says, against the plain definition."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from searchsvc.ranking.lexical import lexical
from searchsvc.ranking.titles import _runs, headings_said
from tests.ranking.small_corpus import small_corpus, terms_of

WORDS = st.integers(0, 3)


@given(
    cells=st.lists(st.lists(WORDS, min_size=1, max_size=4), max_size=6),
    line=st.lists(st.integers(-1, 3), min_size=1, max_size=6),
)
def test_runs_of_a_line_are_found_wherever_they_begin(cells, line):
    stream = np.array([word for cell in cells for word in cell], np.int32)
    lengths = np.array([len(cell) for cell in cells], np.int64)
    is_run, is_whole = _runs(stream, np.cumsum(lengths) - lengths, lengths, np.array(line, np.int32))
    for number, cell in enumerate(cells):
        places = range(len(line) - len(cell) + 1)
        assert is_run[number] == any(line[place : place + len(cell)] == cell for place in places)
        assert is_whole[number] == (line == cell)


def said(small, question):
    pool = np.arange(len(small.corpus))
    terms = terms_of(question)
    exact, phrase = headings_said(small.corpus, terms.line, lexical(small.corpus, terms).matches, pool)
    return set(small.names(exact)), set(small.names(phrase))


def test_titles_headings_and_aliases_are_told_apart(tmp_path):
    notes = {
        "a.md": "---\naliases: [Sea Songs]\n---\n# Whale songs\n\nIntro.\n\n## Low notes\n\nDeep.\n",
        "b.md": "# Low\n\nText.\n\n## Songs\n\nMore.\n",
    }
    with small_corpus(tmp_path, notes) as small:
        assert said(small, "whale songs") == ({"a.md#_intro"}, {"b.md#songs"})
        assert said(small, "sea songs")[0] == {"a.md#_intro"}
        assert said(small, "which low notes whales sing")[1] == {"a.md#low-notes", "b.md#_intro"}
        assert said(small, "notes low") == (set(), {"b.md#_intro"})
        assert said(small, "quxify") == (set(), set())
