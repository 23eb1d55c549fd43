"""What is particular to the ONNX and to the static embedder."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from searchsvc.embedding import Passage, load_embedder
from searchsvc.embedding.cards import load_card
from searchsvc.embedding.local import MAX_WINDOWS, OnnxEmbedder
from searchsvc.embedding.places import find_files
from searchsvc.embedding.static import MAX_WINDOWS as MAX_STATIC_WINDOWS
from searchsvc.embedding.static import read_table
from searchsvc.errors import EmbeddingError


def test_a_vector_that_is_not_finite_is_an_error_that_does_not_show_the_text(minilm, monkeypatch):
    class Broken:
        def run(self, outputs, feed):
            return [np.full((1, feed["input_ids"].shape[1], 384), np.nan, dtype=np.float32)]

    monkeypatch.setattr(minilm, "_session", Broken())
    with pytest.raises(EmbeddingError, match="expected a finite one") as caught:
        minilm.encode_query("secret words")
    assert "secret" not in str(caught.value)


def test_a_network_of_another_dimension_is_an_error_that_names_both(minilm, monkeypatch):
    class Other:
        def run(self, outputs, feed):
            return [np.ones((1, 3, 8), dtype=np.float32)]

    monkeypatch.setattr(minilm, "_session", Other())
    with pytest.raises(EmbeddingError, match=r"\(8,\).*\(384,\)"):
        minilm.encode_query("words")


def test_an_endless_passage_has_a_bounded_number_of_rows(static, minilm):
    words = "lorem ipsum dolor sit amet " * 40_000
    assert len(next(static.encode_passages([Passage("", words)]))) == MAX_STATIC_WINDOWS
    assert len(minilm._windower.passage(Passage("", words))) == MAX_WINDOWS


def test_words_the_static_model_does_not_know_have_no_vector(static):
    assert not static.encode_query("🛸🛸").any()
    assert next(static.encode_passages([Passage("", "🛸🛸")])).shape == (0, 256)


def test_static_vectors_equal_those_of_model2vec(static):
    model2vec = pytest.importorskip("model2vec", reason="model2vec is not installed")
    oracle = model2vec.StaticModel.from_pretrained(find_files(load_card("minilm-static-256")))
    texts = ["how to sort a list", "日本語 here", "def f(x): return x**2", "Ünïcode 🎉 party", "x " * 200]
    for text in texts:
        np.testing.assert_allclose(static.encode_query(text), oracle.encode(text), atol=1e-6)


def test_files_that_are_no_models_are_errors_that_say_what_to_do(tmp_path):
    official = load_card("multilingual-e5-small")
    card = replace(official, files=tuple(replace(file, sha256="") for file in official.files))
    (tmp_path / "onnx").mkdir()
    (tmp_path / "onnx" / "model.onnx").write_bytes(b"no model")
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(EmbeddingError, match="put the file of the model there"):
        OnnxEmbedder(card, tmp_path)
    shutil.copy(find_files(load_card("all-minilm-l6-v2-int8")) / "tokenizer.json", tmp_path)
    with pytest.raises(EmbeddingError, match="not a model that onnxruntime"):
        OnnxEmbedder(card, tmp_path)


@pytest.mark.parametrize("tensor", [None, {"dtype": "F32", "shape": [1, 4], "data_offsets": [0, 16]}])
def test_a_table_of_another_kind_is_an_error(tmp_path, tensor):
    header = json.dumps({"embeddings": tensor} if tensor else {"other": {}}).encode()
    file = tmp_path / "model.safetensors"
    file.write_bytes(len(header).to_bytes(8, "little") + header + bytes(16))
    with pytest.raises(EmbeddingError, match="no 8-bit tensor named 'embeddings'"):
        read_table(file)


def test_workers_do_not_change_the_vectors():
    passages = [Passage("Title", f"Passage number {number} about rivers.") for number in range(12)]
    one, two = (load_embedder("all-minilm-l6-v2-int8", workers=workers) for workers in (1, 3))
    for left, right in zip(one.encode_passages(passages), two.encode_passages(passages), strict=True):
        np.testing.assert_array_equal(left, right)


def test_e5_puts_its_prefixes_before_questions_and_passages(e5):
    (passage,) = e5.encode_passages([Passage("", "how tall is the tower")])
    assert e5.encode_query("how tall is the tower") @ passage[0] < 0.9999
    windower = e5._windower
    assert windower.query("a")[1:3] != windower.passage(Passage("", "a"))[0][1:3]
    assert windower.query("x" * 9000)[-1] == windower.query("a")[-1]


def test_e5_ranks_a_paraphrase_above_an_unrelated_passage(e5):
    texts = ["Use sorted() to order the elements of a list.", "Boil the pasta in salted water."]
    close, far = e5.encode_passages([Passage("", text) for text in texts])
    query = e5.encode_query("how do I sort a list?")
    assert query @ close[0] > query @ far[0]
