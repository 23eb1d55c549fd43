"""The product's clients against servers by others: three that speak Ollama's API, and Infinity."""

from collections.abc import Iterator

import children
import infinity_server
import llama_server
import numpy as np
import ollama_servers
import pytest
import texts

from searchsvc.embedding import ModelChoice, Outcome, Partial, Passage, openai
from searchsvc.embedding import ollama as ollama_provider
from searchsvc.embedding.remote import RemoteEmbedder
from searchsvc.errors import EmbeddingError

BEYOND_BATCH = 2 * llama_server.PHYSICAL_BATCH
NEAR = 0.95
"""Cosine of two vectors of a text; the weights of one server have 8 bits, where it depends on the batch."""


def no_wait(seconds: float, stop: object) -> None:
    """Between two tries."""


def choose(provider: str, model: str, address: str, **settings: int) -> ModelChoice:
    """Ask for a model as users do, but with more patience: the machine may be busy with other tests."""
    return ModelChoice(provider=provider, model=model, base_url=address, query_seconds=120, **settings)


@pytest.fixture
def by_ollama(ollama: tuple[children.Child, str]) -> Iterator[RemoteEmbedder]:
    server, name = ollama
    choice = choose("ollama", name, server.address)
    embedder = ollama_provider.load(choice, sleep=no_wait)
    yield embedder
    embedder.close()


@pytest.fixture
def by_infinity(infinity: children.Child) -> Iterator[RemoteEmbedder]:
    choice = choose("openai", infinity_server.MODEL, infinity.address)
    embedder = openai.load(choice, sleep=no_wait)
    yield embedder
    embedder.close()


@pytest.fixture(scope="module")
def reference(llama: children.Child) -> Iterator[RemoteEmbedder]:
    """The same model, asked by OpenAI's API."""
    choice = choose("openai", llama_server.MODEL, f"{llama.address}/v1")
    embedder = openai.load(choice)
    yield embedder
    embedder.close()


def embed(embedder: RemoteEmbedder, contents: list[str]) -> np.ndarray:
    outcomes = list(embedder.encode_passages(Passage("", content) for content in contents))
    assert not [outcome.reason for outcome in outcomes if isinstance(outcome, Partial)]
    assert [len(outcome) for outcome in outcomes] == [1] * len(contents)
    return np.concatenate(outcomes)


def test_ollama_gives_unit_vectors_of_the_models_dimension(by_ollama: RemoteEmbedder):
    assert by_ollama.profile.dimension == llama_server.DIMENSION
    assert by_ollama.profile.provider == "ollama"
    rows = embed(by_ollama, list(texts.VARIED))
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-5)


def test_ollama_gives_the_vectors_that_the_same_model_gives_elsewhere(by_ollama, reference):
    for text in texts.VARIED:
        assert by_ollama.encode_query(text) @ reference.encode_query(text) > NEAR, text


def test_ollama_keeps_the_order_of_a_hundred_passages_blank_ones_between_them(by_ollama, reference):
    wanted = texts.numbered(100, longest=24)
    spaced = [Passage("", text) for word in wanted for text in (word, " ")]
    outcomes = list(by_ollama.encode_passages(spaced))
    assert [len(outcome) for outcome in outcomes] == [1, 0] * len(wanted)
    rows, others = np.concatenate(outcomes), embed(reference, wanted)
    assert ((rows @ others.T).argmax(axis=1) == np.arange(len(wanted))).all()


@pytest.mark.parametrize("ollama", [ollama_servers.SINGLE, ollama_servers.HERD], indirect=True)
def test_a_text_that_ollama_cannot_take_leaves_no_other_without_its_vector(ollama, reference):
    server, name = ollama
    outcomes = embed_with_one_beyond(server, name)
    beyond = outcomes.pop(1)
    assert len(beyond.rows) == 0 if isinstance(beyond, Partial) else len(beyond) == 1
    rows, others = np.concatenate(outcomes), embed(reference, ["first", "last"])
    assert (np.einsum("ij,ij->i", rows, others) > NEAR).all()


def test_a_proxy_that_shuts_itself_off_after_errors_gives_no_text_the_vector_of_another(
    batching_ollama, reference
):
    try:
        outcomes = embed_with_one_beyond(batching_ollama, llama_server.MODEL)
    except EmbeddingError as error:
        assert batching_ollama.address in str(error)
        return
    for outcome, text in zip((outcomes[0], outcomes[2]), ("first", "last"), strict=True):
        rows = outcome.rows if isinstance(outcome, Partial) else outcome
        assert (rows @ reference.encode_query(text) > NEAR).all()
        assert len(rows) or isinstance(outcome, Partial)


def embed_with_one_beyond(server: children.Child, name: str) -> list[Outcome]:
    """Embed three passages, the second of them longer than the server can take."""
    choice = choose("ollama", name, server.address, max_tokens=4 * BEYOND_BATCH)
    embedder = ollama_provider.load(choice, sleep=no_wait)
    contents = ("first", texts.of_tokens(BEYOND_BATCH), "last")
    outcomes = list(embedder.encode_passages(Passage("", content) for content in contents))
    embedder.close()
    return outcomes


def test_a_model_that_a_server_lacks_is_an_error_that_names_it(ollama):
    server, name = ollama
    choice = choose("ollama", f"{name}-l12", server.address)
    with pytest.raises(EmbeddingError, match=f"'{name}-l12'"):
        ollama_provider.load(choice, sleep=no_wait)


def test_the_tag_latest_makes_no_other_model(ollama, by_ollama: RemoteEmbedder):
    server, name = ollama
    choice = choose("ollama", f"{name}:latest", f"{server.address}/api/")
    tagged = ollama_provider.load(choice, sleep=no_wait)
    tagged.close()
    assert tagged.profile.identity == by_ollama.profile.identity
    assert tagged.encode_query("hello") @ by_ollama.encode_query("hello") > 0.999


def test_infinity_gives_the_vectors_that_the_same_model_gives_elsewhere(by_infinity, reference):
    rows, others = embed(by_infinity, list(texts.VARIED)), embed(reference, list(texts.VARIED))
    assert (np.einsum("ij,ij->i", rows, others) > 0.9999).all()


def test_infinity_keeps_the_order_of_two_hundred_passages(by_infinity, reference):
    wanted = texts.numbered(200)
    rows, others = embed(by_infinity, wanted), embed(reference, wanted)
    assert ((rows @ others.T).argmax(axis=1) == np.arange(len(wanted))).all()


def test_vectors_that_infinity_cuts_are_unit_vectors(infinity, by_infinity):
    choice = choose("openai", infinity_server.MODEL, infinity.address, dimensions=128)
    cut = openai.load(choice, sleep=no_wait)
    row, whole = cut.encode_query("hello world"), by_infinity.encode_query("hello world")
    cut.close()
    assert row.shape == (128,)
    assert np.linalg.norm(row) == pytest.approx(1, abs=1e-5)
    assert row @ (whole[:128] / np.linalg.norm(whole[:128])) > 0.9999


def test_the_address_of_infinity_with_v1_is_an_error_that_shows_what_was_tried(infinity):
    choice = choose("openai", infinity_server.MODEL, f"{infinity.address}/v1")
    with pytest.raises(EmbeddingError, match="/v1/embeddings"):
        openai.load(choice, sleep=no_wait)
