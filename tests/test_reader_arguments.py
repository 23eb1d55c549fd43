"""Servers, keys and files of models as arguments: refused, or held to what the operator allows."""

import logging
import re
from contextlib import nullcontext

import pytest

from searchsvc.errors import AccessDenied, EmbeddingError, NotFound, QueryError, SearchError
from searchsvc.reader_models import ModelArguments
from tests.embedding.fault_server import FaultServer
from tests.reader_world import ReaderWorld

KEY = "sk-very-secret-0123456789"


def ask(world, model):
    return world.reader.semantic_search_documents("herons", model=model)


GUARDED = {
    "lm_studio_url": "http://127.0.0.1:1/v1",
    "openai_base_url": "http://127.0.0.1:1/v1",
    "openai_api_key": KEY,
    "embedding_ollama_url": "http://127.0.0.1:1",
    "local_model_path": "/models/x.yaml",
}


@pytest.mark.proves("R-secrets")
@pytest.mark.parametrize("name", GUARDED)
def test_servers_keys_and_files_are_refused_and_not_repeated(tmp_path, name, caplog):
    world = ReaderWorld(tmp_path)
    caplog.set_level(logging.DEBUG)
    with pytest.raises(AccessDenied, match=f"{name} given: .*allow_provider_arguments") as refused:
        ask(world, ModelArguments(**{name: GUARDED[name]}))
    assert GUARDED[name] not in str(refused.value) + caplog.text


@pytest.fixture
def server():
    with FaultServer() as server:
        yield server


def with_server(tmp_path, server, monkeypatch, **settings):
    """Return notes whose vectors a server of another name has made, and that are open to arguments."""
    monkeypatch.setenv("SEARCHSVC_API_KEY", "the-operators-own")
    world = ReaderWorld(tmp_path, model="m", provider="openai", base_url=server.url)
    world.service.embed()
    server.requests.clear()
    return ReaderWorld(tmp_path, allow_provider_arguments=True, **settings)


@pytest.mark.proves("R-secrets")
def test_a_server_that_is_allowed_is_asked_and_its_key_kept_nowhere(tmp_path, server, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    world = with_server(tmp_path, server, monkeypatch)
    model = ModelArguments(model="m", openai_base_url=server.url, openai_api_key=KEY)
    answer = ask(world, model)
    assert answer.shown
    assert "herons" in str([request.texts for request in server.embeddings()])
    assert all(request.headers["authorization"] == f"Bearer {KEY}" for request in server.embeddings())
    kept = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert KEY.encode() not in kept
    assert KEY not in caplog.text + answer.text + repr(model)


@pytest.mark.proves("R-callers-key")
@pytest.mark.proves("R-secrets")
@pytest.mark.parametrize("argument", ["openai_base_url", "lm_studio_url", "embedding_ollama_url"])
def test_the_operators_key_goes_to_no_address_that_a_caller_names(tmp_path, server, monkeypatch, argument):
    world = with_server(tmp_path, server, monkeypatch)
    for name in ("OPENAI_API_KEY", "LM_API_TOKEN", "OLLAMA_API_KEY"):
        monkeypatch.setenv(name, "the-operators-own")
    model = ModelArguments(model="m", **{argument: server.url})
    with pytest.raises(SearchError) if argument != "openai_base_url" else nullcontext():
        ask(world, model)
    assert server.requests
    assert "the-operators-own" not in str([request.headers for request in server.requests])


@pytest.mark.parametrize("argument", ["openai_base_url", "lm_studio_url", "embedding_ollama_url"])
@pytest.mark.parametrize("url", ["https://evil.example/v1", "http://10.0.0.7:1234/v1", "http://[fd00::1]/v1"])
def test_a_server_elsewhere_is_refused_unless_its_host_is_allowed(tmp_path, argument, url):
    world = ReaderWorld(tmp_path, allow_provider_arguments=True, allow_domains=("good.example",))
    with pytest.raises(SearchError, match="allow-domain") as refused:
        ask(world, ModelArguments(model="m", openai_api_key=KEY, **{argument: url}))
    assert KEY not in str(refused.value)


def test_an_allowed_host_is_asked(tmp_path, monkeypatch):
    asked = []

    def load(choice):
        asked.append(choice)
        raise EmbeddingError("asked")

    monkeypatch.setattr("searchsvc.reader_models.load", load)
    world = ReaderWorld(tmp_path, allow_provider_arguments=True, allow_domains=("good.example",))
    for url in ("https://good.example/v1", "https://eu.good.example/v1"):
        with pytest.raises(EmbeddingError, match="asked"):
            ask(world, ModelArguments(model="m", openai_base_url=url))
    assert [choice.base_url for choice in asked] == ["https://good.example/v1", "https://eu.good.example/v1"]
    assert not any(choice.allow_downloads for choice in asked)


def test_a_server_whose_vectors_are_not_here_is_refused(tmp_path, server, monkeypatch):
    world = with_server(tmp_path, server, monkeypatch)
    server.dimension = 12
    with pytest.raises(NotFound, match="no vectors here of other as asked for; there are: m"):
        ask(world, ModelArguments(model="other", openai_base_url=server.url))
    with pytest.raises(QueryError, match="needs a model"):
        ask(world, ModelArguments(openai_base_url=server.url))


@pytest.mark.parametrize(
    "url", ["ftp://x", "http://", "http://user:pw@127.0.0.1/v1", "\0", "http://127.0.0.1/?key=pw"]
)
def test_an_address_that_is_none_is_an_error_without_its_secrets(tmp_path, url):
    world = ReaderWorld(tmp_path, allow_provider_arguments=True)
    with pytest.raises(SearchError) as refused:
        ask(world, ModelArguments(model="m", openai_base_url=url, openai_api_key=KEY))
    assert not re.search(rf"{KEY}|pw\b", str(refused.value))


@pytest.mark.parametrize(
    ("path", "provider", "said"),
    [
        ("/etc/passwd", "", "outside the allowed folders"), ("{notes}/../x.yaml", "", "outside"),
        ("{notes}/none.yaml", "", "leads to nothing"), ("\0", "", "is no path"),
        ("~nobody-at-all/x", "", "no path"),
        ("{notes}/plain.md", "openai", "of no use to provider 'openai'"),
        ("{notes}/plain.md", "", "plain.md"), ("{notes}/birds", "", "no model|birds"),
    ],
)  # fmt: skip
def test_files_of_models_lie_in_allowed_folders_or_are_refused(tmp_path, path, provider, said):
    world = ReaderWorld(tmp_path, allow_provider_arguments=True)
    model = ModelArguments(provider, "m", local_model_path=path.replace("{notes}", str(world.notes)))
    with pytest.raises(SearchError, match=said):
        ask(world, model)
