"""What tools and resources reach: the service, made in the background, and what answers beside it."""

import threading
from typing import TYPE_CHECKING, Any

from searchsvc.background import Worker
from searchsvc.errors import IndexFault, QueryError

if TYPE_CHECKING:
    from searchsvc.elsewhere import Elsewhere
    from searchsvc.items import Reply
    from searchsvc.reader import Reader
    from searchsvc.service import Service

_FIRST_INDEX_SECONDS = 20.0
"""How long a question waits for an index that is being made, or made anew."""


class Desk:
    """What tools reach through the lifespan: the service, made in the background."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._lock = threading.Lock()
        self._elsewhere: Elsewhere | None = None

    @property
    def service(self) -> "Service":
        """The service, whatever its state."""
        return self._worker.service()

    def ask(self) -> "Service":
        """Return the service once it can answer; models load from now on, in the background."""
        for slot in self.service.slots:
            slot.start()
        if not self._worker.wait_until_searchable(_FIRST_INDEX_SECONDS):
            doing = self.service.activity() or "looking at files"
            raise IndexFault(f"the index is being made ({doing}); ask again in a moment")
        return self.service

    def reader(self, db_path: str = "") -> "Reader":
        """Return the reader of the index that is served, or of another one that is allowed."""
        service = self.ask()
        with self._lock:
            if self._elsewhere is None:
                from searchsvc.elsewhere import Elsewhere
                from searchsvc.reader import Reader

                self._elsewhere = Elsewhere(Reader(service))
        return self._elsewhere.reader(db_path)

    def import_document(self, path: str, *, db_path: str = "", **said: Any) -> "Reply":
        """Add a document to those that are served; to no other index."""
        from searchsvc.shelving import import_document

        home = self.reader()
        if self.reader(db_path) is not home:
            raise QueryError("documents are imported into the index that is served; leave db_path out")
        return import_document(home, path, **said)


class Desks:
    """Keeps the desk of a running server for what the protocol gives no context: completions, resources."""

    def __init__(self) -> None:
        self._desk: Desk | None = None

    def open(self, worker: Worker) -> Desk:
        """Make the desk of a server that begins to run."""
        self._desk = Desk(worker)
        return self._desk

    @property
    def desk(self) -> Desk:
        """The desk; ``IndexFault`` before the server runs."""
        if self._desk is None:
            raise IndexFault("the server does not run yet; ask again in a moment")
        return self._desk
