"""Terms as numbers, kept from one batch of notes to the next: most pieces of text repeat.

A piece is what stands between two blanks. Looking up the numbers of its terms, packed as they are stored,
takes a fraction of the time of splitting it.
"""

from array import array
from collections.abc import Iterable, Sequence

import numpy as np

from searchsvc.index.postings import Stream
from searchsvc.tokens import Tokenizer, bare_word

_MAX_PIECES = 200_000
_MAX_REMEMBERED = 100
"""Characters; longer pieces are data."""


class Vocabulary:
    """Numbers the terms of texts as they come. For one thread at a time."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._ids = _Ids()
        self._pieces = _Pieces(tokenizer, self._ids)

    def topic_ids(self, text: str) -> bytes:
        """Return the numbers of the terms of a text in order, without stop words, as packed int32."""
        return self.ids_of_pieces(text.split())

    def ids_of_pieces(self, pieces: Iterable[str]) -> bytes:
        """Return the same of a text that has been split at its blanks already."""
        return b"".join(map(self._pieces.__getitem__, pieces))

    def label_ids(self, text: str) -> bytes:
        """Return the same of a label, such as a title; of one of stop words only, all its terms count."""
        found = self.topic_ids(text)
        return found if found or not text else self._ids.packed(self._tokenizer.terms(text))

    def stream(self, packed: bytearray, bounds: Sequence[int]) -> Stream:
        """Return cells of packed numbers, given by the bytes where they start, with their own vocabulary.

        When there are too many pieces, they are forgotten thereafter, and all numbers with them.
        """
        numbers = np.frombuffer(packed, np.int32)
        used = np.flatnonzero(np.bincount(numbers, minlength=len(self._ids)))
        places = np.zeros(len(self._ids), np.int32)
        places[used] = np.arange(len(used))
        terms = list(self._ids)
        if len(self._pieces) > _MAX_PIECES:
            self._ids.clear()
            self._pieces.clear()
        return Stream(
            [terms[number] for number in used.tolist()],
            places[numbers],
            np.array(bounds, np.int64) // numbers.itemsize,
        )


class _Ids(dict[str, int]):
    """Numbers of terms."""

    def __missing__(self, term: str) -> int:
        number = self[term] = len(self)
        return number

    def packed(self, terms: Iterable[str]) -> bytes:
        return array("i", [self[term] for term in terms]).tobytes()


class _Pieces(dict[str, bytes]):
    """Packed numbers of the terms of pieces, without stop words."""

    def __init__(self, tokenizer: Tokenizer, ids: _Ids) -> None:
        self._tokenizer = tokenizer
        self._ids = ids

    def __missing__(self, piece: str) -> bytes:
        word = bare_word(piece)
        # Most new pieces are known words with other signs around them.
        found = self[word] if word and word != piece else self._ids.packed(self._tokenizer.topic_terms(piece))
        if len(piece) <= _MAX_REMEMBERED:
            self[piece] = found
        return found
