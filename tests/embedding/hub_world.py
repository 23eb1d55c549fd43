"""A hub on this machine: it serves folders as the Hugging Face hub serves repositories, and keeps a list."""

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

COMMIT = "c0ffee" * 6 + "c0ff"
LATER = "decade" * 6 + "deca"


class Hub:
    """What the hub serves, and what happened."""

    def __init__(self) -> None:
        self.repositories: dict[str, Path] = {}
        self.requests: list[str] = []
        self.address = ""
        self.commit = COMMIT
        self.cut = ""
        """Name of a file of which only the first half is sent."""

    def files(self, repository: str) -> list[Path]:
        root = self.repositories[repository]
        return sorted(file for file in root.rglob("*") if file.is_file() and ".cache" not in file.parts)

    def reply(self, path: str) -> tuple[int, dict[str, str], bytes]:
        parts = unquote(urlsplit(path).path).strip("/").split("/")
        if parts[:2] == ["api", "models"]:
            return self._api("/".join(parts[2:4]), parts[4:])
        if len(parts) < 5:
            return 404, {}, b""
        repository, (word, revision, *name) = "/".join(parts[:2]), parts[2:]
        file = self.repositories.get(repository, Path("/nowhere")) / "/".join(name)
        if repository not in self.repositories:
            return 404, {"X-Error-Code": "RepoNotFound"}, b""
        if word != "resolve" or revision not in ("main", COMMIT, LATER):
            return 404, {"X-Error-Code": "RevisionNotFound"}, b""
        if not file.is_file():
            return 404, {"X-Error-Code": "EntryNotFound"}, b""
        content = file.read_bytes()
        commit = self.commit if revision == "main" else revision
        headers = {"ETag": f'"{hashlib.sha1(content).hexdigest()}"', "X-Repo-Commit": commit}
        return 200, headers, content

    def _api(self, repository: str, rest: list[str]) -> tuple[int, dict[str, str], bytes]:
        if repository not in self.repositories:
            return 404, {"X-Error-Code": "RepoNotFound"}, b""
        root = self.repositories[repository]
        answer: Any = {
            "id": repository,
            "modelId": repository,
            "sha": self.commit,
            "siblings": [],
            "tags": [],
        }
        if rest and rest[0] == "tree":
            answer = [
                {"type": "file", "path": file.relative_to(root).as_posix(), "size": file.stat().st_size,
                 "oid": hashlib.sha1(file.read_bytes()).hexdigest()}
                for file in self.files(repository)
            ]  # fmt: skip
        return 200, {"Content-Type": "application/json"}, json.dumps(answer).encode()


@contextmanager
def serve() -> Iterator[Hub]:
    """Run a hub for the length of a block."""
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self._reply(with_body=False)

        def do_GET(self) -> None:
            self._reply(with_body=True)

        def _reply(self, *, with_body: bool) -> None:
            hub.requests.append(f"{self.command} {self.path}")
            status, headers, body = hub.reply(self.path)
            if with_body and hub.cut and self.path.endswith(hub.cut):
                body = body[: len(body) // 2]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Connection", "close")
            self.end_headers()
            if with_body:
                self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    hub.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def write_card(file: Path, shipped: str, **changes: object) -> Path:
    """Write a card like that of a model that ships, with changes; None takes a field away."""
    import yaml

    from searchsvc.embedding.cards import data_folder

    fields = yaml.safe_load((data_folder() / f"{shipped}.yaml").read_text(encoding="utf-8"))
    fields = {**fields, "id": "mine", **changes}
    plain = {name: value for name, value in fields.items() if value is not None}
    file.write_text(yaml.safe_dump(plain, allow_unicode=True), encoding="utf-8")
    return file
