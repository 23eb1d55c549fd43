"""What a running server does on the side: look for changed notes, index them, make missing vectors."""

import logging
import threading
import time

from searchsvc.errors import SearchError
from searchsvc.service import Service

_log = logging.getLogger(__name__)
_MAX_SCAN_SHARE = 0.05
"""Share of the time that looking for changes may take; large roots are looked at less often."""


_HEAD_START_SECONDS = 2.0
"""How long loading a model is put off after the start, so that a client's handshake comes first."""


class _Stopped(Exception):
    """The server is shutting down."""


class Worker:
    """A thread that keeps the index of a service up to date."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._stopping = threading.Event()
        self._ready = threading.Event()
        self._doing = ""
        self._born = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="searchsvc background", daemon=True)
        service.activity = lambda: self._doing

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def stop(self) -> None:
        """Stop soon, at the next text or portion; what was committed stays."""
        self._stopping.set()
        self._thread.join(timeout=5)

    def wait_until_searchable(self, seconds: float) -> bool:
        """Wait until every root has an index; return whether that is so."""
        deadline = time.monotonic() + seconds
        while not self._service.is_indexed:
            if self._ready.wait(timeout=0.05) or time.monotonic() > deadline:
                break
        return self._service.is_indexed

    def _run(self) -> None:
        while not self._stopping.is_set():
            begin = time.monotonic()
            try:
                self._service.index(progress=self._progress)
                scan = time.monotonic() - begin
                self._ready.set()
                self._stopping.wait(max(0.0, self._born + _HEAD_START_SECONDS - time.monotonic()))
                self._service.embed(progress=self._progress, stop=self._stopping.is_set)
            except _Stopped:
                return
            except SearchError as error:
                _log.warning("background work: %s", error)
                scan = time.monotonic() - begin
                self._ready.set()
            except Exception:
                _log.exception("background work failed; searching goes on")
                scan = time.monotonic() - begin
                self._ready.set()
            self._doing = ""
            self._stopping.wait(max(self._service.config.rescan_seconds, scan / _MAX_SCAN_SHARE))

    def _progress(self, stage: str, done: int, total: int) -> None:
        if self._stopping.is_set():
            raise _Stopped
        self._doing = f"{stage} {done} of {total}"
