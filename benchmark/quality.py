"""Retrieval quality over query sets: ``python -m benchmark.quality --data DIR [--data DIR ...]``.

See ``benchmark.sets`` for what a set is; a folder of sets stands for all of them. Each set is indexed and
embedded once a profile, in a temporary index, and asked in every mode. Prints a Markdown table of sections
and one of documents for each mode and profile, how far the fused ranking stands above its best channel, and
with ``--baseline`` the paired differences from an earlier run.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmark.ablations import ABLATIONS, Ablation, chosen
from benchmark.compare import (
    ALLOWED_LOSS,
    FUSED,
    WANTED_LEAD,
    Change,
    Lead,
    against_best,
    against_figures,
    compare,
    kinds_of,
)
from benchmark.core import Query, Reply, Session, modes, say
from benchmark.errors import BenchmarkError, Parser, run_command
from benchmark.machine import machine
from benchmark.run import MAX_K
from benchmark.scoring import DEPTH, score
from benchmark.sets import corpus_of, find_sets, queries_of
from benchmark.tables import markdown, mean, percentile
from searchsvc.items import Mode
from searchsvc.models import DEFAULT_MODEL

Row = dict[str, Any]
"""One query of one run: id, kind, latency_ms, lines and every measure."""
MEASURES = ("ndcg", "recall5", "recall", "mrr", "success")
"""At both levels; those of documents begin with ``document_``."""
_NAMES = ("nDCG@10", "recall@5", "recall@10", "MRR@10", "success@1")
_ALONE = ("links alone", "titles alone")
"""Ablations that leave one channel."""
_NO_INTERVAL = "A dash for an interval: one query, or no two queries differ, so that nothing varies."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return run_command(_run, arguments)


def _run(arguments: Sequence[str] | None) -> None:
    parser = Parser(prog="python -m benchmark.quality", description="Measure retrieval quality on sets.")
    parser.add_argument(
        "--data", type=Path, nargs="+", action="extend", required=True, metavar="DIR", help="set folders"
    )
    parser.add_argument("--mode", choices=modes(), action="append", help="repeatable (default all)")
    parser.add_argument("--profile", action="append", help="model card name, repeatable (default: product's)")
    parser.add_argument("--k", type=int, default=DEPTH, help="results asked for, 10 to 200 (default 10)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure and query here")
    parser.add_argument("--baseline", type=Path, metavar="FILE", help="an earlier --json to compare with")
    parser.add_argument("--recipe", type=Path, metavar="FILE", help="known nDCG@10 to compare the hybrid "
                        'ranking with: {"SET": {"KIND": 0.658}}')  # fmt: skip
    parser.add_argument("--ablation", action="append", default=[], metavar="NAME", help="also with a part "
                        f"taken out, repeatable: {', '.join(ABLATIONS)}, all")  # fmt: skip
    given = parser.parse_args(arguments)
    ablations = chosen(given.ablation)
    if not DEPTH <= given.k <= MAX_K:
        raise BenchmarkError(f"--k is {given.k}, expected {DEPTH} to {MAX_K}")
    folders = find_sets(given.data)
    baseline = _read_baseline(given.baseline) if given.baseline else []
    recipe = _read_recipe(given.recipe) if given.recipe else {}
    profiles = given.profile or [DEFAULT_MODEL]
    wanted = given.mode or modes()
    runs = [run for folder in folders for run in measure(folder, wanted, profiles, given.k)]
    changed = [run for folder in folders for run in ablated(folder, ablations, profiles[0], given.k)]
    for title, table in tables(runs):
        _print(title, table)
    alone = [{**r, "mode": r["profile"], "profile": profiles[0]} for r in changed if r["profile"] in _ALONE]
    leads = against_best(runs, [*(run for run in runs if run["mode"] != FUSED), *alone])
    if leads:
        _print("The fused ranking against its best channel, nDCG@10", _leads_table(leads, -ALLOWED_LOSS))
    recipe_leads = against_figures(runs, recipe, given.recipe.name) if recipe else []
    if recipe_leads:
        _print(
            f"The fused ranking against {given.recipe.name}, nDCG@10", _leads_table(recipe_leads, WANTED_LEAD)
        )
    if baseline:
        _print(f"Differences from {given.baseline.name}", _changes_table(compare(runs, baseline)))
    for ablation in ablations:
        with_it = [run for run in runs if (run["mode"], run["profile"]) == (FUSED, profiles[0])]
        without = [{**run, "profile": profiles[0]} for run in changed if run["profile"] == ablation.name]
        _print(f"{ablation.name}, against hybrid {profiles[0]}", _changes_table(compare(without, with_it)))
    if given.json:
        leads_of = {"best channel": leads, "recipe": recipe_leads}
        document = {
            "machine": machine(),
            "runs": [*runs, *changed],
            "leads": {name: [asdict(lead) for lead in found] for name, found in leads_of.items()},
        }
        given.json.write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _print(title: str, table: str) -> None:
    print(f"\n## {title}\n\n{table}")


def measure(folder: Path, wanted: Sequence[Mode], profiles: Sequence[str], k: int) -> Iterator[Row]:
    """Index a set once a profile, ask it in every mode, and yield a run for each.

    Search by words is the same for every profile, so it runs with the first alone.
    """
    queries = queries_of(folder)
    for number, profile in enumerate(profiles):
        chosen = [mode for mode in wanted if mode != "lexical" or number == 0]
        if profile == "none":
            chosen = [mode for mode in chosen if mode != "vector"]
        if not chosen:
            continue
        say(f"{folder.name}: {profile}")
        with Session(corpus_of(folder), "none" if chosen == ["lexical"] else profile) as session:
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
    queries = queries_of(folder)
    for group in ([a for a in ablations if not a.embeds], *([a] for a in ablations if a.embeds)):
        if not group:
            continue
        with ExitStack() as stack:
            if group[0].embeds:
                stack.enter_context(group[0].applied())
            session = stack.enter_context(Session(corpus_of(folder), profile))
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
    section = asdict(score(query.facts, reply.results))
    document = asdict(score(query.facts, reply.results, "document"))
    return {
        "id": query.id,
        "kind": query.facts.get("kind", ""),
        "language": query.facts.get("lang", ""),
        "latency_ms": reply.latency_ms,
        "tokens": sum(reply.costs[:DEPTH]),
        **section,
        **{f"document_{name}": document[name] for name in MEASURES},
    }


def tables(runs: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """Yield title and Markdown of the tables of every mode and profile: of sections, then of documents."""
    for mode, profile in dict.fromkeys((run["mode"], run["profile"]) for run in runs):
        mine = [run for run in runs if (run["mode"], run["profile"]) == (mode, profile)]
        title = f"{mode} {profile}".strip()
        more = ["mean_lines", "tokens", "p50 ms"]
        yield title, _table(mine, MEASURES, more)
        yield f"{title}, whole documents", _table(mine, [f"document_{name}" for name in MEASURES], [])


def _table(runs: Sequence[Row], measures: Sequence[str], more: Sequence[str]) -> str:
    lines = []
    for run in runs:
        for name, rows in _groups(run["queries"]):
            figures = [f"{mean(row[measure] for row in rows):.3f}" for measure in measures]
            lines.append([run["set"], name, str(len(rows)), *figures, *(_more(rows) if more else [])])
    means = [mean(mean(row[name] for row in run["queries"]) for run in runs) for name in measures]
    total = sum(len(run["queries"]) for run in runs)
    lines.append(["mean of sets", "", str(total), *(f"{value:.3f}" for value in means), *("" for _ in more)])
    return markdown(["set", "kind", "queries", *_NAMES, *more], lines)


def _groups(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Yield the queries by kind, all of them, and by language, where there are several of these."""
    for kind in kinds_of(rows):
        yield kind, [row for row in rows if kind in (row["kind"], "all")]
    languages = sorted({row["language"] for row in rows})
    for language in languages if len(languages) > 1 else []:
        yield f"in {language or 'no language given'}", [row for row in rows if row["language"] == language]


def _more(rows: Sequence[Row]) -> list[str]:
    lengths = [length for row in rows for length in row["lines"]]
    return [
        f"{mean(lengths):.1f}" if lengths else "",
        f"{mean(row['tokens'] for row in rows):,.0f}",
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


def _read_recipe(file: Path) -> dict[str, dict[str, float]]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return {name: {kind: float(ndcg) for kind, ndcg in kinds.items()} for name, kinds in found.items()}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise BenchmarkError(f'{file}: expected {{"SET": {{"KIND": 0.658}}}} ({error})') from error


def _leads_table(leads: Sequence[Lead], least: float) -> str:
    """Return leads as a table; one of less than ``least`` is marked, whatever its interval."""
    head = ["profile", "set", "kind", "queries", "against", "its nDCG@10", "fused minus that", "95 %", ""]
    lines = []
    for lead in leads:
        found = lead.difference
        short = "BELOW" if found.mean < least else ""
        lines.append(
            [lead.profile, lead.set, lead.kind, str(lead.queries), lead.other, f"{lead.ndcg:.3f}",
             f"{found.mean:+.3f}", found.interval, short]
        )  # fmt: skip
    return f"{markdown(head, lines)}\n\n{_NO_INTERVAL}"


def _changes_table(changes: Sequence[Change]) -> str:
    head = ["mode", "set", "kind", "queries", "nDCG@10", "95 %", "", "recall@10", "95 %", "document nDCG@10"]
    lines = []
    for change in changes:
        cells = [change.mode, change.set, change.kind, str(change.queries)]
        ndcg, recall, document = (change.differences[m] for m in ("ndcg", "recall", "document_ndcg"))
        cells += [f"{ndcg.mean:+.3f}", ndcg.interval, ndcg.verdict, f"{recall.mean:+.3f}", recall.interval]
        lines.append([*cells, f"{document.mean:+.3f} {document.interval}"])
    return f"{markdown([*head[:-1], f'{head[-1]} (95 %)'], lines)}\n\n{_NO_INTERVAL}"


if __name__ == "__main__":
    sys.exit(main())
