"""The Universal Sentence Encoder, multilingual: from a package that needs numpy only."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from searchsvc.embedding.base import Matrix, Passage
from searchsvc.embedding.cards import USE_PACKAGE, ModelCard, verify_files
from searchsvc.embedding.places import find_files
from searchsvc.embedding.vectors import stack, unit
from searchsvc.embedding.windows import clean

MAX_WINDOWS = 64
"""Windows a passage may have; text beyond the last one has no vector (the lexical index has it all)."""
WORDS = 100
"""Words of a window: the model averages, and a longer text blurs."""
CONTEXT_WORDS = WORDS // 3

# Scripts that put no spaces between words count two characters as a word.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]{1,2}|[^\W\u3040-\u30ff\u3400-\u9fff]{1,24}")
_SENTENCE_END = re.compile(r"[.!?…]+[\"')\]]*\s+|[。！？]+[」』）]*\s*|\n+")


class UseEmbedder:
    """Sentence vectors of 16 languages in one space. Implements Embedder."""

    def __init__(self, card: ModelCard, workers: int = 0) -> None:
        """Load the model from its package.

        Passages are embedded by the calling thread, whatever ``workers`` says. EmbeddingError when the
        package is not installed.
        """
        self.profile = card.profile(verify_files(card, find_files(card)))
        # More threads inside one text wait for each other: on a busy machine 80 times slower.
        self._model = import_module(USE_PACKAGE.partition("/")[0]).USE(threads=1)
        # The package loads at the first text, and not safely from two threads.
        self.encode_query("load")

    def encode_query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector of a question, cut to one window; zeros for a blank one."""
        windows = cut_sentences(clean(text).strip(), WORDS, limit=1)
        rows = self._embed(windows)
        return rows[0] if rows else np.zeros(self.profile.dimension, dtype=np.float32)

    def encode_passages(self, passages: Iterable[Passage]) -> Iterator[Matrix]:
        """Yield the unit vectors of the windows of each passage; at most ``MAX_WINDOWS`` rows each."""
        return map(self._embed_passage, passages)

    def _embed_passage(self, passage: Passage) -> Matrix:
        head = "".join(cut_sentences(clean(passage.context).strip(), CONTEXT_WORDS, limit=1))
        body = cut_sentences(clean(passage.text).strip(), WORDS, MAX_WINDOWS)
        return stack(self._embed([f"{head}\n{window}".strip() for window in body]), self.profile.dimension)

    def _embed(self, texts: list[str]) -> list[NDArray[np.float32]]:
        """Embed each text alone, so that its vector does not depend on its neighbours' lengths."""
        vectors = (self._model.encode(text) for text in texts)
        return [unit(vector, self.profile.dimension) for vector in vectors]


def cut_sentences(text: str, words: int, limit: int) -> list[str]:
    """Return at most ``limit`` windows of about ``words`` words, cut after sentences and lines.

    A rest of less than a quarter goes into the window before it. Where no sentence ends in the second
    half of a window it is cut before a word, never inside a character.
    """
    if not text:
        return []
    starts = [match.start() for match in _WORD.finditer(text)]
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    windows: list[str] = []
    begin = first = 0
    while first + words + words // 4 < len(starts) and len(windows) < limit:
        stop = starts[first + words]
        sentence = bisect_right(ends, stop) - 1
        if sentence >= 0 and ends[sentence] > starts[first + words // 2]:
            stop = ends[sentence]
        windows.append(text[begin:stop])
        begin, first = stop, bisect_left(starts, stop)
    return windows if len(windows) == limit else [*windows, text[begin:]]
