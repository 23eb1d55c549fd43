"""Models that Ollama runs. Its digest of a model tells when a name means other weights than before."""

import re
from collections.abc import Sequence
from typing import Any

from searchsvc.embedding.address import ollama_address, read_key
from searchsvc.embedding.answers import Service, Wire
from searchsvc.embedding.base import ModelChoice
from searchsvc.embedding.endpoint import OPENING, Endpoint, Sleep, again, wait
from searchsvc.embedding.faults import Kind, ServerFault
from searchsvc.embedding.names import close_names
from searchsvc.embedding.remote import LOCAL_LOAD, Found, RemoteEmbedder
from searchsvc.errors import EmbeddingError

LIST_SECONDS = 10.0
LATEST = ":latest"
NOT_FOUND = 404


def load(choice: ModelChoice, sleep: Sleep = wait) -> RemoteEmbedder:
    """Return a model at an Ollama server.

    A server older than 0.3.4 is asked in its own way, one text at a time; such vectors have a profile of
    their own. EmbeddingError when the server cannot be asked, or has no such model.
    """
    wanted = choice.model.strip().removesuffix(LATEST)
    if not wanted:
        raise EmbeddingError("provider 'ollama' needs the name of a model; give it as model")
    address = ollama_address(choice.base_url)
    endpoint = Endpoint("ollama", address, read_key("ollama", address, choice.key_file, choice.key))
    listed = _list_models(endpoint, sleep)
    entry = _find_model(wanted, listed, endpoint) if listed is not None else {}
    # As the server spells it: one model has one profile, however it was asked for.
    wanted = str(entry.get("name") or wanted).removesuffix(LATEST)
    revision = str(entry.get("digest") or "").removeprefix("sha256:")
    context = _context_length(endpoint, wanted, entry)
    try:
        found = Found(wanted, "ollama", revision, context)
        return RemoteEmbedder(choice, Service(endpoint, _wire(wanted, choice)), found, LOCAL_LOAD, sleep)
    except ServerFault as fault:
        if fault.status != NOT_FOUND or "page not found" not in str(fault):
            raise _with_names(fault, wanted, listed) from fault
    if choice.dimensions:
        raise EmbeddingError(
            f"{endpoint.where} is older than 0.3.4 and cannot cut vectors to {choice.dimensions} dimensions; "
            "upgrade it, or leave the setting dimensions out"
        )
    found = Found(wanted, "ollama-embeddings", revision, context)
    return RemoteEmbedder(choice, Service(endpoint, _old_wire(wanted)), found, LOCAL_LOAD, sleep)


def _wire(model: str, choice: ModelChoice) -> Wire:
    fixed: dict[str, Any] = {"model": model, "truncate": True}
    if choice.dimensions:
        fixed["dimensions"] = choice.dimensions

    def body(texts: Sequence[str]) -> dict[str, Any]:
        return {**fixed, "input": list(texts)}

    def vectors(answer: Any) -> list[Any] | None:
        rows = answer.get("embeddings") if isinstance(answer, dict) else None
        return rows if isinstance(rows, list) else None

    return Wire("/api/embed", body, vectors)


def _old_wire(model: str) -> Wire:
    def body(texts: Sequence[str]) -> dict[str, Any]:
        return {"model": model, "prompt": texts[0]}

    def vectors(answer: Any) -> list[Any] | None:
        row = answer.get("embedding") if isinstance(answer, dict) else None
        return [row] if isinstance(row, list) else None

    return Wire("/api/embeddings", body, vectors, max_texts=1)


def _list_models(endpoint: Endpoint, sleep: Sleep) -> list[dict[str, Any]] | None:
    """Return the models that a server lists; none when it keeps no such list.

    A list that only fails to come today is an error: without its digest a model would get another profile,
    and everything would be embedded again.
    """
    url = f"{endpoint.address.url}/api/tags"
    try:
        answer = again(OPENING, lambda: endpoint.ask("GET", url, seconds=LIST_SECONDS), sleep)
    except ServerFault as fault:
        if fault.kind is Kind.SYSTEMIC and fault.status in (200, 404, 405, 501):
            return None
        raise
    listed = answer.get("models") if isinstance(answer, dict) else None
    return [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else None


def _find_model(wanted: str, listed: list[dict[str, Any]], endpoint: Endpoint) -> dict[str, Any]:
    key = _key(wanted)
    for entry in listed:
        if key in (_key(entry.get("name")), _key(entry.get("model"))):
            return entry
    raise EmbeddingError(
        f"{endpoint.where} has no model {wanted!r}; {close_names(wanted, _names(listed))}, or get it with "
        f"`ollama pull {wanted}`"
    )


def _key(name: Any) -> str:
    """Return a name as names are compared: a name without a tag means the latest."""
    return str(name or "").lower().removesuffix(LATEST)


def _names(listed: list[dict[str, Any]]) -> list[str]:
    """Return the names of the models that embed, or of all where a server does not tell which do."""
    tells = any("capabilities" in entry for entry in listed)
    names = [
        str(entry.get("name") or entry.get("model") or "").removesuffix(LATEST)
        for entry in listed
        if not tells or "embedding" in str(entry.get("capabilities"))
    ]
    return [name for name in names if name]


def _with_names(fault: ServerFault, wanted: str, listed: list[dict[str, Any]] | None) -> EmbeddingError:
    """Return a fault, with the names there are and how to get a model where the model is what is missing."""
    if fault.status != NOT_FOUND or not re.search(r"\bmodel\b.*\bnot found\b", str(fault)):
        return fault
    names = close_names(wanted, _names(listed)) if listed else "see `ollama list`"
    return EmbeddingError(f"{fault}; {names}, or get it with `ollama pull {wanted}`")


def _context_length(endpoint: Endpoint, model: str, entry: dict[str, Any]) -> int:
    """Return how many tokens a model takes, the least of what the server tells; 0 when it does not."""
    details = entry.get("details")
    lengths = [details.get("context_length")] if isinstance(details, dict) else []
    try:
        shown = endpoint.ask(
            "POST", f"{endpoint.address.url}/api/show", {"model": model}, seconds=LIST_SECONDS
        )
    except ServerFault:
        shown = None
    if isinstance(shown, dict):
        info = shown.get("model_info")
        if isinstance(info, dict):
            lengths += [value for name, value in info.items() if name.endswith(".context_length")]
        chosen = re.search(r"^num_ctx\s+(\d{1,9})\s*$", str(shown.get("parameters") or ""), re.MULTILINE)
        lengths += [int(chosen[1])] if chosen else []
    return min((length for length in lengths if type(length) is int and length > 0), default=0)
