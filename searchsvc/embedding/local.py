"""Transformer models in ONNX files, run by onnxruntime on the processor."""

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchsvc.embedding.base import Matrix, Passage
from searchsvc.embedding.cards import ModelCard, verify_files
from searchsvc.embedding.parallel import cores, map_in_order
from searchsvc.embedding.vectors import stack, unit
from searchsvc.embedding.windows import Windower
from searchsvc.errors import EmbeddingError

MAX_WINDOWS = 64
"""Windows a passage may have; text beyond the last one has no vector (the lexical index has it all)."""

INPUTS = frozenset({"input_ids", "attention_mask", "token_type_ids"})
"""What a network may ask for; some have no use for the last one."""

CHUNK = 6
"""Passages handed to a thread at a time: many are a heading, done sooner than handed over."""

LOG_ERRORS_ONLY = 3


class OnnxEmbedder:
    """Token vectors of an ONNX network, pooled as its card says. Implements Embedder."""

    def __init__(self, card: ModelCard, folder: Path, workers: int = 0) -> None:
        """Load the model in ``folder``; ``workers`` threads embed passages, 0 for one per core.

        EmbeddingError when a file is not the one the card describes, or cannot be run.
        """
        self.profile = card.profile(verify_files(card, folder))
        self._workers = workers or cores()
        prefixes = (card.query_prefix, card.passage_prefix)
        self._windower = Windower(folder / "tokenizer.json", card.max_tokens, MAX_WINDOWS, prefixes)
        self._session = _load_session(folder / card.files[0].name)
        self._inputs = [tensor.name for tensor in self._session.get_inputs()]
        self._output = self._session.get_outputs()[0].name

    def encode_query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector of a question, cut to one window; zeros for a blank one."""
        ids = self._windower.query(text)
        return self._embed(ids) if ids else np.zeros(self.profile.dimension, dtype=np.float32)

    def encode_passages(self, passages: Iterable[Passage]) -> Iterator[Matrix]:
        """Yield the unit vectors of the windows of each passage; at most ``MAX_WINDOWS`` rows each."""
        waiting = iter(passages)
        chunks = iter(lambda: list(islice(waiting, CHUNK)), [])
        return chain.from_iterable(map_in_order(self._embed_chunk, chunks, self._workers))

    def _embed_chunk(self, passages: list[Passage]) -> list[Matrix]:
        return [self._embed_windows(passage) for passage in passages]

    def _embed_windows(self, passage: Passage) -> Matrix:
        rows = [self._embed(ids) for ids in self._windower.passage(passage)]
        return stack(rows, self.profile.dimension)

    def _embed(self, ids: list[int]) -> NDArray[np.float32]:
        """Embed one window alone: with dynamic quantisation a vector depends on what is run beside it."""
        tokens = np.array([ids], dtype=np.int64)
        feed = {
            "input_ids": tokens,
            "attention_mask": np.ones_like(tokens),
            "token_type_ids": np.zeros_like(tokens),
        }
        (states,) = self._session.run([self._output], {name: feed[name] for name in self._inputs})
        # Nothing is padded, so the mean under the mask is the mean of all token vectors.
        is_first = self.profile.pooling == "cls"
        pooled = states[0][0].astype(np.float32) if is_first else states[0].mean(axis=0, dtype=np.float32)
        return unit(pooled, self.profile.dimension)


def _load_session(file: Path) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # Passages fill the cores; threads inside one short text only get in each other's way.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = LOG_ERRORS_ONLY
    try:
        session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's own exception classes are not public
        raise EmbeddingError(
            f"{file.name} is not a model that onnxruntime {onnxruntime.__version__} runs; put the file of "
            "the model there, or upgrade onnxruntime"
        ) from error
    strange = {tensor.name for tensor in session.get_inputs()} - INPUTS
    if strange:
        raise EmbeddingError(
            f"{file.name} asks for {', '.join(sorted(strange))}, expected only {', '.join(sorted(INPUTS))}: "
            "take an export of the encoder alone"
        )
    return session
