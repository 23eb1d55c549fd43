"""A batch of texts -> a vector for each, or why it has none, whatever the server makes of it.

A server refuses a whole batch for one text. So a refused batch is halved until the text is alone; one that
is too long is shortened by halves; one that is still refused is given up, and the rest goes on. Where no text
was to blame the batch was too large, and no later one is larger than what was taken.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from searchsvc.embedding.answers import Service
from searchsvc.embedding.base import PROBE, Matrix
from searchsvc.embedding.endpoint import JOB, RetryPolicy, Sleep, again, wait
from searchsvc.embedding.faults import Kind, ServerFault
from searchsvc.embedding.pieces import shorten
from searchsvc.errors import EmbeddingError

REFUSED_IN_A_ROW = 20
"""After so many texts refused one after the other, it is looked whether the server takes any."""
REFUSED_UNCLEARLY = 2
"""The same where the server gives no reason: it may be out of order, and then no text is to blame."""
SHORTEST = 32
"""Characters below which a text that is "too long" is not shortened further."""
_LOOK_FOR_TEXT = (Kind.CONTENT, Kind.LENGTH, Kind.UNCLEAR)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one text."""

    row: NDArray[np.float32] | None = field(repr=False)
    """Its unit vector, shape ``(dimension,)``; none when the server has none for it."""
    reason: str = ""
    """Why it has no vector, or only that of its beginning; empty when all is well."""


class Recovery:
    """Embeds the batches of one run. Safe to use from several threads."""

    def __init__(
        self,
        service: Service,
        seconds: float,
        policy: RetryPolicy = JOB,
        sleep: Sleep = wait,
        stop: threading.Event | None = None,
    ) -> None:
        """One request may take ``seconds``; ``stop`` ends all waits."""
        self._service, self._seconds, self._policy = service, seconds, policy
        self._calm = replace(policy, unclear_tries=2)
        self._sleep, self._stop = sleep, stop or threading.Event()
        self._lock = threading.Lock()
        self._refused = 0
        self._most_texts = service.wire.max_texts

    def embed(self, texts: Sequence[str]) -> list[Verdict]:
        """Return what became of each text, in order.

        A batch that is refused costs at most twice as many requests as it has texts (four times where the
        server answers 500 without a reason), one for each time that a text is shortened, and one for some
        that are refused in a row.
        EmbeddingError when the server takes no texts at all, Stopped when ``stop`` is set.
        """
        size = self._most_texts
        parts = [texts[start : start + size] for start in range(0, len(texts), size)]
        return [verdict for part in parts for verdict in self._part(part, self._policy)]

    def _part(self, texts: Sequence[str], policy: RetryPolicy) -> list[Verdict]:
        try:
            rows = self._ask(texts, policy)
        except ServerFault as fault:
            if fault.kind not in _LOOK_FOR_TEXT:
                raise
            if len(texts) == 1:
                return [self._alone(texts[0], fault)]
            half = -(-len(texts) // 2)
            verdicts = self._part(texts[:half], self._calm) + self._part(texts[half:], self._calm)
            if not any(verdict.reason for verdict in verdicts):
                self._most_texts = min(self._most_texts, half)
            return verdicts
        return [Verdict(row) for row in rows]

    def _alone(self, text: str, fault: ServerFault) -> Verdict:
        """Embed the beginning of a text that is too long; refuse any other."""
        said, part = str(fault), text
        while fault.kind is Kind.LENGTH and len(part) >= 2 * SHORTEST:
            part = shorten(part)
            try:
                row = self._ask([part], self._calm)[0]
            except ServerFault as next_fault:
                if next_fault.kind not in _LOOK_FOR_TEXT:
                    raise
                fault = next_fault
            else:
                return Verdict(
                    row, f"only the first {len(part)} of {len(text)} characters were taken; {said}"
                )
        self._doubt(said, REFUSED_UNCLEARLY if fault.kind is Kind.UNCLEAR else REFUSED_IN_A_ROW)
        return Verdict(None, said)

    def _ask(self, texts: Sequence[str], policy: RetryPolicy) -> Matrix:
        rows = again(policy, lambda: self._service.embed(texts, self._seconds), self._sleep, self._stop)
        with self._lock:
            self._refused = 0
        return rows

    def _doubt(self, said: str, limit: int) -> None:
        """Where text after text is refused, see whether one that was taken before still is."""
        with self._lock:
            self._refused += 1
            is_doubtful = self._refused >= limit
        if is_doubtful:
            try:
                self._ask([PROBE], self._calm)
            except ServerFault as fault:
                raise EmbeddingError(
                    f"texts are refused one after the other ({said}), and now also one that was taken before "
                    f"({fault}); see the log of the server, or choose another model"
                ) from fault
