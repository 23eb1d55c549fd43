"""A model behind a server, against the server alone: ``python -m benchmark.served --source DIR [DIR ...]``.

Starts the server of llama.cpp with all-MiniLM-L6-v2 on this machine (see tests/requirements-servers.txt for
what it needs) and embeds the same texts of real Markdown sections by a bare loop of requests, with several
batch sizes and one and two connections. Then the fastest of these and the product's own client take turns.
All times are wall time of one run; the ratio is the client's speed to the bare loop's best.
"""

import importlib
import json
import os
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
_FINALISTS = 3
"""Forms of the bare loop, the fastest of a first pass, that the client is measured against."""
_ROUNDS = 4
_MAX_TOKENS = 480
"""Of a window: what the server takes at once, with a margin, so that each text is one window."""
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
    rounds: int
    """0 where it took part in the first pass alone."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return run_command(_run, arguments)


def _run(arguments: Sequence[str] | None) -> None:
    parser = Parser(prog="python -m benchmark.served", description="Measure the client of a served model.")
    parser.add_argument("--source", type=Path, nargs="+", required=True, metavar="DIR", help="real Markdown")
    parser.add_argument("--texts", type=int, default=_TEXTS, help=f"sections to embed (default {_TEXTS})")
    parser.add_argument("--rounds", type=int, default=_ROUNDS, help=f"(default {_ROUNDS})")
    cores = os.cpu_count() or 1
    parser.add_argument("--threads", type=int, default=cores, help=f"of the server (default {cores})")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure here")
    given = parser.parse_args(arguments)
    if min(given.texts, given.rounds, given.threads) < 1:
        raise BenchmarkError("--texts, --rounds and --threads are numbers from 1")
    texts = read_texts(given.source, given.texts)
    say(f"{len(texts)} sections of {statistics.median(map(len, texts)):.0f} characters (median)")
    with _server(given.threads) as (address, model):
        bare, client = measure(address, model, texts, given.rounds)
    best = max((speed for speed in bare if speed.rounds), key=lambda speed: speed.texts_a_second)
    ratio = client.texts_a_second / best.texts_a_second
    rows = sorted((*bare, client), key=lambda speed: -speed.texts_a_second)
    print(
        markdown(
            ("way", "batch", "connections", "rounds", "texts/s", "median", "to best"), _lines(rows, best)
        )
    )
    verdict = "met" if ratio >= TARGET else "missed"
    print(f"\nclient to the bare loop's best: {ratio:.2f} (target {TARGET}: {verdict})")
    if given.json:
        report = {"texts": len(texts), "speeds": [asdict(row) for row in rows], "ratio": ratio}
        given.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def _lines(rows: Sequence[Speed], best: Speed) -> Iterator[Sequence[str]]:
    for row in rows:
        share = f"{row.texts_a_second / best.texts_a_second:.2f}"
        speeds = (f"{row.texts_a_second:.1f}", f"{row.median:.1f}")
        asked = (str(row.batch or "own"), str(row.connections or "own"), str(row.rounds))
        yield row.way, *asked, *speeds, share


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
def _server(threads: int) -> Iterator[tuple[str, str]]:
    """Yield the address of a running server and the name of its model."""
    sys.path.insert(0, str(_SERVERS))
    try:
        llama = importlib.import_module("llama_server")
    except ImportError as error:
        raise BenchmarkError(f"no llama_server.py in {_SERVERS}; run from a checkout") from error
    if missing := llama.missing_packages():
        raise BenchmarkError(f"not installed: {', '.join(missing)}; see tests/requirements-servers.txt")
    with tempfile.TemporaryDirectory(prefix="searchsvc-served-", ignore_cleanup_errors=True) as folder:
        gguf, log = Path(folder) / "model.gguf", Path(folder) / "server.log"
        child: Any = llama.start(gguf, log, threads=threads)
        try:
            yield child.address, llama.MODEL
        finally:
            child.stop()


def measure(address: str, model: str, texts: Sequence[str], rounds: int) -> tuple[list[Speed], Speed]:
    """Return the speeds of the bare loop in all its forms, and of the client."""
    forms = [(batch, connections) for connections in _CONNECTIONS for batch in _BATCHES]
    choice = ModelChoice(provider="openai", model=model, base_url=f"{address}/v1", max_tokens=_MAX_TOKENS)
    client = partial(_ask_client, load(choice), texts)
    with httpx.Client(base_url=address, timeout=_TIMEOUT, trust_env=False) as http:
        calls = [partial(_ask_bare, http, model, texts, *form) for form in forms]
        calls[0]()
        spent = [[_seconds(call)] for call in calls]
        fastest = sorted(range(len(calls)), key=spent.__getitem__)[:_FINALISTS]
        _seconds(client)
        by_client: list[float] = []
        # In turns, so that other work on the machine disturbs all of them alike.
        for _ in range(rounds):
            for number in fastest:
                spent[number].append(_seconds(calls[number]))
            by_client.append(_seconds(client))
    bare = [
        _speed("bare loop", form, seconds, len(texts)) for form, seconds in zip(forms, spent, strict=True)
    ]
    return bare, _speed("client", (0, 0), by_client, len(texts))


def _seconds(call: Callable[[], None]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _speed(way: str, form: tuple[int, int], seconds: Sequence[float], count: int) -> Speed:
    """Return the speed of one way; the first pass counts only where there was no other."""
    rounds = seconds[1:] if way == "bare loop" else seconds
    taken = rounds or seconds
    return Speed(way, *form, count / min(taken), count / statistics.median(taken), len(rounds))


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
        if isinstance(outcome, Partial):
            raise BenchmarkError(f"the server did not take a text whole: {outcome.reason}")
        if len(outcome) != 1:
            raise BenchmarkError(f"a text became {len(outcome)} vectors, expected one")


if __name__ == "__main__":
    sys.exit(main())
