"""What every embedding model looks like to the rest of the package.

A profile says exactly which vectors these are; an embedder makes them. Vectors of two profiles are
never compared: their identities differ, so they lie in different files of the index.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]

PROBE = "The lighthouse keeper wrote down the weather every morning before breakfast."
"""A question by whose vector a model is recognised. Never change it: its vectors are kept over the years."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The full identity of a vector space; two profiles are compatible only when equal."""

    name: str
    """Of the model, as users choose it, for example ``all-minilm-l6-v2-int8``."""
    provider: str
    """What runs the model: ``onnx``, ``static``, ``use``, ``sentence-transformers``, ``ollama`` and so on."""
    revision: str
    """SHA-256 of the weights or the server's digest of the model, in hex; empty when nobody tells."""
    dimension: int
    """Length of a vector."""
    max_tokens: int
    """Tokens one text may have, special tokens included; longer texts are embedded in windows."""
    query_prefix: str = ""
    """Put before every question, as the model was trained."""
    passage_prefix: str = ""
    """Put before every passage, as the model was trained."""
    pooling: str = "mean"
    """How token vectors become one vector."""
    languages: tuple[str, ...] = ("en",)
    """ISO 639-1 codes the model is good at; ``("*",)`` for many."""
    rules: int = 1
    """Version of embedding/context, raised whenever the same section would get another vector."""

    @property
    def identity(self) -> str:
        """A short stable hash of every field that changes a vector, used as name on disk."""
        return _identity(self)


@cache
def _identity(profile: Profile) -> str:
    fields = asdict(profile)
    fields.pop("languages")
    digest = hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()
    # Names of models hold slashes and colons; this one is the name of a folder.
    readable = re.sub(r"[^A-Za-z0-9._-]+", "-", profile.name).strip(".-")[:60]
    return f"{readable}-{digest[:12]}"


@dataclass(frozen=True, slots=True)
class Passage:
    """One section as an embedding model sees it."""

    context: str
    """Where the section stands (note title, heading path), repeated before each of its windows."""
    text: str
    """The section's own text, without its heading."""
    heading: str = ""
    """The section's heading, or the note's title where it has none."""


@dataclass(frozen=True, slots=True)
class Partial:
    """What came of a passage that a model did not take, or not whole."""

    rows: Matrix = field(repr=False)
    """Unit vectors of what it took, shape ``(windows, dimension)``; without rows when it took nothing."""
    reason: str
    """What the model or its server said, and what was left out; never the text, never a secret."""


Outcome = Matrix | Partial
"""What embedding one passage gives."""


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Which model somebody wants, where it runs, and how it is to be asked."""

    model: str
    """Card id, model name at a server, hub name or path, as the provider understands it."""
    provider: str = "local"
    """``local``, ``sentence-transformers``, ``ollama``, ``lmstudio``, ``openai``, or an installed one."""
    base_url: str = ""
    """Address of the server; empty for the provider's usual one."""
    dimensions: int = 0
    """Length to which the provider is asked to cut its vectors; 0 for the model's own."""
    model_path: Path | None = None
    """Folder with the model's files, for providers that read files."""
    query_prefix: str | None = None
    """Put before every question; none for what is known of the model."""
    passage_prefix: str | None = None
    """Put before every passage; none for what is known of the model."""
    max_tokens: int = 0
    """Tokens of one window; 0 for what suits the model."""
    batch_texts: int = 0
    """Texts in one request; 0 for what suits the provider."""
    concurrency: int = 0
    """Requests under way at once; 0 for what suits the provider."""
    request_seconds: float = 120.0
    """How long one request of the batch job may take, the loading of the model included."""
    query_seconds: float = 8.0
    """How long embedding a question may take; after that the question is answered by words."""
    key_file: Path | None = None
    """File that holds the key of the server; none for the environment's."""
    key: str = field(default="", repr=False)
    """Key of the server that a caller gave for one question; never kept."""
    workers: int = 0
    """Threads that embed, for models that run here; 0 for one a core."""
    allow_downloads: bool = False
    """Whether missing files may be fetched from a hub."""


class Embedder(Protocol):
    """Makes vectors of one profile. Safe to call from several threads."""

    profile: Profile

    def encode_query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector, shape ``(dimension,)``, of a question; zeros for a blank one.

        EmbeddingError when the model cannot be asked or gives no usable vector.
        """

    def encode_passages(self, passages: Iterable[Passage]) -> Iterator[Outcome]:
        """Yield for each passage, in order, its unit row vectors, shape ``(windows, dimension)``.

        A blank passage yields a matrix without rows, one that the model would not take a ``Partial``.
        EmbeddingError when the model cannot be asked at all; what was yielded before stays valid.
        Passages are worked on in parallel and are taken from the iterable as they are needed: what is not
        asked for is not computed far ahead, so a caller may stop at any passage.
        """


@runtime_checkable
class EncodesQueries(Protocol):
    """An embedder that is better given several questions at once, such as one at a server."""

    def encode_queries(self, texts: Sequence[str]) -> Matrix:
        """Return the unit vectors of questions, shape ``(len(texts), dimension)``; as ``encode_query``."""


def encode_queries(embedder: Embedder, texts: Sequence[str]) -> Matrix:
    """Return the unit vectors of questions, shape ``(len(texts), dimension)``."""
    if isinstance(embedder, EncodesQueries):
        return embedder.encode_queries(texts)
    return np.stack([embedder.encode_query(text) for text in texts])
