"""A place for a model that is loaded at most once, when first needed, without making anyone wait."""

import logging
import threading
from collections.abc import Callable

from searchsvc.embedding.base import Embedder
from searchsvc.errors import EmbeddingError

_log = logging.getLogger(__name__)


class ModelSlot:
    """Loads a model in a thread of its own; safe to use from several threads."""

    def __init__(self, name: str, load: Callable[[], Embedder]) -> None:
        self.name = name
        """Of the model card."""
        self.problem = ""
        """Why the model could not be loaded; empty while it might still be."""
        self._load = load
        self._embedder: Embedder | None = None
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._started = False

    def start(self) -> None:
        """Begin to load, unless that has begun before."""
        with self._lock:
            if self._started:
                return
            self._started = True
        threading.Thread(target=self._run, name=f"load {self.name}", daemon=True).start()

    def _run(self) -> None:
        try:
            self._embedder = self._load()
        except EmbeddingError as error:
            self.problem = str(error)
        except Exception as error:
            _log.exception("loading %s failed", self.name)
            self.problem = f"cannot be loaded ({type(error).__name__}); see the log"
        finally:
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
