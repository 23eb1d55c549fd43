"""Static models: one vector per token from a table, a text is their mean. Reads model2vec's files."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from searchsvc.embedding.base import Matrix, Passage
from searchsvc.embedding.cards import ModelCard, verify_files
from searchsvc.embedding.vectors import stack, unit
from searchsvc.embedding.windows import Windower
from searchsvc.errors import EmbeddingError

MAX_WINDOWS = 8
"""Windows a passage may have; text beyond the last one has no vector (the lexical index has it all)."""


class StaticEmbedder:
    """Means of token vectors. Implements Embedder."""

    def __init__(self, card: ModelCard, folder: Path, workers: int = 0) -> None:
        """Load the model in ``folder``.

        Passages are embedded by the calling thread, whatever ``workers`` says: handing one to another
        thread costs more than embedding it. EmbeddingError when a file is not the one the card describes.
        """
        self.profile = card.profile(verify_files(card, folder))
        self._windower = Windower(folder / "tokenizer.json", card.max_tokens, MAX_WINDOWS)
        self._unknown = self._windower.id_of("[UNK]")
        self._table = read_table(folder / card.files[0].name)

    def encode_query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector of a question, cut to one window; zeros when it has no known token."""
        rows = self._embed_windows([self._windower.query(text)])
        return rows[0] if rows else np.zeros(self.profile.dimension, dtype=np.float32)

    def encode_passages(self, passages: Iterable[Passage]) -> Iterator[Matrix]:
        """Yield the unit vectors of the windows of each passage; at most ``MAX_WINDOWS`` rows each."""
        return map(self._embed_passage, passages)

    def _embed_passage(self, passage: Passage) -> Matrix:
        return stack(self._embed_windows(self._windower.passage(passage)), self.profile.dimension)

    def _embed_windows(self, windows: list[list[int]]) -> list[NDArray[np.float32]]:
        known = ([at for at in window if at != self._unknown] for window in windows)
        # The sum points where the mean does, and integers add up the same in any order.
        sums = (self._table[window].sum(axis=0, dtype=np.int32) for window in known if window)
        return [unit(total.astype(np.float32), self.profile.dimension) for total in sums if total.any()]


def read_table(file: Path) -> NDArray[np.int8]:
    """Return the table of token vectors, int8 of shape ``(tokens, dimension)``.

    EmbeddingError when the file holds no 8-bit tensor named ``embeddings`` in the safetensors format.
    """
    content = file.read_bytes()
    try:
        start = 8 + int.from_bytes(content[:8], "little")
        tensor = json.loads(content[8:start])["embeddings"]
        begin, end = (start + offset for offset in tensor["data_offsets"])
        if tensor["dtype"] != "I8":
            raise ValueError(tensor["dtype"])
        return np.frombuffer(content[begin:end], dtype=np.int8).reshape(tensor["shape"])
    except (ValueError, KeyError, TypeError) as error:
        raise EmbeddingError(
            f"{file.name} holds no 8-bit tensor named 'embeddings' ({type(error).__name__}): it is damaged "
            "or another kind of model; put the file of the model there"
        ) from error
