"""Fresh processes: what starting, serving and holding an index cost."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import searchsvc
from benchmark.errors import BenchmarkError
from benchmark.memory import children_cpu_seconds

_REPEATS = 7
_BARE_SERVER = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("bare")
@server.tool()
def echo(text: str) -> str:
    return text
server.run("stdio")
"""
_HANDSHAKE: tuple[dict[str, Any], ...] = (
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "benchmark", "version": "0"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
)


@dataclass(frozen=True, slots=True)
class Cost:
    """Medians over some fresh processes, in seconds."""

    cpu: float
    wall: float


def time_help() -> Cost:
    """Time ``searchsvc --help``."""
    return _repeat([sys.executable, "-m", "searchsvc", "--help"])


def time_first_answer(corpus: Path, data_dir: Path, query: str) -> Cost:
    """Time a process from its start to a lexical answer on an index that is ready, and its end."""
    return _repeat(_probe("first", corpus, data_dir, [query]))


def time_python() -> Cost:
    """Time an interpreter that does nothing, part of every other figure."""
    return _repeat([sys.executable, "-c", "pass"])


def serving_memory(corpus: Path, data_dir: Path, queries: Sequence[str]) -> dict[str, float]:
    """Return the memory, in MB, that a process holds after 20 lexical and 20 vector answers."""
    text = _run(_probe("memory", corpus, data_dir, list(queries)[:20]))
    held: dict[str, float] = json.loads(text.splitlines()[-1])
    return held


def time_embed(corpus: Path, data_dir: Path, model: str) -> Cost:
    """Time ``searchsvc embed`` on an index that has all vectors."""
    config = ["--config", str(data_dir / "config.yaml"), "--data-dir", str(data_dir)]
    return _repeat([sys.executable, "-m", "searchsvc", *config, "embed", str(corpus), "--model", model])


def memory_of_job(corpus: Path, data_dir: Path) -> dict[str, float]:
    """Return how many texts a fresh process embedded with a model that costs nothing, and its peak in MB."""
    command = [
        sys.executable,
        "-m",
        "benchmark.embedding",
        "--source",
        ".",
        "--job",
        str(corpus),
        str(data_dir),
    ]
    found: dict[str, float] = json.loads(_run(command).splitlines()[-1])
    return found


def time_serve(corpus: Path, data_dir: Path) -> tuple[Cost, Cost]:
    """Time from the start of a server to its list of tools: searchsvc, then a bare MCPServer.

    The two take turns. CPU is that of the server process up to its exit after the list.
    """
    config = ["--config", str(data_dir / "config.yaml"), "--data-dir", str(data_dir)]
    ours = [sys.executable, "-m", "searchsvc", *config, "serve", str(corpus)]
    bare = [sys.executable, "-c", _BARE_SERVER]
    pairs = [(_handshake(ours), _handshake(bare)) for _ in range(_REPEATS)]
    costs = ([pair[0] for pair in pairs], [pair[1] for pair in pairs])
    ours_cost, bare_cost = (Cost(median(c.cpu for c in side), median(c.wall for c in side)) for side in costs)
    return ours_cost, bare_cost


def _probe(action: str, corpus: Path, data_dir: Path, queries: list[str]) -> list[str]:
    arguments = [action, str(corpus), str(data_dir), json.dumps(queries)]
    return [sys.executable, "-m", "benchmark.probe", *arguments]


def environment() -> dict[str, str]:
    """Return an environment for children: these packages found, the user's settings left out."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("SEARCHSVC_")}
    places = [Path(__file__).parents[1], Path(searchsvc.__file__).parents[1]]
    paths = dict.fromkeys([*map(str, places), *filter(None, kept.get("PYTHONPATH", "").split(os.pathsep))])
    return kept | {"PYTHONPATH": os.pathsep.join(paths)}


def _repeat(command: list[str]) -> Cost:
    _run(command)
    costs = []
    for _ in range(_REPEATS):
        cpu, wall = children_cpu_seconds(), time.perf_counter()
        _run(command)
        costs.append(Cost(children_cpu_seconds() - cpu, time.perf_counter() - wall))
    return Cost(median(cost.cpu for cost in costs), median(cost.wall for cost in costs))


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
    if done.returncode:
        raise BenchmarkError(f"{' '.join(command[:4])} failed: {done.stderr.strip().splitlines()[-1:]}")
    return done.stdout


def _handshake(command: list[str]) -> Cost:
    cpu, start = children_cpu_seconds(), time.perf_counter()
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environment()
    ) as server:
        assert server.stdin is not None and server.stdout is not None
        for message in _HANDSHAKE:
            server.stdin.write(json.dumps(message).encode() + b"\n")
            server.stdin.flush()
            if "id" in message:
                _wait_for(server.stdout, message["id"])
        wall = time.perf_counter() - start
        server.stdin.close()
        try:
            server.wait(timeout=20)
        except subprocess.TimeoutExpired:
            server.kill()
    return Cost(children_cpu_seconds() - cpu, wall)


def _wait_for(stream: Any, number: int) -> None:
    """Read messages up to the reply to one request."""
    for line in stream:
        message = json.loads(line)
        if message.get("id") == number:
            if "result" not in message:
                raise BenchmarkError(f"the server refused a request: {message.get('error')}")
            return
    raise BenchmarkError("the server ended before it answered; run `searchsvc serve` by hand to see why")
