"""Where texts are cut into windows."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchsvc.embedding import Passage
from searchsvc.embedding.windows import clean, cut_windows


def offsets_of(tokens_per_character: list[int]) -> list[tuple[int, int]]:
    return [(at, at + 1) for at, count in enumerate(tokens_per_character) for _ in range(count)]


@settings(deadline=None)
@given(st.lists(st.integers(1, 3), min_size=1, max_size=300), st.integers(8, 60))
def test_windows_cover_every_token_fit_their_room_and_split_no_character(characters, room):
    offsets = offsets_of(characters)
    spans = cut_windows(offsets, room, limit=1000)
    assert spans[0][0] == 0 and spans[-1][1] == len(offsets)
    assert all(0 < end - start <= room for start, end in spans)
    for (start, end), (following, following_end) in zip(spans, spans[1:], strict=False):
        assert start < following <= end < following_end
    for border in {border for span in spans for border in span} - {0, len(offsets)}:
        assert offsets[border][0] >= offsets[border - 1][1]


@settings(deadline=None)
@given(st.integers(1, 2000), st.integers(16, 100))
def test_no_window_after_the_first_is_a_crumb(total, room):
    spans = cut_windows([(at, at + 1) for at in range(total)], room, limit=1000)
    assert all(end - start >= room // 4 + room // 8 for start, end in spans[1:])
    if len(spans) > 1:
        assert spans[0][1] - spans[1][0] >= room // 8


def test_a_crumb_becomes_a_full_window_that_overlaps_more():
    assert cut_windows([(at, at + 1) for at in range(90)], room=80, limit=9) == [(0, 80), (10, 90)]


def test_a_character_of_more_tokens_than_a_window_still_ends():
    spans = cut_windows([(0, 1)] * 100, room=10, limit=1000)
    assert spans[-1][1] == 100


def test_windows_stop_at_the_limit():
    assert len(cut_windows([(at, at + 1) for at in range(1000)], room=10, limit=3)) == 3


@pytest.mark.parametrize("text", ["日本語の長い文章です。" * 120, "👩‍👩‍👧🎉 party 🇩🇪 " * 200, "㍿ ﷺ " * 300])
def test_every_window_of_any_script_holds_whole_tokens_of_the_text(minilm, text):
    windows = minilm._windower.passage(Passage("Title", text))
    tokenizer = minilm._windower._tokenizer
    known = set(tokenizer.encode(text).ids) | set(tokenizer.encode("Title").ids)
    assert len(windows) > 1
    assert all(len(window) <= minilm.profile.max_tokens for window in windows)
    assert {token for window in windows for token in window} <= known


def test_each_window_begins_with_the_context_cut_to_a_third(minilm):
    windows = minilm._windower.passage(Passage("heading " * 500, "word " * 500))
    heading = minilm._windower._tokenizer.encode("heading", add_special_tokens=False).ids[0]
    assert len(windows) > 2
    assert {window.count(heading) for window in windows} == {(256 - 2) // 3}


def test_a_note_that_quotes_special_tokens_means_the_characters(minilm):
    window = minilm._windower.query("the [SEP] token")
    assert window.count(window[-1]) == 1


def test_cleaning_keeps_everything_but_nul_and_lone_surrogates():
    assert clean("a\0b\ud83dc 🎉 é\u200d") == "abc 🎉 é\u200d"
