"""From texts to vectors: choose a model by its card, load it, encode questions and passages."""

from pathlib import Path

from searchsvc.embedding.base import Embedder, Passage, Profile
from searchsvc.embedding.cards import find_files, list_cards, load_card
from searchsvc.errors import EmbeddingError

__all__ = ["Embedder", "Passage", "Profile", "list_cards", "load_card", "load_embedder"]


def load_embedder(name: str, *, model_path: Path | None = None, workers: int = 0) -> Embedder:
    """Load the model whose card has that name, and verify its files.

    ``model_path`` is the folder with its files when they are not where they are usually looked for.
    ``workers`` threads embed passages where that is faster, 0 for one per core. EmbeddingError when
    there is no such model, its files or package are missing, or they are not what the card says.
    """
    card = load_card(name)
    if card.provider == "use":
        from searchsvc.embedding.multilingual import UseEmbedder

        if model_path is not None:
            raise EmbeddingError(f"model {name!r} comes with a package and takes no path; leave the path out")
        return UseEmbedder(card, workers)
    folder = find_files(card, model_path)
    if card.provider == "static":
        from searchsvc.embedding.static import StaticEmbedder

        return StaticEmbedder(card, folder, workers)
    from searchsvc.embedding.local import OnnxEmbedder

    return OnnxEmbedder(card, folder, workers)
