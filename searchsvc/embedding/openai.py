"""OpenAI and all servers that speak as it does; LM Studio among them, whose lists of models tell more."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from searchsvc.embedding.address import OPENAI_HOST, read_address, read_key
from searchsvc.embedding.answers import Service, Wire, in_place
from searchsvc.embedding.base import ModelChoice
from searchsvc.embedding.endpoint import Endpoint, Sleep, wait
from searchsvc.embedding.faults import Kind, ServerFault
from searchsvc.embedding.names import close_names
from searchsvc.embedding.remote import LOCAL_LOAD, OPENAI_LOAD, Found, RemoteEmbedder
from searchsvc.errors import EmbeddingError

OPENAI_URL = "https://api.openai.com/v1"
LMSTUDIO_URL = "http://localhost:1234/v1"
LIST_SECONDS = 5.0
_PREFIX = "text-embedding-"


def load(choice: ModelChoice, sleep: Sleep = wait) -> RemoteEmbedder:
    """Return a model at OpenAI or a compatible server.

    EmbeddingError when the server cannot be asked, or has no such model.
    """
    endpoint = _endpoint("openai", choice, OPENAI_URL)
    is_openai = endpoint.address.host == OPENAI_HOST
    # Many compatible servers ignore or refuse base64, and none needs it.
    wire = _wire(choice.model, choice.dimensions, "base64" if is_openai else "float")
    load_ = OPENAI_LOAD if is_openai else LOCAL_LOAD
    try:
        return RemoteEmbedder(choice, Service(endpoint, wire), Found(choice.model, "openai"), load_, sleep)
    except ServerFault as fault:
        if fault.status != 404:
            raise
        raise EmbeddingError(f"{fault}{_names_there(endpoint, choice.model)}") from fault


def load_lmstudio(choice: ModelChoice, sleep: Sleep = wait) -> RemoteEmbedder:
    """Return a model at LM Studio, found by its id with or without ``text-embedding-``.

    EmbeddingError when the server cannot be asked, or has no such embedding model: a chat model is never
    asked for vectors, because LM Studio would load it anew each time.
    """
    endpoint = _endpoint("lmstudio", choice, LMSTUDIO_URL)
    found = Found(choice.model, "lmstudio")
    listed = _list_lmstudio(endpoint)
    if listed:
        model = _find_model(choice.model, listed, endpoint)
        found = replace(found, name=model.id, max_tokens=model.max_tokens)
    service = Service(endpoint, _wire(found.name, choice.dimensions, "float"))
    return RemoteEmbedder(choice, service, found, LOCAL_LOAD, sleep)


def _endpoint(provider: str, choice: ModelChoice, usual: str) -> Endpoint:
    if not choice.model.strip():
        raise EmbeddingError(f"provider {provider!r} needs the name of a model; give it as model")
    address = read_address(choice.base_url or usual)
    return Endpoint(provider, address, read_key(provider, address, choice.key_file, choice.key))


def _wire(model: str, dimensions: int, encoding: str) -> Wire:
    fixed: dict[str, Any] = {"model": model, "encoding_format": encoding}
    if dimensions:
        fixed["dimensions"] = dimensions

    def body(texts: Sequence[str]) -> dict[str, Any]:
        return {**fixed, "input": list(texts)}

    def vectors(answer: Any) -> list[Any] | None:
        data = answer.get("data") if isinstance(answer, dict) else None
        return in_place(data) if isinstance(data, list) else None

    return Wire("/embeddings", body, vectors)


def _names_there(endpoint: Endpoint, model: str) -> str:
    """Return the close names of a server's models for an error; empty when it tells none."""
    try:
        answer = endpoint.ask("GET", f"{endpoint.address.url}/models", seconds=LIST_SECONDS)
    except EmbeddingError:
        return ""
    names = [entry["id"] for entry in _entries(answer, "data") if isinstance(entry.get("id"), str)]
    return f"; {close_names(model, names)}" if names else ""


def _entries(answer: Any, name: str) -> list[dict[str, Any]]:
    listed = answer.get(name) if isinstance(answer, dict) else None
    return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []


@dataclass(frozen=True, slots=True)
class _Model:
    """A model that LM Studio lists."""

    id: str
    is_for_embedding: bool
    max_tokens: int
    other_ids: tuple[str, ...] = ()


def _list_lmstudio(endpoint: Endpoint) -> list[_Model]:
    """Return what LM Studio lists; nothing when it does not tell, an error when nobody is there."""
    root = re.sub(r"/(?:api/)?v[01]$", "", endpoint.address.url)
    for path, read in (("/api/v1/models", _read_v1), ("/api/v0/models", _read_v0)):
        try:
            models = list(read(endpoint.ask("GET", root + path, seconds=LIST_SECONDS)))
        except ServerFault as fault:
            if fault.kind is Kind.UNREACHABLE or fault.status in (401, 403):
                raise
            continue
        if models:
            return models
    return []


def _read_v1(answer: Any) -> Iterator[_Model]:
    for entry in _entries(answer, "models"):
        if isinstance(entry.get("key"), str):
            loaded = _entries(entry, "loaded_instances")
            configs = [one["config"] for one in loaded if isinstance(one.get("config"), dict)]
            contexts = [_count(config.get("context_length")) for config in configs]
            context = min(filter(None, contexts), default=0) or _count(entry.get("max_context_length"))
            ids = tuple(one["id"] for one in loaded if isinstance(one.get("id"), str))
            yield _Model(entry["key"], _is_for_embedding(entry), context, ids)


def _read_v0(answer: Any) -> Iterator[_Model]:
    for entry in _entries(answer, "data"):
        if isinstance(entry.get("id"), str):
            context = _count(entry.get("loaded_context_length")) or _count(entry.get("max_context_length"))
            yield _Model(entry["id"], _is_for_embedding(entry), context)


def _is_for_embedding(entry: dict[str, Any]) -> bool:
    """Tell embedding models: version 1 calls them ``embedding``, version 0 ``embeddings``."""
    return str(entry.get("type", "embedding")).startswith("embedding")


def _count(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0


def _find_model(wanted: str, models: list[_Model], endpoint: Endpoint) -> _Model:
    plain = wanted.partition("@")[0]
    for name in (wanted, _PREFIX + wanted, plain, _PREFIX + plain, plain.removeprefix(_PREFIX)):
        for model in models:
            if name.lower() not in {known.lower() for known in (model.id, *model.other_ids)}:
                continue
            if not model.is_for_embedding:
                names = [other.id for other in models if other.is_for_embedding]
                raise EmbeddingError(
                    f"{endpoint.where} lists {wanted!r} as a chat model, expected one for embeddings (its "
                    f"type can be changed in LM Studio); {close_names(wanted, names)}"
                )
            # What was given with a quantisation, or names one instance, is asked for as it was given.
            exact = "@" in wanted or wanted in model.other_ids
            return replace(model, id=wanted) if exact else model
    names = [model.id for model in models if model.is_for_embedding]
    raise EmbeddingError(
        f"{endpoint.where} has no model {wanted!r}; {close_names(wanted, names)}, or get it with "
        f"`lms get {wanted}`"
    )
