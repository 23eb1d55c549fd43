"""Servers in processes of their own, on loopback ports that were free.

Only the standard library is used: the scripts that the children run import this file too, some with
another interpreter.
"""

import http.client
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

HOST = "127.0.0.1"
FOLDER = Path(__file__).parent
_POLL_SECONDS = 0.05
_STARTS = 3
"""Ports tried: between choosing one and listening on it somebody else may take it."""
_TAIL = 1500
"""Characters of a child's log that an error shows."""


class Child:
    """A running server. It ends when it is stopped, or with the process that started it."""

    def __init__(self, command: Sequence[str], port: int, log: Path, environment: Mapping[str, str]) -> None:
        self.port = port
        self._log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=output, stderr=output, env=dict(environment)
            )

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def log(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")[-_TAIL:]

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def becomes_ready(self, health: str, polls: int) -> bool:
        """Ask ``health`` until it answers with 200; false when the child ended before.

        RuntimeError when it did neither after so many polls.
        """
        for _ in range(polls):
            if not self.is_running:
                return False
            if _status(self.port, health) == http.client.OK:
                return True
            time.sleep(_POLL_SECONDS)
        raise RuntimeError(f"no server at {self.address}{health} after {polls} polls; its log:\n{self.log}")

    def stop(self) -> None:
        """End the child and wait for its end; a second call does nothing."""
        if self.is_running:
            self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdin:
            with suppress(OSError):
                self._process.stdin.close()


def start(
    command: Callable[[int], Sequence[str]],
    log: Path,
    *,
    health: str = "/health",
    polls: int = 600,
    environment: Mapping[str, str] | None = None,
) -> Child:
    """Start the server whose command line for a port ``command`` returns, and wait until it serves."""
    settings = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    settings |= environment or {}
    for _ in range(_STARTS):
        port = free_port()
        child = Child(command(port), port, log, settings)
        try:
            if child.becomes_ready(health, polls):
                return child
        except BaseException:
            child.stop()
            raise
        child.stop()
    raise RuntimeError(f"the server ended at once, {_STARTS} times; its log:\n{child.log}")


def free_port() -> int:
    """Return a loopback port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        return int(listener.getsockname()[1])


def script(name: str, *arguments: str, python: str = sys.executable) -> list[str]:
    """Return the command line that runs a file of this folder."""
    return [python, "-X", "utf8", str(FOLDER / name), *arguments]


def can_import(python: str, *modules: str) -> bool:
    """Tell whether an interpreter has all the modules."""
    code = f"from importlib.util import find_spec as f; raise SystemExit(not all(map(f, {modules!r})))"
    try:
        return subprocess.run([python, "-c", code], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def end_with_parent() -> None:
    """End this process, a child, when the one that started it has closed its side or is gone."""

    def watch() -> None:
        sys.stdin.buffer.read()
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


def _status(port: int, path: str) -> int:
    """Return the status of a GET; 0 when nobody answers."""
    connection = http.client.HTTPConnection(HOST, port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()
