"""Which embedding models a service goes by: the one chosen, or the one the index was made with."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from searchsvc.config import Config
from searchsvc.embedding import is_provider, load, load_card, providers
from searchsvc.embedding.address import read_address
from searchsvc.embedding.base import PROBE, Embedder, ModelChoice, Profile
from searchsvc.embedding.cards import SUFFIXES
from searchsvc.embedding.slot import ModelSlot
from searchsvc.errors import ConfigError, EmbeddingError
from searchsvc.index.profiles import SAME, ProfileCard
from searchsvc.vault import Vault

AUTO, NONE = "auto", "none"
DEFAULT_MODEL = "all-minilm-l6-v2-int8"
_REMEMBERED = ("model", "provider", "base_url", "dimensions", "query_prefix", "passage_prefix", "max_tokens")
"""Fields of a choice that are kept beside the vectors; the others belong to the machine."""
_PREFIXES = ("query_prefix", "passage_prefix")
"""Fields of which the empty text is a choice: no prefix, whatever the model was trained with."""


class Models:
    """The models of a service; each is loaded once. Safe to use from several threads."""

    def __init__(self, config: Config, vaults: Sequence[Vault]) -> None:
        """Raise ``ConfigError`` or ``EmbeddingError`` for a model of the settings that cannot exist.

        One that an index names may have gone since: that is said when it is loaded, and words still serve.
        """
        self._config = config
        self._vaults = vaults
        self._slots: dict[ModelChoice, ModelSlot] = {}
        self._chosen: dict[tuple[str, ...], list[ModelChoice]] = {}
        self._lock = threading.Lock()
        if not is_provider(config.provider):
            raise ConfigError(f"no provider {config.provider!r}; there are: {', '.join(providers())}")
        for choice in self.choices():
            if choice.provider == "local" and choice.model in (config.model, config.instant_model):
                load_card(choice.model)

    @property
    def is_explicit(self) -> bool:
        """Whether somebody named the model, so that it becomes the one in use once it is complete."""
        return self._config.model not in (AUTO, NONE)

    def choices(self, active: Sequence[str] | None = None) -> list[ModelChoice]:
        """Return the models in order of preference; ``active`` are the profiles in use, one a root."""
        if self._config.model == NONE:
            return []
        key = tuple(active if active is not None else [vault.reader.active for vault in self._vaults])
        with self._lock:
            if key not in self._chosen:
                config, models = self._config, [self._main(key)]
                if config.instant_model not in (NONE, models[0].model):
                    models.append(ModelChoice(config.instant_model, workers=config.workers))
                self._chosen[key] = models
            return self._chosen[key]

    def slots(self, active: Sequence[str] | None = None) -> list[ModelSlot]:
        """Return the places of the models in order of preference."""
        return [self._slot(choice) for choice in self.choices(active)]

    def named(self, name: str) -> ModelSlot | None:
        """Return the place of the model of that name or identity, configured or kept in an index."""
        for choice in self.choices():
            if choice.model == name:
                return self._slot(choice)
        for card in self.cards():
            if name in (card.name, card.identity):
                return self._slot(self.remembered(card))
        return None

    def cards(self) -> list[ProfileCard]:
        """Return the cards of all profiles that have vectors in any root, by name."""
        found = {
            identity: card
            for vault in self._vaults
            for identity in vault.reader.profiles()
            if (card := vault.reader.card(identity))
        }
        return sorted(found.values(), key=lambda card: (card.name, card.identity))

    def remembered(self, card: ProfileCard) -> ModelChoice:
        """Return how the model of a profile is loaded again: as it was, whatever the settings are now."""
        known: Mapping[str, Any] = {name: card.choice[name] for name in _REMEMBERED if name in card.choice}
        model, provider = str(known.get("model", card.name)), known.get("provider", "local")
        is_meant = provider != "local" and self._config.provider in ("local", provider)
        free = ModelChoice(model, provider, base_url=self._config.base_url if is_meant else "")
        vectors = {name: getattr(free, name) for name in _REMEMBERED}
        return replace(self._configured(model), **{**vectors, **known})

    def _main(self, active: Sequence[str]) -> ModelChoice:
        config = self._config
        if config.model != AUTO:
            return self._configured(config.model)
        for identity, vault in zip(active, self._vaults, strict=True):
            card = vault.reader.card(identity) if identity else None
            if card is not None and config.provider in ("local", card.choice.get("provider")):
                return self.remembered(card)
        if config.provider != "local":
            raise ConfigError(f"provider {config.provider!r} needs a model: add --model NAME, or set `model`")
        return self._configured(DEFAULT_MODEL)

    def _configured(self, model: str) -> ModelChoice:
        config = self._config
        return ModelChoice(
            model=model,
            provider=config.provider,
            base_url=config.base_url,
            dimensions=config.dimensions,
            model_path=config.model_path if config.model in (AUTO, model) else None,
            query_prefix=config.query_prefix,
            passage_prefix=config.passage_prefix,
            max_tokens=config.window_tokens,
            batch_texts=config.batch_texts,
            concurrency=config.concurrency,
            request_seconds=config.request_seconds,
            query_seconds=config.query_seconds,
            key_file=config.api_key_file,
            workers=config.workers,
            allow_downloads=config.allow_downloads,
        )

    def _slot(self, choice: ModelChoice) -> ModelSlot:
        with self._lock:
            if choice not in self._slots:
                self._slots[choice] = ModelSlot(choice, partial(self._load, choice))
            return self._slots[choice]

    def _load(self, choice: ModelChoice) -> Embedder:
        """Load a model and compare it with what made the vectors that are kept under its name.

        EmbeddingError for an address that neither is on this machine nor in the settings: whoever wrote
        the index would decide where questions and keys are sent.
        """
        if choice.base_url not in ("", self._config.base_url) and not _is_here(choice.base_url):
            raise EmbeddingError(
                f"model {choice.model} was used at {choice.base_url}; to ask that address again put "
                f"`base_url: {choice.base_url}` into the settings"
            )
        embedder = load(choice)
        card = make_card(embedder, choice)
        for vault in self._vaults:
            check(card, vault.reader.card(card.identity))
        return embedder


def make_card(embedder: Embedder, choice: ModelChoice) -> ProfileCard:
    """Return the card of the vectors that an embedder makes."""
    facts = asdict(embedder.profile)
    return ProfileCard(embedder.profile.identity, facts, known_of(choice), embedder.encode_query(PROBE))


def known_of(choice: ModelChoice) -> dict[str, Any]:
    """Return what of a choice is kept beside the vectors, to load the model again."""
    known = {name: getattr(choice, name) for name in _REMEMBERED}
    if choice.provider == "local" and choice.model.endswith(SUFFIXES):
        # Somebody's own model card; the next process may run in another folder.
        known["model"] = str(Path(choice.model).expanduser().absolute())
    return {name: value for name, value in known.items() if value or (value == "" and name in _PREFIXES)}


def profile_of(card: ProfileCard) -> Profile:
    """Return the profile that a card describes."""
    facts = {**card.facts, "languages": tuple(card.facts["languages"])}
    return Profile(**facts)


def check(card: ProfileCard, kept: ProfileCard | None) -> None:
    """Raise ``EmbeddingError`` when a model gives other vectors than those kept under the same identity."""
    cosine = kept.recognises(card.probe) if kept else 1.0
    # Written so that a cosine that is no number fails as well.
    if not cosine >= SAME:
        where = f" at {card.choice['base_url']}" if card.choice.get("base_url") else ""
        raise EmbeddingError(
            f"model {card.name}{where} gives other vectors than those kept as {card.identity}: cosine "
            f"{cosine:.4f} for the same text, expected at least {SAME}. Another model answers to this name "
            f"now: bring the old one back, or run `searchsvc profiles drop {card.identity}` and embed again"
        )


def _is_here(url: str) -> bool:
    try:
        return read_address(url).is_loopback
    except EmbeddingError:
        return False
