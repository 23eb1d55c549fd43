"""An embedding server on the loopback that answers as it is told, and keeps what it was asked.

It speaks as OpenAI, LM Studio and Ollama do. A right vector depends on its text alone. The bodies of faults
are those that the real servers send.
"""

import base64
import hashlib
import json
import socket
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

SECONDS = 20
"""No wait in a test is longer: what has not come then does not come."""


def vector_of(text: str, dimension: int = 8) -> list[float]:
    """Return the vector of a text, not of length 1, as a server with float32 weights gives it."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
    values = np.random.default_rng(seed).normal(size=dimension) * 3
    return [float(value) for value in values.astype(np.float32)]


def unit_of(text: str, dimension: int = 8) -> np.ndarray:
    vector = np.array(vector_of(text, dimension))
    return vector / np.linalg.norm(vector)


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: Any

    @property
    def texts(self) -> list[str]:
        body = self.body or {}
        given = body.get("input", body.get("prompt", []))
        return [given] if isinstance(given, str) else given


@dataclass
class Reply:
    status: int = 200
    body: Any = b""
    headers: dict[str, str] = field(default_factory=dict)
    is_cut: bool = False
    """Whether the connection is reset in the middle of the body."""

    def data(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        return json.dumps(self.body).encode()


Fault = Callable[[Request], Reply | None]


def right_answer(request: Request, dimension: int) -> Reply:
    """Answer as a server without faults."""
    if request.path == "/api/embed":
        rows = [vector_of(text, dimension) for text in request.texts]
        return Reply(body={"model": request.body["model"], "embeddings": rows, "load_duration": 1})
    if request.path == "/api/embeddings":
        return Reply(body={"embedding": vector_of(request.texts[0], dimension)})
    if request.path.endswith("/embeddings"):
        return Reply(body=openai_body([vector_of(text, dimension) for text in request.texts]))
    return Reply(404, b"404 page not found", {"Content-Type": "text/plain"})


def openai_body(rows: list[Any]) -> dict[str, Any]:
    data = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(rows)]
    return {"object": "list", "data": data, "model": "m", "usage": {"prompt_tokens": 0, "total_tokens": 0}}


def in_base64(row: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(row)}f", *row)).decode()


def openai_error(message: str, code: str | None = None, type_: str = "invalid_request_error") -> dict:
    return {"error": {"message": message, "type": type_, "param": None, "code": code}}


class FaultServer:
    """Runs while it is entered. Where ``fault`` returns nothing, the right answer is given."""

    def __init__(self, fault: Fault | None = None, dimension: int = 8) -> None:
        self.fault, self.dimension = fault, dimension
        self.requests: list[Request] = []
        self.lists: dict[str, Any] = {}
        """Bodies of other paths, such as ``/api/tags``."""
        self._came = threading.Condition()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.owner = self
        self.root = f"http://127.0.0.1:{self._server.server_address[1]}"
        self.url = f"{self.root}/v1"

    def __enter__(self) -> "FaultServer":
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, request: Request) -> Reply:
        with self._came:
            self.requests.append(request)
            self._came.notify_all()
        reply = self.fault(request) if self.fault else None
        if reply is None and request.path in self.lists:
            reply = Reply(body=self.lists[request.path])
        return reply or right_answer(request, self.dimension)

    def embeddings(self) -> list[Request]:
        """Return the requests for vectors so far."""
        return [request for request in self.requests if "/embed" in request.path]

    def wait_for(self, count: int) -> None:
        """Wait until so many requests have come."""
        with self._came:
            assert self._came.wait_for(lambda: len(self.requests) >= count, SECONDS), len(self.requests)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    owner: FaultServer

    def handle_error(self, *_: object) -> None:
        """Say nothing of clients that have gone."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path, headers, json.loads(data) if data else None)
        reply = self.server.owner.answer(request)
        body = reply.data()
        self.send_response(reply.status)
        for name, value in {"Content-Type": "application/json", **reply.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if reply.is_cut else body)
        if reply.is_cut:
            self.wfile.flush()
            # Lingering for no time at all: the other side gets a reset.
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Sleeps:
    """Takes the place of waiting: notes how long it would have been."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def __call__(self, seconds: float, stop: threading.Event) -> None:
        self.seconds.append(seconds)


def in_turn(*replies: Reply | None) -> Fault:
    """Give one reply after the other for requests of vectors, then right answers."""
    waiting = list(replies)
    lock = threading.Lock()

    def fault(request: Request) -> Reply | None:
        with lock:
            return waiting.pop(0) if "/embed" in request.path and waiting else None

    return fault


def where_text(match: str, reply: Reply) -> Fault:
    """Give a reply whenever some text holds ``match``."""
    return lambda request: reply if any(match in text for text in request.texts) else None
