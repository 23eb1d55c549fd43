"""What every embedding model looks like to the rest of the package.

A profile says exactly which vectors these are; an embedder makes them. Vectors of two profiles are
never compared: their identities differ, so they lie in different files of the index.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Profile:
    """The full identity of a vector space; two profiles are compatible only when equal."""

    name: str
    """Name of the model card, for example ``all-minilm-l6-v2-int8``."""
    provider: str
    """What runs the model: ``onnx``, ``static`` or ``use``."""
    revision: str
    """SHA-256 of the weights, in hex."""
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
    return f"{profile.name}-{digest[:12]}"


@dataclass(frozen=True, slots=True)
class Passage:
    """One section as an embedding model sees it."""

    context: str
    """Where the section stands (note title, heading path), repeated before each of its windows."""
    text: str
    """The section's own text, without its heading."""
    heading: str = ""
    """The section's heading, or the note's title where it has none."""


class Embedder(Protocol):
    """Makes vectors of one profile. Safe to call from several threads."""

    profile: Profile

    def encode_query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector, shape ``(dimension,)``, of a question; zeros for a blank one."""

    def encode_passages(self, passages: Sequence[Passage]) -> Iterator[Matrix]:
        """Yield for each passage, in order, its unit row vectors, shape ``(windows, dimension)``.

        A blank passage yields a matrix without rows. Passages are worked on in parallel, and what is
        not asked for is not computed far ahead, so a caller may stop at any passage.
        """
