"""Static models: one vector per token from a table, a text is their mean. Reads model2vec's files."""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchsvc.embedding.base import Matrix, Passage
from searchsvc.embedding.cards import ModelCard, verify_files
from searchsvc.embedding.vectors import stack, unit
from searchsvc.embedding.windows import CHARACTERS_PER_TOKEN, clean, cut_windows, load_tokenizer
from searchsvc.errors import EmbeddingError

MAX_WINDOWS = 8
"""Windows a passage may have; text beyond the last one has no vector (the lexical index has it all)."""
_MAX_REMEMBERED = 300_000
_LONG_WORD = 40
"""Characters of a word that hardly comes again: an address, or a sentence in a script without blanks."""
_PIECE = re.compile(r"[A-Za-z0-9]+|[!-~]")


class StaticEmbedder:
    """Means of token vectors. Implements Embedder."""

    def __init__(self, card: ModelCard, folder: Path, workers: int = 0) -> None:
        """Load the model in ``folder``.

        Passages are embedded by the calling thread, whatever ``workers`` says: handing one to another
        thread costs more than embedding it. EmbeddingError when a file is not the one the card describes.
        """
        self.profile = card.profile(verify_files(card, folder))
        self._tokens = _Tokens(folder / "tokenizer.json")
        self._table = read_table(folder / card.files[0].name)

    def encode_query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector of a question, cut to one window; zeros when it has no known token."""
        ids = self._tokens.of(clean(text), self.profile.max_tokens)
        rows = self._embed_windows([ids] if ids else [])
        return rows[0] if rows else np.zeros(self.profile.dimension, dtype=np.float32)

    def encode_passages(self, passages: Iterable[Passage]) -> Iterator[Matrix]:
        """Yield the unit vectors of the windows of each passage; at most ``MAX_WINDOWS`` rows each."""
        return map(self._embed_passage, passages)

    def _embed_passage(self, passage: Passage) -> Matrix:
        return stack(self._embed_windows(self._windows(passage)), self.profile.dimension)

    def _windows(self, passage: Passage) -> list[list[int]]:
        """Return the ids of each window; each begins with the context, cut to a third of the window."""
        room = self.profile.max_tokens
        head = self._tokens.of(clean(passage.context), room // 3)
        room -= len(head)
        body = self._tokens.of(clean(passage.text), MAX_WINDOWS * room)
        if len(body) <= room:
            return [head + body] if body else []
        # No token is a part of a character, so a window may end after any.
        spans = cut_windows([(at, at + 1) for at in range(len(body))], room, MAX_WINDOWS)
        return [head + body[start:end] for start, end in spans]

    def _embed_windows(self, windows: list[list[int]]) -> list[NDArray[np.float32]]:
        # The sum points where the mean does, and integers add up the same in any order.
        sums = (self._table.take(window, axis=0).sum(axis=0, dtype=np.int32) for window in windows)
        return [unit(total.astype(np.float32), self.profile.dimension) for total in sums if total.any()]


class _Tokens:
    """Known tokens of texts, from those of words that were seen before: ten times as fast as the library."""

    def __init__(self, file: Path) -> None:
        self._tokenizer: Any = load_tokenizer(file)
        self._unknown = self._tokenizer.token_to_id("[UNK]")
        self._known: dict[str, list[int]] = {}
        # Only of this rule is it sure that words do not change each other's tokens.
        rule = json.loads(self._tokenizer.to_str())["pre_tokenizer"] or {}
        self._by_words = rule.get("type") == "BertPreTokenizer"

    def of(self, text: str, limit: int) -> list[int]:
        """Return the ids of the known tokens of a text, at most so many; what is beyond is not looked at."""
        text = text[: limit * CHARACTERS_PER_TOKEN]
        if not self._by_words:
            return self._encode(text)[:limit]
        if len(self._known) > _MAX_REMEMBERED:
            self._known.clear()
        ids: list[int] = []
        known = self._known
        for word in text.split():
            found = known.get(word)
            if found is None:
                found = self._of_word(word)
                if len(word) <= _LONG_WORD:
                    known[word] = found
            ids += found
        return ids[:limit]

    def _of_word(self, word: str) -> list[int]:
        """Return the ids of a word; signs in ASCII are tokens of their own whatever stands beside them."""
        pieces = _PIECE.findall(word) if word.isascii() and word.isprintable() else [word]
        ids: list[int] = []
        for piece in pieces:
            found = self._known.get(piece)
            if found is None:
                found = self._encode(piece)
                if len(piece) <= _LONG_WORD:
                    self._known[piece] = found
            ids += found
        return ids

    def _encode(self, text: str) -> list[int]:
        ids = self._tokenizer.encode(text, add_special_tokens=False).ids
        return [at for at in ids if at != self._unknown]


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
