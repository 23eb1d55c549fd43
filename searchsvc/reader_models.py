"""Which vectors the reader's semantic search compares: what its many arguments about models mean.

Callers name a profile of the index, by any of its facts. Addresses, keys and files of models are taken from
callers only where the operator allows that, and are neither kept nor shown.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from searchsvc.config import Config
from searchsvc.embedding import load
from searchsvc.embedding.address import OPENAI_HOST, ollama_address, read_address
from searchsvc.embedding.base import Embedder, ModelChoice
from searchsvc.errors import AccessDenied, EmbeddingError, NotFound, QueryError
from searchsvc.index.profiles import ProfileCard
from searchsvc.profiles import is_made_by
from searchsvc.reading.hosts import check_address
from searchsvc.service import Service

_RUN_HERE = ("local", "sentence-transformers")
_NO_KEY = " "
"""Keeps the operator's own key, of the environment, from an address that a caller names."""


@dataclass(frozen=True, slots=True)
class ModelArguments:
    """What a caller says of the embedding model; empty for what is not said."""

    provider: str = ""
    model: str = ""
    """Name of the model, or identity of the profile."""
    dimension: int = 0
    lm_studio_url: str = ""
    openai_base_url: str = ""
    openai_api_key: str = field(default="", repr=False)
    embedding_ollama_url: str = ""
    embedding_ollama_model: str = ""
    local_model_path: str = ""

    @property
    def guarded(self) -> list[str]:
        """Names of the arguments that only an operator can allow."""
        names = (
            "lm_studio_url", "openai_base_url", "openai_api_key", "embedding_ollama_url", "local_model_path",
        )  # fmt: skip
        return [name for name in names if getattr(self, name)]


@dataclass(frozen=True, slots=True)
class Chosen:
    """The vectors that are compared."""

    identity: str = ""
    """Of the profile; empty for the one that serves."""
    embedder: Embedder | None = None
    """Made from the arguments; none for the model that the settings or the index name."""


def choose(service: Service, asked: ModelArguments, vector_dimension: int = 0) -> Chosen:
    """Return the profile that is meant; ``vector_dimension`` is of the caller's own vector, 0 for none.

    ``QueryError`` when a vector has another dimension than the profile, ``NotFound`` when the index has no
    such profile, ``AccessDenied`` for arguments that the operator has not allowed.
    """
    if asked.guarded:
        return _from_arguments(service, asked)
    name, provider = asked.model, asked.provider
    if asked.embedding_ollama_model:
        name, provider = name or asked.embedding_ollama_model, provider or "ollama"
    if not (name or provider or asked.dimension or vector_dimension):
        return Chosen()
    cards = service.models.cards()
    fitting = [card for card in cards if _fits(card, name, provider, asked.dimension)]
    if not (name or provider or asked.dimension):
        fitting = [_serving(service, cards)] if cards else []
    if not fitting:
        raise NotFound(f"no vectors here of {_wanted(name, provider, asked.dimension)}; {_known(cards)}")
    if len(fitting) > 1:
        fitting = [card for card in fitting if card == _serving(service, cards)] or fitting
    if len(fitting) > 1:
        raise QueryError(f"several profiles fit; give more of provider, model, dimension: {_known(fitting)}")
    if vector_dimension:
        _check_dimension(fitting[0], vector_dimension, cards)
    return Chosen(fitting[0].identity)


def _check_dimension(card: ProfileCard, dimension: int, cards: Sequence[ProfileCard]) -> None:
    own = int(card.facts["dimension"])
    if own != dimension:
        raise QueryError(
            f"query_vector has {dimension} numbers, profile {card.name} has {own} dimensions; {_known(cards)}"
        )


def _fits(card: ProfileCard, name: str, provider: str, dimension: int) -> bool:
    providers = {_plain(card.provider), _plain(card.runtime or card.provider)}
    return (
        (not name or name in (card.name, card.identity))
        and (not provider or _plain(provider) in providers)
        and (not dimension or dimension == card.facts["dimension"])
    )


def _plain(provider: str) -> str:
    return provider.lower().replace("_", "").replace("-", "").replace(" ", "")


def _serving(service: Service, cards: Sequence[ProfileCard]) -> ProfileCard:
    """Return the card of the model that answers questions; of any when that has no vectors yet."""
    active = {vault.reader.active for vault in service.vaults}
    for card in cards:
        if card.identity in active:
            return card
    for choice in service.models.choices():
        for card in cards:
            if is_made_by(card, choice):
                return card
    return cards[0]


def _wanted(name: str, provider: str, dimension: int) -> str:
    said = (f"model {name!r}" if name else "", f"provider {provider!r}" if provider else "",
            f"dimension {dimension}" if dimension else "")  # fmt: skip
    return ", ".join(part for part in said if part) or "any model"


def _known(cards: Sequence[ProfileCard]) -> str:
    rows = [f"{c.name} ({c.provider}, {c.facts['dimension']} dimensions)" for c in cards]
    return f"there are: {', '.join(rows)}" if rows else "no profile has vectors yet: run `searchsvc embed`"


def _from_arguments(service: Service, asked: ModelArguments) -> Chosen:
    config = service.config
    if not config.allow_provider_arguments:
        raise AccessDenied(
            f"{' and '.join(asked.guarded)} given: servers, keys and files of models are set by the "
            "operator, not by callers; leave them out, or ask for the setting allow_provider_arguments"
        )
    if len(servers := [name for name in asked.guarded if name != "openai_api_key"]) > 1:
        raise QueryError(f"{' and '.join(servers)} are given; give one of them")
    embedder = load(_choice(config, service, asked))
    identity = embedder.profile.identity
    cards = service.models.cards()
    if identity not in {card.identity for card in cards}:
        raise NotFound(f"no vectors here of {embedder.profile.name} as asked for; {_known(cards)}")
    return Chosen(identity, embedder)


def _choice(config: Config, service: Service, asked: ModelArguments) -> ModelChoice:
    base = ModelChoice(
        asked.model, dimensions=asked.dimension, query_seconds=config.query_seconds, key=asked.openai_api_key
    )
    if asked.local_model_path:
        file = _allowed_file(service, asked.local_model_path)
        provider = asked.provider or "local"
        if provider not in _RUN_HERE:
            raise QueryError(
                f"local_model_path is of no use to provider {provider[:80]!r}; expected "
                f"{' or '.join(_RUN_HERE)}"
            )
        is_card = file.is_file()
        return replace(
            base, provider=provider, model=str(file) if is_card or not asked.model else asked.model,
            model_path=None if is_card else file, dimensions=0 if provider == "local" else asked.dimension,
        )  # fmt: skip
    if asked.embedding_ollama_url:
        address = ollama_address(asked.embedding_ollama_url)
        provider, name = "ollama", asked.embedding_ollama_model or asked.model
        base = replace(base, key="")
    else:
        provider = "lmstudio" if asked.lm_studio_url else "openai"
        url = asked.lm_studio_url or asked.openai_base_url or f"https://{OPENAI_HOST}/v1"
        address, name = read_address(url, setting="the address"), asked.model
    if not name:
        raise QueryError(f"provider {provider} needs a model; give embedding_model")
    if not address.is_loopback:
        check_address(address.url, config)
    is_known = address.host == OPENAI_HOST or address.url == config.base_url.rstrip("/")
    key = base.key or ("" if is_known else _NO_KEY)
    return replace(base, provider=provider, model=name, base_url=address.url, key=key)


def _allowed_file(service: Service, path: str) -> Path:
    try:
        file = Path(path).expanduser().resolve()
    except (OSError, ValueError, RuntimeError) as error:  # the last for links in a ring, unknown users
        raise QueryError("local_model_path is no path") from error
    if not any(file.is_relative_to(root.path) for root in service.documents.library.roots):
        raise AccessDenied("local_model_path lies outside the allowed folders; start with --allow-path")
    if not file.exists():
        raise EmbeddingError("local_model_path leads to nothing; give the path of a model card or folder")
    return file
