"""Run a query file over a corpus: ``python -m benchmark.run --corpus DIR --queries FILE --out FILE``.

Each line of the output is ``{"id", "latency_ms", "results": [{"path", "line_start", "line_end",
"score"}]}``; the lines are those of the hit's own section, 1-based and inclusive. The last line on
stdout is one JSON object: index_seconds, embed_seconds, sections, index_bytes, peak_rss_mb, p50_ms,
p95_ms. Exit codes: 0 done, 1 failed, 2 wrong usage or input, 130 interrupted.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from benchmark.core import Query, Reply, Session, modes, read_queries, say
from benchmark.errors import BenchmarkError, Parser, run_command
from benchmark.memory import peak_rss_mb
from searchsvc.items import Mode

MAX_K = 200


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return run_command(_run, arguments)


def _run(arguments: Sequence[str] | None) -> None:
    parser = Parser(prog="python -m benchmark.run", description="Run a query file over a Markdown corpus.")
    parser.add_argument("--corpus", type=Path, required=True, metavar="DIR", help="folder of Markdown files")
    parser.add_argument("--queries", type=Path, required=True, metavar="FILE", help="one query a line, JSON")
    parser.add_argument("--out", type=Path, required=True, metavar="RUN", help="where the results go, JSONL")
    parser.add_argument("--k", type=int, default=10, help="results a query, 1 to 200 (default 10)")
    parser.add_argument("--mode", choices=modes(), default="hybrid", help="(default hybrid)")
    parser.add_argument("--profile", help="card name of the embedding model (default: the product's)")
    given = parser.parse_args(arguments)
    if not 1 <= given.k <= MAX_K:
        raise BenchmarkError(f"--k is {given.k}, expected 1 to {MAX_K}")
    if given.mode == "vector" and given.profile == "none":
        raise BenchmarkError("--mode vector needs a model; give another --profile than 'none'")
    queries = read_queries(given.queries)
    if not given.out.parent.is_dir() or given.out.is_dir():
        raise BenchmarkError(f"--out {given.out}: expected a file in a folder that exists")
    profile = "none" if given.mode == "lexical" else given.profile
    with Session(given.corpus, profile) as session:
        replies = write_run(session, queries, given.out, given.mode, given.k)
        facts = asdict(session.facts)
    latencies = [reply.latency_ms for reply in replies]
    p50, p95 = (round(float(value), 3) for value in np.percentile(latencies, (50, 95)))
    facts |= {"peak_rss_mb": peak_rss_mb(), "p50_ms": p50, "p95_ms": p95}
    for name in ("index_seconds", "embed_seconds"):
        facts[name] = round(facts[name], 3)
    print(json.dumps(facts), flush=True)


def write_run(session: Session, queries: Sequence[Query], out: Path, mode: Mode, k: int) -> list[Reply]:
    """Ask all queries and write each reply as soon as it is there; return the replies."""
    replies = []
    with out.open("w", encoding="utf-8", newline="\n") as stream:
        for reply in session.ask(queries, mode, k):
            line = {"id": reply.id, "latency_ms": reply.latency_ms, "results": reply.results}
            stream.write(json.dumps(line, ensure_ascii=False) + "\n")
            replies.append(reply)
    say(f"{len(replies)} queries answered")
    return replies


if __name__ == "__main__":
    sys.exit(main())
