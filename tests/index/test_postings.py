"""Postings against an independent implementation of BM25, and under merging.

The oracles are BM25Okapi and BM25Plus (delta 0) of rank-bm25, given the IDF of its BM25L. That is
ln((N + 1) / (n + 0.5)), ours written otherwise: 1 + (N - n + 0.5) / (n + 0.5) = (N + 1) / (n + 0.5).
Their gain is (k + 1) * w / (k + w) for w = tf / (1 - b + b * length / average), the weight that
postings store; ours leaves out the constant k + 1. The gain of rank-bm25's BM25L cannot be compared:
it multiplies by tf once more, which its paper does not.
"""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25L, BM25Okapi, BM25Plus

from searchsvc.index.postings import Field, Postings, Stream, build_postings, merge_streams

K, B = 1.5, 0.75
PLAIN = (Field(weight=1.0, b=B, counted=True),)

words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
sections = st.lists(st.lists(st.sampled_from([f"w{n}" for n in range(25)]), min_size=1), min_size=1)


def stream_of(texts: Sequence[Sequence[str]]) -> Stream:
    """Return a stream of one field, its vocabulary in order of appearance."""
    vocabulary = list(dict.fromkeys(term for text in texts for term in text))
    ids = [vocabulary.index(term) for text in texts for term in text]
    bounds = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    return Stream(vocabulary, np.array(ids, np.int32), bounds)


def postings_of(texts: Sequence[Sequence[str]], average: float) -> Postings:
    return build_postings(merge_streams([stream_of(texts)]), PLAIN, np.array([average]))


def average_of(texts: Sequence[Sequence[str]]) -> float:
    return sum(map(len, texts)) / len(texts)


def scores(parts: Sequence[Postings], sizes: Sequence[int], question: Sequence[str]) -> np.ndarray:
    """Score the sections of several segments as one corpus."""
    total = np.zeros(sum(sizes))
    starts = np.cumsum([0, *sizes])
    for term in question:
        found = [(start, part, part.find(term)) for start, part in zip(starts, parts, strict=False)]
        n = sum(int(part.frequencies[number]) for _, part, number in found if number >= 0)
        idf = math.log(1 + (len(total) - n + 0.5) / (n + 0.5))
        for start, part, number in found:
            if number >= 0:
                places, weights = part.of(number)
                total[places + start] += idf * weights / (K + weights)
    return total


def oracle_scores(kind: str, texts: Sequence[Sequence[str]], question: Sequence[str]) -> np.ndarray:
    oracle = BM25Okapi(texts, k1=K, b=B) if kind == "okapi" else BM25Plus(texts, k1=K, b=B, delta=0)
    oracle.idf = BM25L(texts).idf
    return oracle.get_scores(question)


@pytest.mark.proves("R-bm25")
@pytest.mark.parametrize("kind", ["okapi", "plus"])
@settings(deadline=None)
@given(sections, st.lists(st.sampled_from([f"w{n}" for n in range(30)]), min_size=1, unique=True))
def test_with_one_plain_field_scores_are_those_of_rank_bm25(kind, texts, question):
    ours = scores([postings_of(texts, average_of(texts))], [len(texts)], question)
    np.testing.assert_allclose(ours * (K + 1), oracle_scores(kind, texts, question), atol=1e-6)


@pytest.mark.proves("R-bm25")
@pytest.mark.parametrize("kind", ["okapi", "plus"])
@pytest.mark.parametrize("seed", range(5))
def test_scores_are_those_of_rank_bm25_on_texts_with_the_word_frequencies_of_language(kind, seed):
    rng = np.random.default_rng(seed)
    texts = [[f"w{n}" for n in rng.zipf(1.4, rng.integers(1, 80)).clip(max=60)] for _ in range(200)]
    question = ["w1", "w2", "w7", "w40", "unknown"]
    ours = scores([postings_of(texts, average_of(texts))], [len(texts)], question)
    np.testing.assert_allclose(ours * (K + 1), oracle_scores(kind, texts, question), atol=1e-6)


@settings(deadline=None)
@given(sections, st.lists(st.integers(0, 40), max_size=4))
def test_several_segments_score_as_one_made_of_the_same_sections(texts, cuts):
    question, average = ["w1", "w2", "w3", "w9"], average_of(texts)
    edges = sorted({0, len(texts), *(cut for cut in cuts if cut < len(texts))})
    groups = [texts[a:b] for a, b in zip(edges, edges[1:], strict=False)]
    whole = scores([postings_of(texts, average)], [len(texts)], question)
    split = scores([postings_of(group, average) for group in groups], list(map(len, groups)), question)
    np.testing.assert_allclose(whole, split, atol=1e-6)


@settings(deadline=None)
@given(st.lists(st.lists(st.lists(words), max_size=5), max_size=5))
def test_merged_streams_keep_every_term_of_every_section_in_order(groups):
    merged = merge_streams([stream_of(group) for group in groups])
    texts = [text for group in groups for text in group]
    spelled = [merged.vocabulary[term] for term in merged.terms]
    read = [spelled[a:b] for a, b in zip(merged.bounds, merged.bounds[1:], strict=False)]
    assert read == texts


@settings(deadline=None)
@given(st.lists(st.lists(words), max_size=8))
def test_terms_stand_in_byte_order_and_each_is_found_with_all_its_sections(texts):
    postings = postings_of(texts, 3.0)
    vocabulary = sorted({term for text in texts for term in text}, key=str.encode)
    assert [postings.spell(n).decode() for n in range(len(vocabulary))] == vocabulary
    assert len(postings.bounds) == len(vocabulary) + 1
    for place, term in enumerate(vocabulary):
        assert postings.find(term) == place
        assert postings.of(place)[0].tolist() == [n for n, text in enumerate(texts) if term in text]
        assert postings.frequencies[place] == sum(term in text for text in texts)


@settings(deadline=None)
@given(st.sets(words, max_size=20), words)
def test_a_term_that_is_not_there_is_not_found(vocabulary, term):
    postings = postings_of([sorted(vocabulary - {term})], 1.0)
    assert postings.find(term) == -1


@settings(deadline=None)
@given(st.sets(words, max_size=30), st.text(st.characters(exclude_categories=["Cs"]), max_size=2))
def test_a_prefix_finds_exactly_the_terms_that_begin_with_it(vocabulary, prefix):
    postings = postings_of([sorted(vocabulary)], 1.0)
    found = [postings.spell(n).decode() for n in postings.prefixed(prefix)]
    assert found == sorted((term for term in vocabulary if term.startswith(prefix)), key=str.encode)


def test_a_prefix_search_is_bounded():
    postings = postings_of([[f"a{n:04}" for n in range(50)]], 1.0)
    assert [postings.spell(n) for n in postings.prefixed("a", limit=3)] == [b"a0000", b"a0001", b"a0002"]


def test_fields_add_up_by_weight_and_own_saturation():
    fields = (Field(weight=3.0, b=0.0), Field(weight=1.0, b=1.0, k=2.0, counted=True))
    # One section: "x" in the first field; "x x y y" in the second, whose mean length is 8.
    stream = Stream(["x", "y"], np.array([0, 0, 0, 1, 1], np.int32), np.array([0, 1, 5], np.int64))
    postings = build_postings(stream, fields, np.array([1.0, 8.0]))
    x = 2 / (4 / 8)
    saturated = x * 3 / (x + 2)
    assert postings.weights.tolist() == pytest.approx([3.0 + saturated, saturated])


def test_only_counted_fields_count_for_document_frequency():
    fields = (Field(weight=1.0, b=0.5), Field(weight=1.0, b=0.5, counted=True))
    stream = Stream(["shared", "own"], np.array([0, 1, 0], np.int32), np.array([0, 1, 2, 3, 3], np.int64))
    postings = build_postings(stream, fields, np.array([1.0, 1.0]))
    assert postings.frequencies.tolist() == [0, 1]
    assert postings.of(0)[0].tolist() == [0, 1]


def test_blocks_of_any_size_give_the_same_postings(monkeypatch):
    rng = np.random.default_rng(3)
    texts = [[f"w{n}" for n in rng.integers(0, 40, rng.integers(0, 30))] for _ in range(60)]
    whole = postings_of(texts, average_of(texts))
    for tokens in (1, 7, 100):
        monkeypatch.setattr("searchsvc.index.postings._BLOCK_TOKENS", tokens)
        split = postings_of(texts, average_of(texts))
        for name in ("sections", "bounds", "frequencies", "spelling"):
            np.testing.assert_array_equal(getattr(split, name), getattr(whole, name))
        np.testing.assert_allclose(split.weights, whole.weights)


def test_a_stream_without_sections_makes_empty_postings():
    postings = build_postings(merge_streams([]), PLAIN, np.array([0.0]))
    assert postings.find("x") == -1
    assert list(postings.prefixed("")) == []
