"""From the JSON of an embedding server to unit vectors, each beside the text it belongs to."""

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from searchsvc.embedding.base import Matrix
from searchsvc.embedding.endpoint import Endpoint
from searchsvc.embedding.faults import Kind, ServerFault


@dataclass(frozen=True, slots=True)
class Wire:
    """How one kind of server is asked for vectors."""

    path: str
    """After the base address."""
    body: Callable[[Sequence[str]], dict[str, Any]]
    """What is sent for some texts."""
    vectors: Callable[[Any], list[Any] | None]
    """The vectors in the JSON of an answer as they came, in the order of the texts; none for other JSON."""
    max_texts: int = 2048
    """Texts that one request may hold."""


@dataclass(frozen=True, slots=True)
class Service:
    """A model at a server. Safe to use from several threads."""

    endpoint: Endpoint
    wire: Wire
    dimension: int = 0
    """Length that every vector must have; 0 while it is not known."""

    @property
    def url(self) -> str:
        """The address that is asked for vectors."""
        return self.endpoint.address.url + self.wire.path

    def embed(self, texts: Sequence[str], seconds: float) -> Matrix:
        """Return the unit vectors of some texts, shape ``(len(texts), dimension)``, by one request.

        ServerFault when there is not one usable vector for each.
        """
        answer = self.endpoint.ask("POST", self.url, self.wire.body(texts), seconds=seconds, texts=texts)
        try:
            found = self.wire.vectors(answer)
        except MisplacedError as error:
            raise self._fault(f"answered with {error}", Kind.CONTENT) from error
        if found is None:
            raise self._fault(
                f"answered with JSON that holds no list of vectors; tried {self.url}: check base_url and "
                "provider",
                Kind.CONTENT,  # some servers answer so to a text that they make nothing of
            )
        if len(found) != len(texts):
            raise self._fault(f"returned {len(found)} vectors for {len(texts)} texts", Kind.CONTENT)
        return self._matrix([self._vector(raw) for raw in found])

    def _vector(self, raw: Any) -> NDArray[np.float64]:
        """Return one vector, which came as a list of numbers or as float32 in base64."""
        if raw is None:
            raise self._fault("returned no vector for a text", Kind.CONTENT)
        try:
            if isinstance(raw, str):
                vector = np.frombuffer(base64.b64decode(raw, validate=True), dtype="<f4").astype(np.float64)
            else:
                vector = np.asarray(raw, dtype=np.float64)
        except (ValueError, TypeError, OverflowError, binascii.Error) as error:
            raise self._fault("returned a vector that is no list of numbers", Kind.SYSTEMIC) from error
        if vector.ndim != 1:
            reason = f"returned a vector of shape {vector.shape}, expected a flat list; check base_url"
            raise self._fault(reason, Kind.SYSTEMIC)
        return vector

    def _matrix(self, vectors: list[NDArray[np.float64]]) -> Matrix:
        if not all(map(len, vectors)):
            raise self._fault("returned an empty vector", Kind.CONTENT)
        wanted = self.dimension or len(vectors[0])
        for vector in vectors:
            if len(vector) != wanted:
                raise self._fault(
                    f"returned a vector of {len(vector)} dimensions, expected {wanted}: it runs another "
                    "model than before, or takes no notice of the setting dimensions; check both",
                    Kind.SYSTEMIC,
                )
        rows = np.stack(vectors)
        largest = np.abs(rows).max(axis=1, keepdims=True)
        if not np.isfinite(largest).all() or not (largest > 0).all():
            raise self._fault("returned a vector that holds NaN or Inf, or is zero", Kind.CONTENT)
        # Huge and tiny values would leave the range of floats when they are squared.
        rows /= largest
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)

    def _fault(self, reason: str, kind: Kind) -> ServerFault:
        return ServerFault(f"{self.endpoint.where} {reason}", kind)


class MisplacedError(Exception):
    """Vectors that name their places, but not each place once."""


def in_place(items: Sequence[Any], name: str = "embedding") -> list[Any] | None:
    """Return the vectors of items in the order of their ``index``, or as they are where none has one.

    Returns none for what is no list of objects with a vector; MisplacedError when the places are not
    as many numbers in a row, from 0 or 1, each once.
    """
    if not all(isinstance(item, dict) and name in item for item in items):
        return None
    vectors = [item[name] for item in items]
    if all(item.get("index") is None for item in items):
        return vectors
    places = [_place(item.get("index")) for item in items]
    ordered = sorted(zip(places, vectors, strict=True), key=lambda pair: pair[0])
    first = ordered[0][0] if ordered else 0
    if first not in (0, 1) or [place for place, _ in ordered] != list(range(first, first + len(items))):
        raise MisplacedError("vectors whose index is not each place once")
    return [vector for _, vector in ordered]


def _place(index: Any) -> int:
    """Return an index that came as a number or as text, or -1."""
    if isinstance(index, bool) or not str(index).removesuffix(".0").isdecimal():
        return -1
    return int(float(index))
