"""Windows without a tokenizer, and what is known of model families."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from searchsvc.embedding import Passage
from searchsvc.embedding.families import FAMILIES, base_name, find_family
from searchsvc.embedding.pieces import MAX_WINDOWS, Cutter, count_tokens, guess_tokens, shorten
from searchsvc.errors import EmbeddingError

TEXTS = [
    "A plain sentence about herons, cranes and storks in the reeds. " * 40,
    "=:{}$ " * 400,
    "日本語の長い文章です。" * 120,
    "Die Donaudampfschifffahrtsgesellschaft übernahm 1834 die Kapitänsstelle. " * 40,
    "def f(x): return {key: value for key, value in x.items() if value != 0}\n" * 40,
]


@settings(deadline=None)
@given(st.text(max_size=400))
def test_every_visible_character_is_in_a_token_and_tokens_are_in_order(text):
    tokens = guess_tokens(text)
    covered = {at for start, end in tokens for at in range(start, end)}
    assert all(at in covered for at, sign in enumerate(text) if not sign.isspace())
    assert all(start < end for start, end in tokens)
    assert [end for _, end in tokens] == sorted(end for _, end in tokens)
    assert len(tokens) <= 2 * len(text)


@pytest.mark.parametrize("text", TEXTS)
def test_a_window_has_at_most_its_tokens_by_the_guess(text):
    windows = Cutter(64, ("", "passage: ")).passage(Passage("Notes > Birds " * 20, text))
    assert 1 < len(windows) <= MAX_WINDOWS
    assert all(count_tokens(window) <= 64 for window in windows)
    assert all(window.startswith("passage: Notes > Birds") for window in windows)


@pytest.mark.parametrize("text", TEXTS[:3] + TEXTS[4:])
def test_the_guess_is_not_below_what_a_tokenizer_finds(minilm, text):
    real = minilm._windower._tokenizer.encode(text, add_special_tokens=False).ids
    assert count_tokens(text) >= len(real)


def test_no_window_cuts_a_letter_with_its_marks_or_a_family_of_emoji():
    units = ["👩‍👩‍👧", "🇩🇪", "e\u0301\u0323", "👍🏽", "नि"]
    text = "".join(units * 60)
    windows = Cutter(40).passage(Passage("", text))
    assert len(windows) > 2
    for window in windows:
        rest = window
        while rest:
            unit = next((unit for unit in units if rest.startswith(unit)), None)
            assert unit, rest[:4]
            rest = rest[len(unit) :]


def test_windows_together_hold_the_whole_text():
    words = [f"word{number}" for number in range(900)]
    windows = Cutter(128).passage(Passage("Head", " ".join(words)))
    assert {word for window in windows for word in window.split()} >= set(words)


@pytest.mark.parametrize("text", ["", " \n\t", "\0\ud83d"])
def test_blank_texts_have_no_window(text):
    cutter = Cutter(64, ("query: ", "passage: "))
    assert cutter.passage(Passage("Context", text)) == []
    assert cutter.query(text) == ""


def test_a_question_keeps_its_prefix_and_is_cut_to_one_window():
    cutter = Cutter(64, ("query: ", ""))
    assert cutter.query(" where\0 do herons nest\ud83d? ") == "query: where do herons nest?"
    assert count_tokens(cutter.query("heron " * 900)) <= 64


def test_a_window_that_its_prefix_fills_is_refused():
    with pytest.raises(EmbeddingError, match="max_tokens is 20.*expected at least"):
        Cutter(20, ("", "a long prefix of many words: "))


def test_shortening_takes_about_half_and_ends_between_words():
    text = "some words " * 50
    assert shorten(text) == text[: len(shorten(text))]
    assert 200 < len(shorten(text)) <= 275
    assert not shorten(text).endswith("wor")
    assert shorten("ae\u0301") == "a"


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("nomic-embed-text:latest", "nomic-embed-text"),
        ("text-embedding-nomic-embed-text-v1.5@q4_k_m", "nomic-embed-text-v1.5"),
        ("hf.co/nomic-ai/nomic-embed-text-v1.5-GGUF:Q4_K_M", "nomic-embed-text-v1.5"),
        ("text-embedding-3-small", "text-embedding-3-small"),
        ("BAAI/bge-m3", "bge-m3"),
    ],
)
def test_the_base_name_has_no_owner_tag_or_quantisation(model, name):
    assert base_name(model) == name


@pytest.mark.parametrize(
    ("model", "query_prefix", "passage_prefix"),
    [
        ("nomic-embed-text", "search_query: ", "search_document: "),
        ("intfloat/multilingual-e5-small", "query: ", "passage: "),
        ("e5-base-v2", "query: ", "passage: "),
        ("bge-small-en-v1.5", "Represent this sentence for searching relevant passages: ", ""),
        ("bge-m3:567m", "", ""),
        ("snowflake-arctic-embed2", "query: ", ""),
        ("embeddinggemma:300m", "task: search result | query: ", "title: none | text: "),
        ("some-new-model", "", ""),
    ],
)
def test_prefixes_are_those_of_the_card(model, query_prefix, passage_prefix):
    family = find_family(model)
    assert (family.query_prefix, family.passage_prefix) == (query_prefix, passage_prefix)


def test_every_family_names_its_source_and_is_found_by_it():
    for family in FAMILIES:
        assert family.source
        assert "/" not in family.source or find_family(family.source) is family
