"""What a running server does on the side: look for changed notes, index them, make missing vectors."""

import logging
import threading
import time
from typing import TYPE_CHECKING

from searchsvc.config import Config
from searchsvc.errors import ConfigError, SearchError
from searchsvc.priority import lower_thread

if TYPE_CHECKING:
    from searchsvc.service import Service

_log = logging.getLogger(__name__)
_HEAD_START_SECONDS = 1.0
"""How long work is put off after the start, unless somebody asks: a client's handshake comes first."""
_PATIENCE_SECONDS = 5.0
_MAX_SCAN_SHARE = 0.05
"""Share of the time that looking for changes may take; large roots are looked at less often."""


_NICENESS = 10


class _Stopped(Exception):
    """The server is shutting down."""


class Worker:
    """A thread that makes a service and keeps its index up to date."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._service: Service | None = None
        self._failure: SearchError = ConfigError("the service could not be made")
        self._wanted = threading.Event()
        self._made = threading.Event()
        self._looked = threading.Event()
        self._stopping = threading.Event()
        self._doing = "starting"
        self._said = ""
        self._thread = threading.Thread(target=self._run, name="searchsvc background", daemon=True)

    def start(self) -> None:
        """Begin to work, soon."""
        self._thread.start()

    def stop(self) -> None:
        """Stop at the next text or portion; what was committed stays."""
        self._stopping.set()
        self._wanted.set()
        self._thread.join(timeout=_PATIENCE_SECONDS)
        for slot in self._service.slots if self._service else ():
            slot.settle(_PATIENCE_SECONDS)

    def service(self) -> "Service":
        """Return the service, making it now if need be."""
        self._wanted.set()
        self._made.wait()
        if self._service is None:
            raise self._failure
        return self._service

    def wait_until_searchable(self, seconds: float) -> bool:
        """Wait until every root has an index or could not get one; return whether all have one."""
        service, deadline = self.service(), time.monotonic() + seconds
        while not service.is_indexed:
            if self._looked.wait(timeout=0.05) or time.monotonic() > deadline:
                break
        return service.is_indexed

    def _run(self) -> None:
        self._wanted.wait(_HEAD_START_SECONDS)
        from searchsvc.batch import Limits
        from searchsvc.service import Service

        try:
            self._service = service = Service(self._config, patient=False)
        except SearchError as error:
            self._failure = error
            return
        finally:
            self._made.set()
        service.activity = lambda: self._doing
        while not self._stopping.is_set():
            begin = time.monotonic()
            try:
                service.index(progress=self._progress)
                scan = time.monotonic() - begin
                self._looked.set()
                self._doing = ""
                # Words are there; vectors can wait for questions.
                lower_thread(_NICENESS)
                limits = Limits(wait=False)
                service.embed(progress=self._progress, stop=self._stopping.is_set, limits=limits)
            except _Stopped:
                return
            except SearchError as error:
                # A server that is off is off at every look; once is enough to say so.
                if str(error) != self._said:
                    _log.warning("background work: %s", error)
                self._said = str(error)
                scan = time.monotonic() - begin
            except Exception:
                _log.exception("background work failed; searching goes on")
                scan = time.monotonic() - begin
            self._looked.set()
            self._doing = ""
            self._stopping.wait(max(self._config.rescan_seconds, scan / _MAX_SCAN_SHARE))

    def _progress(self, stage: str, done: int, total: int, failed: int = 0) -> None:
        if self._stopping.is_set():
            raise _Stopped
        self._doing = f"{stage} {done} of {total}"
