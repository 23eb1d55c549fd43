"""OpenAI, its look-alikes, and LM Studio."""

import numpy as np
import pytest
from fault_server import (
    FaultServer,
    Reply,
    Sleeps,
    in_base64,
    in_turn,
    openai_body,
    openai_error,
    unit_of,
    vector_of,
)

from searchsvc.embedding import ModelChoice, Passage, load
from searchsvc.embedding.openai import load as load_openai
from searchsvc.embedding.openai import load_lmstudio
from searchsvc.errors import EmbeddingError

TEXTS = [Passage("", f"{word} heron") for word in ("aaa", "bbb", "ccc")]


@pytest.fixture
def opened():
    """Return a function that loads a model and closes its connections afterwards."""
    embedders = []

    def open_(server: FaultServer, loader=load_openai, model="m", sleep=None, **settings):
        choice = ModelChoice(model, base_url=server.url, **settings)
        embedders.append(loader(choice, sleep or Sleeps()))
        return embedders[-1]

    yield open_
    for embedder in embedders:
        embedder.close()


def test_a_server_without_faults_gives_unit_vectors_in_order(opened):
    with FaultServer() as server:
        embedder = opened(server)
        rows = list(embedder.encode_passages(TEXTS))
    assert [row.shape for row in rows] == [(1, 8)] * 3
    assert all(row.dtype == np.float32 for row in rows)
    assert all(
        np.allclose(row[0], unit_of(text.text), atol=1e-6) for row, text in zip(rows, TEXTS, strict=True)
    )
    assert embedder.profile.dimension == 8
    assert (embedder.profile.name, embedder.profile.provider, embedder.profile.pooling) == (
        "m",
        "openai",
        "server",
    )
    assert {tuple(sorted(request.body)) for request in server.requests} == {
        ("encoding_format", "input", "model")
    }
    assert {request.body["encoding_format"] for request in server.requests} == {"float"}
    assert server.url not in str(embedder.profile)


def test_the_registry_finds_both_providers():
    with FaultServer() as server:
        for provider in ("openai", "lmstudio"):
            embedder = load(ModelChoice("m", provider=provider, base_url=server.url))
            assert embedder.profile.provider == provider
            embedder.close()


def shuffled(request):
    body = openai_body([vector_of(text) for text in request.texts])
    body["data"].reverse()
    return Reply(body=body)


def packed(request):
    return Reply(body=openai_body([in_base64(vector_of(text)) for text in request.texts]))


def without_index(request):
    return Reply(body={"data": [{"embedding": vector_of(text)} for text in request.texts]})


def counted_from_one_in_text(request):
    body = shuffled(request).body
    for item in body["data"]:
        item["index"] = str(item["index"] + 1)
    return Reply(body=body)


@pytest.mark.parametrize("shape", [shuffled, packed, without_index, counted_from_one_in_text])
def test_vectors_are_placed_by_index_and_decoded_by_what_came(opened, shape):
    with FaultServer(shape) as server:
        rows = list(opened(server).encode_passages(TEXTS))
    for row, text in zip(rows, TEXTS, strict=True):
        assert np.allclose(row[0], unit_of(text.text), atol=1e-6)


def test_huge_and_tiny_vectors_are_brought_to_length_one(opened):
    rows = {"huge": [1e200, 0], "tiny": [0, 1e-200]}
    with FaultServer(lambda request: Reply(body=openai_body([rows.get(request.texts[0], [1, 1])]))) as server:
        embedder = opened(server)
        assert embedder.encode_query("huge").tolist() == [1, 0]
        assert embedder.encode_query("tiny").tolist() == [0, 1]


def test_dimensions_are_sent_only_when_chosen(opened):
    with FaultServer(dimension=4) as server:
        assert opened(server, dimensions=4).profile.dimension == 4
    assert server.requests[0].body["dimensions"] == 4


def test_dimensions_that_a_server_ignores_are_an_error_with_both_numbers(opened):
    with (
        FaultServer() as server,
        pytest.raises(EmbeddingError, match="of 8 dimensions, expected 128.*dimensions"),
    ):
        opened(server, dimensions=128)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (
            Reply(404, openai_error("The model `m` does not exist", "model_not_found")),
            "does not exist.*it has m-large",
        ),
        (Reply(404, {"detail": "Not Found"}), "tried http://.*/v1/embeddings.*usually ends in /v1"),
        (Reply(429, openai_error("You exceeded", "insufficient_quota")), "429: You exceeded; .*no credit"),
        (Reply(401, openai_error("Incorrect API key")), "401: Incorrect API key; check the key"),
        (Reply(200, {"error": "No models loaded"}), "No models loaded"),
        (Reply(200, {"object": "list"}), "no list of vectors"),
        (Reply(200, [{"embedding": [[1.0, 2.0]]}]), "no list of vectors"),
        (Reply(200, {"data": [{"embedding": [[1.0, 2.0]], "index": 0}]}), "expected a flat list"),
        (Reply(200, {"data": [{"embedding": ["a"], "index": 0}]}), "no list of numbers"),
        (Reply(200, {"data": [{"embedding": "???", "index": 0}]}), "no list of numbers"),
        (Reply(200, {"data": [{"embedding": [], "index": 0}]}), "an empty vector"),
        (Reply(200, {"data": [{"embedding": [0.0, 0.0], "index": 0}]}), "or is zero"),
        (Reply(200, {"data": [{"embedding": [1.0], "index": 2}]}), "index is not each place once"),
        (Reply(200, {"data": []}), "0 vectors for 1 texts"),
        (Reply(400, {"detail": "too many inputs"}), "answered 400: too many inputs"),
    ],
)
def test_a_model_that_gives_no_vector_is_an_error_that_says_why(opened, reply, message):
    with FaultServer(lambda request: reply if "/embed" in request.path else None) as server:
        server.lists["/v1/models"] = {"object": "list", "data": [{"id": "m-large"}, {"id": "other"}]}
        with pytest.raises(EmbeddingError, match=message) as error:
            opened(server)
        assert str(error.value).startswith(f"openai at {server.url}")
    assert len(server.embeddings()) == 1


def test_a_first_load_that_takes_long_is_waited_for(opened):
    sleeps = Sleeps()
    loading = Reply(503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}})
    with FaultServer(in_turn(*[loading] * 9)) as server:
        assert opened(server, sleep=sleeps).profile.dimension == 8
    assert len(server.requests) == 10


def test_a_name_is_needed():
    with pytest.raises(EmbeddingError, match="needs the name of a model"):
        load_openai(ModelChoice(" ", base_url="http://localhost:1/v1"))


V1 = {
    "models": [
        {"type": "llm", "key": "qwen3-8b", "max_context_length": 32768, "loaded_instances": []},
        {
            "type": "embedding",
            "key": "text-embedding-nomic-embed-text-v1.5",
            "max_context_length": 2048,
            "loaded_instances": [{"id": "mine", "config": {"context_length": 128}}],
        },
    ]
}
V0 = {
    "data": [
        {"id": "qwen3-8b", "type": "llm", "state": "loaded", "max_context_length": 32768},
        {"id": "text-embedding-nomic-embed-text-v1.5", "type": "embeddings", "state": "not-loaded",
         "max_context_length": 2048},
    ]
}  # fmt: skip


@pytest.mark.parametrize(
    ("path", "listed", "tokens"), [("/api/v1/models", V1, 96), ("/api/v0/models", V0, 256)]
)
@pytest.mark.parametrize("name", ["nomic-embed-text-v1.5", "text-embedding-nomic-embed-text-v1.5"])
def test_lm_studio_finds_a_model_by_either_name(opened, path, listed, tokens, name):
    with FaultServer() as server:
        server.lists[path] = listed
        embedder = opened(server, load_lmstudio, name)
        list(embedder.encode_passages(TEXTS))
    profile = embedder.profile
    assert (profile.name, profile.provider) == ("text-embedding-nomic-embed-text-v1.5", "lmstudio")
    assert profile.max_tokens == tokens
    assert profile.passage_prefix == "search_document: "
    assert all(text.startswith("search_document: ") for text in server.embeddings()[-1].texts)
    assert server.embeddings()[0].body["model"] == profile.name


def test_lm_studio_asks_with_the_quantisation_that_was_given(opened):
    with FaultServer() as server:
        server.lists["/api/v0/models"] = V0
        assert opened(server, load_lmstudio, "nomic-embed-text-v1.5@q4_k_m").profile.name.endswith("@q4_k_m")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("qwen3-8b", "as a chat model, expected one for embeddings.*it has text-embedding-nomic"),
        ("nomic-embd-text", "no model 'nomic-embd-text'; it has text-embedding-nomic"),
    ],
)
def test_lm_studio_is_not_asked_for_what_it_would_load_as_a_chat_model(opened, name, message):
    with FaultServer() as server:
        server.lists["/api/v0/models"] = V0
        with pytest.raises(EmbeddingError, match=message):
            opened(server, load_lmstudio, name)
    assert not server.embeddings()


@pytest.mark.parametrize(
    "reply", [Reply(200, {"error": "Unexpected endpoint"}), Reply(200, b"<html>"), Reply(500)]
)
def test_a_list_that_cannot_be_read_is_no_failure(opened, reply):
    with FaultServer(lambda request: reply if request.method == "GET" else None) as server:
        assert opened(server, load_lmstudio).profile.name == "m"


def test_lm_studio_gets_a_list_of_strings_and_no_dimensions(opened):
    with FaultServer() as server:
        list(opened(server, load_lmstudio).encode_passages(TEXTS))
    for request in server.embeddings():
        assert "dimensions" not in request.body
        assert all(isinstance(text, str) for text in request.body["input"])


def test_lm_studio_that_is_off_is_named_with_how_to_start_it():
    with FaultServer() as server:
        url = server.url
    with pytest.raises(EmbeddingError, match=f"lmstudio at {url} is not reachable; .*`lms server start`"):
        load_lmstudio(ModelChoice("m", base_url=url), Sleeps())


@pytest.mark.parametrize("listed", [[], {"models": "x"}, {"models": [{"key": "m", "loaded_instances": [1]}]}])
def test_lists_of_any_shape_crash_nothing(opened, listed):
    with FaultServer() as server:
        server.lists["/api/v1/models"] = listed
        assert opened(server, load_lmstudio).profile.name == "m"
