"""Retrieval quality over query sets: ``python -m benchmark.quality --data DIR [--data DIR ...]``.

A set is a folder with ``corpus/`` and ``queries.jsonl``; a folder of sets stands for all of them. Each
set is indexed and embedded once a profile, in a temporary index, and asked in every mode. Prints one
Markdown table a mode and profile, and with ``--baseline`` the paired differences from an earlier run.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmark.ablations import ABLATIONS, Ablation, chosen
from benchmark.compare import Change, compare
from benchmark.core import Query, Reply, Session, modes, read_queries, say
from benchmark.errors import BenchmarkError, Parser, run_command
from benchmark.machine import machine
from benchmark.run import MAX_K
from benchmark.scoring import DEPTH, score
from benchmark.tables import markdown, mean, percentile
from searchsvc.items import Mode
from searchsvc.models import DEFAULT_MODEL

Row = dict[str, Any]
"""One query of one run: id, kind, latency_ms, lines and every measure."""
MEASURES = ("ndcg", "recall", "mrr", "success", "document_ndcg")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return run_command(_run, arguments)


def _run(arguments: Sequence[str] | None) -> None:
    parser = Parser(prog="python -m benchmark.quality", description="Measure retrieval quality on sets.")
    parser.add_argument("--data", type=Path, action="append", required=True, metavar="DIR", help="set folder")
    parser.add_argument("--mode", choices=modes(), action="append", help="repeatable (default all)")
    parser.add_argument("--profile", action="append", help="model card name, repeatable (default: product's)")
    parser.add_argument("--k", type=int, default=DEPTH, help="results asked for, 10 to 200 (default 10)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure and query here")
    parser.add_argument("--baseline", type=Path, metavar="FILE", help="an earlier --json to compare with")
    parser.add_argument("--ablation", action="append", default=[], metavar="NAME", help="also with a part "
                        f"taken out, repeatable: {', '.join(ABLATIONS)}, all")  # fmt: skip
    given = parser.parse_args(arguments)
    ablations = chosen(given.ablation)
    if not DEPTH <= given.k <= MAX_K:
        raise BenchmarkError(f"--k is {given.k}, expected {DEPTH} to {MAX_K}")
    folders = find_sets(given.data)
    baseline = _read_baseline(given.baseline) if given.baseline else []
    profiles = given.profile or [DEFAULT_MODEL]
    wanted = given.mode or modes()
    runs = [run for folder in folders for run in measure(folder, wanted, profiles, given.k)]
    changed = [run for folder in folders for run in ablated(folder, ablations, profiles[0], given.k)]
    for title, table in tables(runs):
        print(f"\n## {title}\n\n{table}")
    if baseline:
        print(f"\n## Differences from {given.baseline.name}\n\n{_changes_table(compare(runs, baseline))}")
    for ablation in ablations:
        with_it = [run for run in runs if (run["mode"], run["profile"]) == ("hybrid", profiles[0])]
        without = [{**run, "profile": profiles[0]} for run in changed if run["profile"] == ablation.name]
        title = f"{ablation.name}, against hybrid {profiles[0]}"
        print(f"\n## {title}\n\n{_changes_table(compare(without, with_it))}")
    if given.json:
        document = {"machine": machine(), "runs": [*runs, *changed]}
        given.json.write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def find_sets(folders: Sequence[Path]) -> list[Path]:
    """Return the set folders among and right below the folders; ``BenchmarkError`` when one has none."""
    found: dict[Path, None] = {}
    for folder in folders:
        inner = sorted(path for path in folder.iterdir()) if folder.is_dir() else []
        sets = [path for path in (folder, *inner) if _is_set(path)]
        if not sets:
            raise BenchmarkError(f"{folder}: expected a folder with corpus/ and queries.jsonl, or of such")
        found |= dict.fromkeys(path.resolve() for path in sets)
    return list(found)


def _is_set(folder: Path) -> bool:
    return (folder / "corpus").is_dir() and (folder / "queries.jsonl").is_file()


def measure(folder: Path, wanted: Sequence[Mode], profiles: Sequence[str], k: int) -> Iterator[Row]:
    """Index a set once a profile, ask it in every mode, and yield a run for each.

    Search by words is the same for every profile, so it runs with the first alone.
    """
    queries = read_queries(folder / "queries.jsonl")
    for number, profile in enumerate(profiles):
        chosen = [mode for mode in wanted if mode != "lexical" or number == 0]
        if profile == "none":
            chosen = [mode for mode in chosen if mode != "vector"]
        if not chosen:
            continue
        say(f"{folder.name}: {profile}")
        with Session(folder / "corpus", "none" if chosen == ["lexical"] else profile) as session:
            for mode in chosen:
                replies = session.ask(queries, mode, k)
                rows = [_row(query, reply) for query, reply in zip(queries, replies, strict=True)]
                shown = "" if mode == "lexical" else profile
                yield {
                    "set": folder.name, "mode": mode, "profile": shown, **asdict(session.facts),
                    "queries": rows,
                }  # fmt: skip


def ablated(folder: Path, ablations: Sequence[Ablation], profile: str, k: int) -> Iterator[Row]:
    """Yield a hybrid run of a set for each ablation, which stands in the place of the profile."""
    queries = read_queries(folder / "queries.jsonl")
    for group in ([a for a in ablations if not a.embeds], *([a] for a in ablations if a.embeds)):
        if not group:
            continue
        with ExitStack() as stack:
            if group[0].embeds:
                stack.enter_context(group[0].applied())
            session = stack.enter_context(Session(folder / "corpus", profile))
            for ablation in group:
                say(f"{folder.name}: {ablation.name}")
                with ablation.applied():
                    replies = session.ask(queries, "hybrid", k)
                    rows = [_row(query, reply) for query, reply in zip(queries, replies, strict=True)]
                yield {
                    "set": folder.name, "mode": "hybrid", "profile": ablation.name,
                    **asdict(session.facts), "queries": rows,
                }  # fmt: skip


def _row(query: Query, reply: Reply) -> Row:
    section = score(query.facts, reply.results)
    document = score(query.facts, reply.results, "document")
    return {
        "id": query.id,
        "kind": query.facts.get("kind", ""),
        "latency_ms": reply.latency_ms,
        **asdict(section),
        "document_ndcg": document.ndcg,
    }


def tables(runs: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """Yield title and Markdown table of every mode and profile."""
    for mode, profile in dict.fromkeys((run["mode"], run["profile"]) for run in runs):
        mine = [run for run in runs if (run["mode"], run["profile"]) == (mode, profile)]
        lines = [line for run in mine for line in _lines(run)]
        means = [mean(mean(row[name] for row in run["queries"]) for run in mine) for name in MEASURES]
        total = sum(len(run["queries"]) for run in mine)
        lines.append(["mean of sets", "", str(total), *(f"{value:.3f}" for value in means), "", ""])
        head = ["set", "kind", "queries", "nDCG@10", "recall@10", "MRR@10", "success@1"]
        yield (
            f"{mode} {profile}".strip(),
            markdown([*head, "document nDCG@10", "mean_lines", "p50 ms"], lines),
        )


def _lines(run: Row) -> Iterator[list[str]]:
    kinds = sorted({row["kind"] for row in run["queries"]})
    for kind in [*kinds, "all"] if len(kinds) > 1 else kinds:
        rows = [row for row in run["queries"] if kind in (row["kind"], "all")]
        lengths = [length for row in rows for length in row["lines"]]
        yield [
            run["set"],
            kind,
            str(len(rows)),
            *(f"{mean(row[name] for row in rows):.3f}" for name in MEASURES),
            f"{mean(lengths):.1f}" if lengths else "",
            f"{percentile((row['latency_ms'] for row in rows), 50):.2f}",
        ]


def _read_baseline(file: Path) -> list[Row]:
    try:
        runs: list[Row] = json.loads(file.read_text(encoding="utf-8"))["runs"]
    except OSError as error:
        raise BenchmarkError(f"no baseline at {file}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise BenchmarkError(f"{file}: expected what --json has written") from error
    return runs


def _changes_table(changes: Sequence[Change]) -> str:
    head = ["mode", "set", "kind", "queries", "nDCG@10", "95 %", "", "recall@10", "95 %", "document nDCG@10"]
    lines = []
    for change in changes:
        cells = [change.mode, change.set, change.kind, str(change.queries)]
        ndcg, recall, document = (change.differences[m] for m in ("ndcg", "recall", "document_ndcg"))
        cells += [f"{ndcg.mean:+.3f}", ndcg.interval, ndcg.verdict, f"{recall.mean:+.3f}", recall.interval]
        lines.append([*cells, f"{document.mean:+.3f} {document.interval}"])
    return markdown([*head[:-1], f"{head[-1]} (95 %)"], lines)


if __name__ == "__main__":
    sys.exit(main())
