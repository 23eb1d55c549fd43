"""Models that a server runs."""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from searchsvc.embedding.answers import Service
from searchsvc.embedding.base import PROBE, Matrix, ModelChoice, Outcome, Passage, Profile
from searchsvc.embedding.endpoint import JOB, OPENING, QUERY, Sleep, again, wait
from searchsvc.embedding.families import find_family
from searchsvc.embedding.faults import Kind, ServerFault
from searchsvc.embedding.pieces import DEFAULT_TOKENS, Cutter, shorten
from searchsvc.embedding.pipeline import Load, embed_in_order
from searchsvc.embedding.recovery import Recovery
from searchsvc.errors import EmbeddingError

CACHED_QUERIES = 256

LOCAL_LOAD = Load(texts=32, tokens=32_000, concurrency=2)
"""What suits a server with one model on one machine."""
OPENAI_LOAD = Load(texts=256, tokens=250_000, concurrency=4)
"""What suits OpenAI: a request may have 2048 texts and 300,000 tokens."""
MAX_CONCURRENCY = 64


@dataclass(frozen=True, slots=True)
class Found:
    """What a server tells of a model."""

    name: str
    """By which it is asked for."""
    provider: str
    """As it stands in the profile."""
    revision: str = ""
    """Digest of its weights; empty when the server tells none."""
    max_tokens: int = 0
    """Length of its context; 0 when the server does not tell."""


class RemoteEmbedder:
    """Vectors of a model at a server. Implements Embedder."""

    def __init__(
        self, choice: ModelChoice, service: Service, found: Found, load: Load, sleep: Sleep = wait
    ) -> None:
        """Embed a probe text, to learn the dimension: the server may load the model for it.

        EmbeddingError when the server cannot be asked, or gives no vector of the dimension chosen.
        """
        family = find_family(found.name)
        query_prefix = family.query_prefix if choice.query_prefix is None else choice.query_prefix
        passage_prefix = family.passage_prefix if choice.passage_prefix is None else choice.passage_prefix
        known = [length for length in (found.max_tokens, family.max_tokens) if length > 0]
        # The guess of tokens errs by a quarter in languages that a model does not know.
        max_tokens = choice.max_tokens or min([DEFAULT_TOKENS, *(length * 3 // 4 for length in known)])
        self._cutter = Cutter(max_tokens, (query_prefix, passage_prefix))
        self._choice, self._sleep = choice, sleep
        self._load = _load(choice, load, service.wire.max_texts)
        service = replace(service, dimension=choice.dimensions)
        seconds = choice.request_seconds
        probe = self._cutter.query(PROBE)
        rows = again(OPENING, lambda: service.embed([probe], seconds), sleep)
        self._service = replace(service, dimension=len(rows[0]))
        self.profile = Profile(
            name=found.name,
            provider=found.provider,
            revision=found.revision,
            dimension=len(rows[0]),
            max_tokens=max_tokens,
            query_prefix=query_prefix,
            passage_prefix=passage_prefix,
            pooling="server",
            languages=family.languages,
        )
        # It is asked for again, to recognise the model.
        self._queries = OrderedDict({probe: np.array(rows[0], dtype=np.float32)})
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the connections to the server; they are opened again when needed."""
        self._service.endpoint.close()

    def encode_query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector of a question, cut to one window; zeros for a blank one.

        EmbeddingError when there is none after ``query_seconds``, whatever the server or network does.
        """
        sent = self._cutter.query(text)
        if not sent:
            return np.zeros(self.profile.dimension, dtype=np.float32)
        with self._lock:
            if sent in self._queries:
                self._queries.move_to_end(sent)
                return self._queries[sent].copy()
        row = self._ask_in_time(sent)
        with self._lock:
            self._queries[sent] = row
            while len(self._queries) > CACHED_QUERIES:
                self._queries.popitem(last=False)
        return row.copy()

    def encode_queries(self, texts: Sequence[str]) -> Matrix:
        """Return the unit vectors of questions, shape ``(len(texts), dimension)``, in as few requests.

        Takes its time as the batch job does. EmbeddingError when one of them gets no vector.
        """
        sent = [self._cutter.query(text) for text in texts]
        size, seconds = self._load.texts, self._choice.request_seconds
        batches = [sent[start : start + size] for start in range(0, len(sent), size)]
        return np.concatenate(
            [again(JOB, partial(self._service.embed, batch, seconds), self._sleep) for batch in batches]
        )

    def _ask_in_time(self, sent: str) -> NDArray[np.float32]:
        """Ask on a thread that is left behind when it is late: looking up a host knows no time limit."""
        seconds = self._choice.query_seconds
        stop = threading.Event()
        done: Future[NDArray[np.float32]] = Future()

        def ask() -> None:
            try:
                done.set_result(self._ask_query(sent, seconds, stop))
            except BaseException as error:  # raised again by whoever waits
                done.set_exception(error)

        threading.Thread(target=ask, name="searchsvc-query", daemon=True).start()
        try:
            return done.result(seconds)
        except TimeoutError:
            raise self._service.endpoint.late(seconds, "query_seconds") from None
        except ServerFault as fault:
            if fault.kind is Kind.TIMEOUT:
                raise self._service.endpoint.late(seconds, "query_seconds") from fault
            raise
        finally:
            stop.set()

    def _ask_query(self, sent: str, seconds: float, stop: threading.Event) -> NDArray[np.float32]:
        def ask(text: str) -> NDArray[np.float32]:
            rows = again(QUERY, lambda: self._service.embed([text], seconds), self._sleep, stop)
            return np.array(rows[0], dtype=np.float32)

        try:
            return ask(sent)
        except ServerFault as fault:
            if fault.kind is not Kind.LENGTH:
                raise
            return ask(shorten(sent))

    def encode_passages(self, passages: Iterable[Passage]) -> Iterator[Outcome]:
        """Yield for each passage, in order, its unit row vectors, or a ``Partial`` where some are missing.

        At most ``MAX_WINDOWS`` rows each. EmbeddingError when the server cannot be asked, or refuses all.
        """
        stop = threading.Event()
        recovery = Recovery(self._service, self._choice.request_seconds, sleep=self._sleep, stop=stop)
        return embed_in_order(
            passages, self._cutter.passage, recovery.embed, self._load, self.profile.dimension, stop
        )


def _load(choice: ModelChoice, load: Load, max_texts: int) -> Load:
    """Return how much is asked at once: what was chosen, within what the server takes."""
    for name, value in (("batch_texts", choice.batch_texts), ("concurrency", choice.concurrency)):
        if value < 0:
            raise EmbeddingError(f"{name} is {value}, expected a number above 0, or 0 for the usual one")
    texts = min(choice.batch_texts or load.texts, max_texts)
    return Load(texts, load.tokens, min(choice.concurrency or load.concurrency, MAX_CONCURRENCY))
