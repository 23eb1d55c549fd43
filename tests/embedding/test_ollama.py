"""Ollama, new and old."""

import socket

import numpy as np
import pytest
from fault_server import FaultServer, Reply, Sleeps, in_turn, unit_of, where_text

from searchsvc.embedding import ModelChoice, Partial, Passage, load
from searchsvc.embedding.ollama import load as load_ollama
from searchsvc.errors import EmbeddingError

TAGS = {
    "models": [
        {"name": "llama3:8b", "model": "llama3:8b", "digest": "aa", "capabilities": ["completion"]},
        {"name": "nomic-embed-text:latest", "model": "nomic-embed-text:latest", "digest": "sha256:beef",
         "capabilities": ["embedding"], "details": {"context_length": 2048}},
        {"name": "all-minilm:latest", "digest": "cafe", "details": {"family": "bert"}},
    ]
}  # fmt: skip
PLAIN_404 = Reply(404, b"404 page not found", {"Content-Type": "text/plain"})


@pytest.fixture
def opened():
    embedders = []

    def open_(server: FaultServer, model="nomic-embed-text", sleep=None, **settings):
        server.lists.setdefault("/api/tags", TAGS)
        choice = ModelChoice(model, provider="ollama", base_url=server.root, **settings)
        embedders.append(load_ollama(choice, sleep or Sleeps()))
        return embedders[-1]

    yield open_
    for embedder in embedders:
        embedder.close()


@pytest.mark.parametrize("name", ["nomic-embed-text", "nomic-embed-text:latest", "Nomic-Embed-Text"])
def test_a_model_is_found_with_and_without_its_tag_and_known_by_its_digest(opened, name):
    with FaultServer() as server:
        profile = opened(server, name).profile
    assert (profile.provider, profile.revision, profile.dimension) == ("ollama", "beef", 8)
    assert profile.name == "nomic-embed-text"
    assert (profile.query_prefix, profile.passage_prefix) == ("search_query: ", "search_document: ")


def test_questions_and_passages_get_their_prefixes_and_chosen_ones_win(opened):
    with FaultServer() as server:
        embedder = opened(server)
        assert np.allclose(embedder.encode_query("heron"), unit_of("search_query: heron"), atol=1e-6)
        (rows,) = embedder.encode_passages([Passage("Birds", "heron")])
        assert np.allclose(rows[0], unit_of("search_document: Birds\nheron"), atol=1e-6)
        mine = opened(server, query_prefix="", passage_prefix="p: ")
        assert np.allclose(mine.encode_query("heron"), unit_of("heron"), atol=1e-6)
        assert mine.profile.identity != embedder.profile.identity
    assert server.embeddings()[-1].body["truncate"] is True


def test_an_unknown_model_is_an_error_with_close_names_and_how_to_get_it(opened):
    with FaultServer() as server:
        with pytest.raises(
            EmbeddingError, match="'nomic-embed'; it has nomic-embed-text, .*`ollama pull nomic-embed`"
        ):
            opened(server, "nomic-embed")
    assert not server.embeddings()


def test_a_model_that_went_missing_meanwhile_is_the_same_error(opened):
    reply = Reply(404, {"error": 'model "nomic-embed-text" not found, try pulling it first'})
    with (
        FaultServer(in_turn(reply)) as server,
        pytest.raises(EmbeddingError, match="not found.*`ollama pull nomic"),
    ):
        opened(server)
    assert [request.path for request in server.embeddings()] == ["/api/embed"]


@pytest.mark.parametrize(
    ("model", "shown", "tokens"),
    [
        ("nomic-embed-text", {"model_info": {"nomic-bert.context_length": 2048}}, 256),
        (
            "all-minilm",
            {"model_info": {"bert.context_length": 512}, "parameters": "num_ctx   256\nstop x"},
            192,
        ),
        ("all-minilm", {"model_info": {"bert.context_length": 128}}, 96),
        ("nomic-embed-text", {"error": "what?"}, 256),
    ],
)
def test_a_window_is_no_longer_than_the_context_with_a_margin(opened, model, shown, tokens):
    with FaultServer() as server:
        server.lists["/api/show"] = shown
        assert opened(server, model).profile.max_tokens == tokens
        assert opened(server, model, max_tokens=64).profile.max_tokens == 64


def test_an_old_server_is_asked_one_text_at_a_time_and_never_mixed_with_new_ones(opened):
    with FaultServer(lambda request: PLAIN_404 if request.path == "/api/embed" else None) as server:
        embedder = opened(server)
        rows = list(embedder.encode_passages([Passage("", "aaa"), Passage("", "bbb")]))
    assert embedder.profile.provider == "ollama-embeddings"
    assert np.allclose(rows[1][0], unit_of("search_document: bbb"), atol=1e-6)
    assert {
        request.body["prompt"] for request in server.embeddings() if request.path == "/api/embeddings"
    } >= {
        "search_document: aaa",
        "search_document: bbb",
    }


def test_an_old_server_cannot_cut_vectors(opened):
    with FaultServer(lambda request: PLAIN_404 if request.path == "/api/embed" else None) as server:
        with pytest.raises(EmbeddingError, match="older than 0.3.4 and cannot cut vectors to 4"):
            opened(server, dimensions=4)


def test_dimensions_beyond_the_models_are_an_error_with_both_numbers(opened):
    with FaultServer() as server, pytest.raises(EmbeddingError, match="of 8 dimensions, expected 16"):
        opened(server, dimensions=16)


def test_a_server_without_a_list_has_no_digest(opened):
    with FaultServer(lambda request: PLAIN_404 if request.path == "/api/tags" else None) as server:
        assert opened(server, "anything").profile.revision == ""


def test_a_list_that_fails_to_come_is_asked_for_again_for_its_digest(opened):
    replies = iter([Reply(503, b"busy"), Reply(500)])
    with FaultServer(lambda request: next(replies, None) if request.path == "/api/tags" else None) as server:
        assert opened(server).profile.revision == "beef"


def test_a_server_that_is_off_is_named_at_once(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    sleeps = Sleeps()
    monkeypatch.setenv("OLLAMA_HOST", f"0.0.0.0:{port}")
    with pytest.raises(
        EmbeddingError, match=f"ollama at http://127.0.0.1:{port} is not reachable; .*`ollama serve`"
    ):
        load_ollama(ModelChoice("nomic-embed-text", provider="ollama"), sleeps)
    assert len(sleeps.seconds) <= 1
    assert sum(sleeps.seconds) <= 1


def test_the_registry_finds_it():
    with FaultServer() as server:
        server.lists["/api/tags"] = TAGS
        embedder = load(ModelChoice("all-minilm", provider="ollama", base_url=f"{server.root}/v1"))
        assert embedder.profile.revision == "cafe"
        embedder.close()


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (500, "failed to encode response: json: unsupported value: NaN"),
        (400, "embedding contains NaN or Inf values"),
    ],
)
def test_one_text_without_a_vector_costs_itself_only(opened, status, message):
    texts = [Passage("", f"{name} text") for name in ("aaa", "bbb", "ccc")]
    with FaultServer(where_text("bbb", Reply(status, {"error": message}))) as server:
        first, second, third = opened(server).encode_passages(texts)
    assert first.shape == third.shape == (1, 8)
    assert isinstance(second, Partial)
    assert second.rows.shape == (0, 8)
    assert f"ollama at {server.root} answered {status}: {message}" in second.reason
    assert len(server.requests) <= 20


def test_a_text_beyond_the_context_is_shortened_and_reported(opened):
    def limited(request):
        too_long = any(len(text) > 200 for text in request.texts)
        return Reply(400, {"error": "the input length exceeds the context length"}) if too_long else None

    with FaultServer(limited) as server:
        text = Passage("", "=:{}$ " * 30 + "wordy " * 60)
        long, short = opened(server).encode_passages([text, Passage("", "aaa")])
    assert isinstance(long, Partial)
    assert long.rows.shape == (2, 8)
    assert "only the first" in long.reason
    assert "exceeds the context length" in long.reason
    assert short.shape == (1, 8)
    assert len(server.requests) <= 40


@pytest.mark.parametrize(
    "tags", [{}, [], {"models": None}, {"models": ["x", {"name": 3, "details": "y", "capabilities": 1}]}]
)
def test_lists_of_any_shape_crash_nothing(opened, tags):
    with FaultServer() as server:
        server.lists |= {"/api/tags": tags, "/api/show": [1]}
        try:
            assert opened(server).profile.revision == ""
        except EmbeddingError as error:
            assert "has no model" in str(error)
