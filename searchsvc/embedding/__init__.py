"""From texts to vectors: choose a model and what runs it, load it, encode questions and passages."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from searchsvc.embedding.base import Embedder, ModelChoice, Outcome, Partial, Passage, Profile
from searchsvc.embedding.cards import ModelCard, list_cards, load_card
from searchsvc.embedding.places import find_files
from searchsvc.errors import EmbeddingError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

__all__ = [
    "Embedder",
    "ModelChoice",
    "Outcome",
    "Partial",
    "Passage",
    "Profile",
    "is_provider",
    "list_cards",
    "load",
    "load_card",
    "load_embedder",
    "providers",
]

ENTRY_POINTS = "searchsvc.providers"
"""Group in which a package names a function that takes a ``ModelChoice`` and returns an ``Embedder``."""

_BUILT_IN = {
    "local": "searchsvc.embedding:load_local",
    "sentence-transformers": "searchsvc.embedding.sentences:load",
    "ollama": "searchsvc.embedding.ollama:load",
    "lmstudio": "searchsvc.embedding.openai:load_lmstudio",
    "openai": "searchsvc.embedding.openai:load",
}


def providers() -> tuple[str, ...]:
    """Return the names of all providers, those of installed packages last."""
    return *_BUILT_IN, *sorted(_of_packages().names - set(_BUILT_IN))


def is_provider(name: str) -> bool:
    """Tell whether there is a provider of this name; packages are looked through for none of ours only."""
    return name in _BUILT_IN or name in providers()


def load(choice: ModelChoice) -> Embedder:
    """Load the model that was chosen, or reach the server that runs it.

    EmbeddingError says what is missing or out of reach and the ways out; it never holds a secret.
    """
    if choice.provider in _BUILT_IN:
        module, name = _BUILT_IN[choice.provider].split(":")
        loader: Any = getattr(import_module(module), name)
    elif found := _of_packages().select(name=choice.provider):
        loader = next(iter(found)).load()
    else:
        raise EmbeddingError(f"no provider {choice.provider!r}; there are: {', '.join(providers())}")
    return cast(Embedder, loader(choice))


def load_local(choice: ModelChoice) -> Embedder:
    """Load a model that runs here by its card."""
    if choice.base_url or choice.dimensions:
        raise EmbeddingError(
            "provider 'local' takes no base_url and no dimensions; leave them out, or choose another provider"
        )
    card = load_card(choice.model).adapted(choice.query_prefix, choice.passage_prefix, choice.max_tokens)
    return _load(card, choice.model_path, choice.workers, choice.allow_downloads)


def load_embedder(
    name: str, *, model_path: Path | None = None, workers: int = 0, allow_downloads: bool = False
) -> Embedder:
    """Load the model whose card has that name, and verify its files.

    ``model_path`` is the folder with its files when they are not where they are usually looked for.
    ``workers`` threads embed passages where that is faster, 0 for one per core. EmbeddingError when
    there is no such model, its files or package are missing, or they are not what the card says.
    """
    return _load(load_card(name), model_path, workers, allow_downloads)


def _load(card: ModelCard, model_path: Path | None, workers: int, allow_downloads: bool) -> Embedder:
    if card.runtime == "use":
        from searchsvc.embedding.multilingual import UseEmbedder

        if model_path is not None:
            raise EmbeddingError(f"model {card.id!r} comes with a package and takes no path; leave it out")
        return UseEmbedder(card, workers)
    folder = find_files(card, model_path, allow_downloads=allow_downloads)
    if card.runtime == "static":
        from searchsvc.embedding.static import StaticEmbedder

        return StaticEmbedder(card, folder, workers)
    from searchsvc.embedding.local import OnnxEmbedder

    return OnnxEmbedder(card, folder, workers)


def _of_packages() -> "EntryPoints":
    from importlib.metadata import entry_points  # slow to import, and seldom used

    return entry_points(group=ENTRY_POINTS)
