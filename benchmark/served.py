"""A model behind a server, against the server alone: ``python -m benchmark.served --source DIR [DIR ...]``.

Starts the server of llama.cpp with all-MiniLM-L6-v2 on this machine (see tests/requirements-servers.txt for
what it needs) and embeds the same texts of real Markdown sections by a bare loop of requests, with several
batch sizes and one and two connections, and by the product's own client. All times are wall time of one
run, in turns; the ratio is the client's speed to the bare loop's best.
"""

import importlib
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from benchmark.core import say
from benchmark.errors import BenchmarkError, Parser, run_command
from benchmark.tables import markdown
from searchsvc.embedding import Embedder, ModelChoice, Partial, Passage, load
from searchsvc.embedding.context import readable
from searchsvc.reading.note import read_note

TARGET = 0.9
"""The client is to reach this share of the bare loop's speed."""
_TEXTS = 400
_CHARACTERS = (40, 900)
"""Sections of so many characters; longer ones would be cut into windows, and the bare loop cuts nothing."""
_BATCHES = (1, 8, 16, 32, 64)
_CONNECTIONS = (1, 2)
_ROUNDS = 5
_TIMEOUT = 300.0
_SERVERS = Path(__file__).resolve().parents[1] / "tests" / "embedding" / "servers"


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast one way of asking is."""

    way: str
    batch: int
    """Texts in a request; 0 for what the client chooses."""
    connections: int
    texts_a_second: float
    """The best of all rounds."""
    median: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return run_command(_run, arguments)


def _run(arguments: Sequence[str] | None) -> None:
    parser = Parser(prog="python -m benchmark.served", description="Measure the client of a served model.")
    parser.add_argument("--source", type=Path, nargs="+", required=True, metavar="DIR", help="real Markdown")
    parser.add_argument("--texts", type=int, default=_TEXTS, help=f"sections to embed (default {_TEXTS})")
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help=f"(default {_ROUNDS})")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure here")
    given = parser.parse_args(arguments)
    if min(given.texts, given.rounds) < 1:
        raise BenchmarkError("--texts and --rounds are numbers from 1")
    texts = read_texts(given.source, given.texts)
    say(f"{len(texts)} sections of {statistics.median(map(len, texts)):.0f} characters (median)")
    with _server() as (address, model):
        bare, client = measure(address, model, texts, given.rounds)
    best = max(bare, key=lambda speed: speed.texts_a_second)
    ratio = client.texts_a_second / best.texts_a_second
    rows = sorted((*bare, client), key=lambda speed: -speed.texts_a_second)
    print(markdown(("way", "batch", "connections", "texts/s", "median", "to best"), _lines(rows, best)))
    verdict = "met" if ratio >= TARGET else "missed"
    print(f"\nclient to the bare loop's best: {ratio:.2f} (target {TARGET}: {verdict})")
    if given.json:
        report = {"texts": len(texts), "speeds": [asdict(row) for row in rows], "ratio": ratio}
        given.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def _lines(rows: Sequence[Speed], best: Speed) -> Iterator[Sequence[str]]:
    for row in rows:
        share = f"{row.texts_a_second / best.texts_a_second:.2f}"
        speeds = (f"{row.texts_a_second:.1f}", f"{row.median:.1f}")
        yield row.way, str(row.batch or "own"), str(row.connections or "own"), *speeds, share


def read_texts(folders: Sequence[Path], wanted: int) -> list[str]:
    """Return the texts of sections under the folders, as a model sees them, spread evenly; each once.

    BenchmarkError when there are none.
    """
    found: dict[str, None] = {}
    for folder in folders:
        for path in sorted(folder.rglob("*.md")):
            note = read_note(path.name, path.read_bytes())
            texts = (readable(note.text(part.body_start, part.line_end)) for part in note.sections)
            found.update((text, None) for text in texts if _CHARACTERS[0] <= len(text) <= _CHARACTERS[1])
    if not found:
        raise BenchmarkError(f"no sections of fitting length under {', '.join(map(str, folders))}")
    step = max(1.0, len(found) / wanted)
    every = list(found)
    return [every[int(number * step)] for number in range(min(wanted, len(every)))]


@contextmanager
def _server() -> Iterator[tuple[str, str]]:
    """Yield the address of a running server and the name of its model."""
    sys.path.insert(0, str(_SERVERS))
    try:
        llama = importlib.import_module("llama_server")
    except ImportError as error:
        raise BenchmarkError(f"no llama_server.py in {_SERVERS}; run from a checkout") from error
    if missing := llama.missing_packages():
        raise BenchmarkError(f"not installed: {', '.join(missing)}; see tests/requirements-servers.txt")
    with tempfile.TemporaryDirectory(prefix="searchsvc-served-", ignore_cleanup_errors=True) as folder:
        child: Any = llama.start(Path(folder) / "model.gguf", Path(folder) / "server.log")
        try:
            yield child.address, llama.MODEL
        finally:
            child.stop()


def measure(address: str, model: str, texts: Sequence[str], rounds: int) -> tuple[list[Speed], Speed]:
    """Return the speeds of the bare loop in all its forms, and of the client.

    Each round takes every way once, so that other work on the machine disturbs all of them alike.
    """
    embedder = load(ModelChoice(provider="openai", model=model, base_url=f"{address}/v1"))
    with httpx.Client(base_url=address, timeout=_TIMEOUT, trust_env=False) as http:
        forms = [(batch, connections) for connections in _CONNECTIONS for batch in _BATCHES]
        calls: list[Callable[[], None]] = [partial(_ask_bare, http, model, texts, *form) for form in forms]
        calls.append(partial(_ask_client, embedder, texts))
        spent: list[list[float]] = [[] for _ in calls]
        for number in range(rounds + 1):
            say("warming up" if not number else f"round {number} of {rounds}")
            for call, seconds in zip(calls, spent, strict=True):
                start = time.perf_counter()
                call()
                if number:
                    seconds.append(time.perf_counter() - start)
    speeds = [(len(texts) / min(seconds), len(texts) / statistics.median(seconds)) for seconds in spent]
    bare = [Speed("bare loop", *form, *speed) for form, speed in zip(forms, speeds, strict=False)]
    return bare, Speed("client", 0, 0, *speeds[-1])


def _ask_bare(http: httpx.Client, model: str, texts: Sequence[str], batch: int, connections: int) -> None:
    batches = [texts[at : at + batch] for at in range(0, len(texts), batch)]

    def ask(part: Sequence[str]) -> int:
        answer = http.post("/v1/embeddings", json={"model": model, "input": list(part)})
        return len(answer.raise_for_status().json()["data"])

    with ThreadPoolExecutor(connections) as pool:
        if sum(pool.map(ask, batches)) != len(texts):
            raise BenchmarkError("the server gave another number of vectors than it got texts")


def _ask_client(embedder: Embedder, texts: Sequence[str]) -> None:
    for outcome in embedder.encode_passages(Passage("", text) for text in texts):
        if isinstance(outcome, Partial) or len(outcome) != 1:
            raise BenchmarkError(f"a text did not become one vector: {outcome!r}")


if __name__ == "__main__":
    sys.exit(main())
