"""One function for many tasks, each in a worker process that it may crash or hang without harm to the rest.

``concurrent.futures`` gives up a whole pool when one process dies, and cannot end a task that hangs.
"""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.process import BaseProcess
from types import ModuleType
from typing import Any, Generic, TypeVar

from searchsvc.errors import SearchError

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")

MEMORY_BYTES = 4_000_000_000
"""Of one worker, where the system can hold it to that; beyond it a task fails with ``MemoryError``."""


@dataclass(frozen=True, slots=True)
class Lost:
    """What came of a task whose process ended before it was done."""

    reason: str


class _Process(SpawnProcess):
    """A new interpreter that does not run the caller's script again, as spawned processes do."""

    @staticmethod
    def _Popen(process_obj: BaseProcess) -> Any:  # noqa: N802
        main, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
        try:
            return SpawnProcess._Popen(process_obj)
        finally:
            sys.modules["__main__"] = main


class _SpawnContext(SpawnContext):
    Process = _Process


class _Worker(Generic[_Task, _Result]):
    """One process with what it is at work on."""

    def __init__(self, function: Callable[[_Task], _Result]) -> None:
        context = _SpawnContext()
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, function), daemon=True)
        self.process.start()
        theirs.close()
        self.task: _Task | None = None
        self.deadline = float("inf")

    def give(self, task: _Task, seconds: float) -> None:
        self.task, self.deadline = task, time.monotonic() + seconds
        # A process that has just died is met when its end of the pipe is found closed.
        with contextlib.suppress(OSError):
            self.connection.send(task)

    def end(self) -> str:
        """End the process if it has not ended by itself, and say how it ended."""
        self.process.kill()
        self.process.join()
        self.connection.close()
        code = self.process.exitcode or 0
        self.process.close()
        if code >= 0:
            return f"ended with code {code}"
        try:
            return f"was ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"was ended by signal {-code}"


def run_each(
    function: Callable[[_Task], _Result], tasks: Iterable[_Task], *, workers: int, seconds: float
) -> Generator[tuple[_Task, _Result | Lost], None, None]:
    """Yield every task with what the function returned, as they come.

    ``function`` is importable by name, or a ``partial`` of such, and does not raise; the tasks and what it
    returns can be pickled. A task that takes more than ``seconds``, or ends its process, is ``Lost``; a new
    process goes on with the next. When the generator is closed, all processes are ended.
    """
    queue = deque(tasks)
    team = [_Worker[_Task, _Result](function) for _ in range(min(max(workers, 1), len(queue)))]
    try:
        while team:
            patience = max(0.0, min(worker.deadline for worker in team) - time.monotonic())
            ready = wait([worker.connection for worker in team], patience if patience < 1e9 else None)
            now = time.monotonic()
            for worker in [w for w in team if w.connection in ready or w.deadline <= now]:
                task, outcome = worker.task, _outcome(worker, seconds)
                if isinstance(outcome, Lost):
                    team.remove(worker)
                    if queue:
                        team.append(_Worker(function))
                elif queue:
                    worker.give(queue.popleft(), seconds)
                else:
                    team.remove(worker)
                    worker.end()
                if task is not None and outcome is not None:
                    yield task, outcome
    finally:
        for worker in team:
            if not worker.connection.closed:
                worker.end()


def _outcome(worker: _Worker[_Task, _Result], seconds: float) -> _Result | Lost | None:
    """Return what a worker has sent, none when it says that it is ready, or ``Lost`` when it is no more."""
    try:
        if worker.connection.poll():
            result: _Result | None = worker.connection.recv()
            return result
    except (EOFError, OSError):
        how = worker.end()
        if worker.task is None:
            # Before the first task: the next process would end the same way.
            raise SearchError(f"a process for reading documents {how} before it had begun") from None
        return Lost(f"the process that read it {how}; the file is probably damaged: open it to check")
    worker.end()
    return Lost(f"took longer than {seconds:g} s; allow more with --timeout, or split the file")


def _serve(connection: Connection, function: Callable[[Any], Any]) -> None:
    """Work on what comes, until the other end is closed; runs in the worker."""
    _end_with_parent()
    # Ctrl-C goes to all processes of a terminal; the parent decides what becomes of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _limit_memory()
    _silence()
    connection.send(None)
    with contextlib.suppress(EOFError):
        while True:
            connection.send(function(connection.recv()))


def _end_with_parent() -> None:
    """Make this worker end when the process that started it is killed, whatever it is at work on."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, AttributeError, ValueError, OSError):
        import resource  # Not on Windows.

        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))


def _silence() -> None:
    """Send what libraries print to nowhere: it would get between the lines of the parent."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nowhere, stream)
    os.close(nowhere)
