"""A place for a model that is loaded when first needed, without making anyone wait."""

import logging
import threading
import time
from collections.abc import Callable

from searchsvc.embedding.base import Embedder, ModelChoice
from searchsvc.errors import EmbeddingError

_log = logging.getLogger(__name__)

RETRY_SECONDS = 20.0
"""How long after a failure loading is tried again: a server that was off may be on by now."""


class ModelSlot:
    """Loads a model in a thread of its own; safe to use from several threads."""

    def __init__(self, choice: ModelChoice, load: Callable[[], Embedder]) -> None:
        self.choice = choice
        """What is to be loaded."""
        self.problem = ""
        """Why the model could not be loaded; empty while it might still be."""
        self._load = load
        self._embedder: Embedder | None = None
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._started = False
        self._again_at = float("inf")

    @property
    def name(self) -> str:
        """Of the model, as users choose it."""
        return self.choice.model

    def start(self) -> None:
        """Begin to load, unless that has begun before and has not failed some time ago."""
        with self._lock:
            if self._started and time.monotonic() < self._again_at:
                return
            self._started, self._again_at = True, float("inf")
            self._done.clear()
        threading.Thread(target=self._run, name=f"load {self.name}", daemon=True).start()

    def _run(self) -> None:
        try:
            self._embedder = self._load()
            self.problem = ""
        except EmbeddingError as error:
            self.problem = str(error)
        except Exception as error:
            _log.exception("loading %s failed", self.name)
            self.problem = f"cannot be loaded ({type(error).__name__}); see the log"
        finally:
            if self._embedder is None:
                self._again_at = time.monotonic() + RETRY_SECONDS
            self._done.set()

    def get(self, *, wait: bool) -> Embedder | None:
        """Return the model, or none while it loads (unless ``wait``) or when it cannot be loaded."""
        self.start()
        if wait:
            self._done.wait()
        return self._embedder

    def settle(self, seconds: float) -> None:
        """Wait until a model that has begun to load is there: a process must not end in the middle."""
        if self._started:
            self._done.wait(seconds)

    def require(self) -> Embedder:
        """Return the model, waiting for it; raise ``EmbeddingError`` when it cannot be loaded."""
        embedder = self.get(wait=True)
        if embedder is None:
            raise EmbeddingError(self.problem)
        return embedder
