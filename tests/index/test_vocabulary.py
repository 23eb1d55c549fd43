"""Terms are numbered from batch to batch, and each batch stores its own only."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from searchsvc.index.vocabulary import Vocabulary
from searchsvc.tokens import STOP_WORDS, Tokenizer

TEXTS = ["red green", "the blue", "green " + "x" * 50, "", "RustC++ or C#", "x" * 50]


def stored(vocabulary, texts, ids=Vocabulary.topic_ids):
    """Return the terms of each text as a batch of them holds them, and the batch's vocabulary."""
    packed, bounds = bytearray(), [0]
    for text in texts:
        packed += ids(vocabulary, text)
        bounds.append(len(packed))
    stream = vocabulary.stream(packed, bounds)
    words = [stream.vocabulary[number] for number in stream.terms.tolist()]
    starts = stream.bounds.tolist()
    return [words[a:b] for a, b in zip(starts, starts[1:], strict=False)], stream.vocabulary


@pytest.mark.parametrize("most", [2, 200_000], ids=["forgetting", "remembering"])
def test_every_batch_holds_its_terms_and_no_others(monkeypatch, most):
    monkeypatch.setattr("searchsvc.index.vocabulary._MAX_PIECES", most)
    tokenizer = Tokenizer()
    vocabulary = Vocabulary(tokenizer)
    for texts in (TEXTS, TEXTS[:2], [], TEXTS[::-1]):
        found, terms = stored(vocabulary, texts)
        assert found == [tokenizer.topic_terms(text) for text in texts]
        assert sorted(terms) == sorted({term for cell in found for term in cell})


def test_too_many_pieces_are_forgotten(monkeypatch):
    monkeypatch.setattr("searchsvc.index.vocabulary._MAX_PIECES", 2)
    asked = []

    class Asked(Tokenizer):
        def topic_terms(self, text):
            asked.append(text)
            return super().topic_terms(text)

    vocabulary = Vocabulary(Asked())
    for _ in range(2):
        stored(vocabulary, ["red green red"])
    assert asked == ["red", "green"]
    for _ in range(2):
        stored(vocabulary, ["red green blue blue"])
    assert asked == ["red", "green", "blue", "red", "green", "blue"]


def test_a_label_of_stop_words_keeps_them():
    found, _ = stored(Vocabulary(Tokenizer()), ["To be or not to be", "to do", ""], Vocabulary.label_ids)
    assert found == [["to", "be", "or", "not", "to", "be"], ["to", "do"], []]


@given(st.lists(st.text(alphabet="aB1 .-(`'#+&;:/_,\u00a0\u4e2d\u00e9", max_size=20), max_size=4))
def test_any_texts_are_stored_as_their_terms(texts):
    tokenizer = Tokenizer()
    found, _ = stored(Vocabulary(tokenizer), texts)
    assert found == [[t for t in tokenizer.terms(text) if t not in STOP_WORDS] for text in texts]
