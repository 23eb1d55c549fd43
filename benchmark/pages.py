"""Figures of one or more commands as one page: ``python -m benchmark report --out DIR …``.

Takes what the commands wrote with ``--json`` or ``--out``, and writes ``report.html``, which needs nothing
beside it, and its pictures as PNG files.
"""

import html
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmark import plots
from benchmark.errors import BenchmarkError, Parser, run_command
from benchmark.machine import machine
from benchmark.study.intervals import estimate
from benchmark.tables import mean

Block = tuple[str, str]
"""A heading and what stands under it, in HTML."""
_ALL = "all"
_SHOWN = ("oracle", "reply", "hybrid", "hybrid+links", "lexical", "vector", "windows", "sequential", "random")
_SHARES = ("score", "evidence_recall", "evidence_cited", "citation_precision")
"""Measures of the A/B study that are shares, of which more is better."""
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 2rem auto; padding: 0 1rem }
body { color: #222 }
h1 { font-size: 1.6rem } h2 { font-size: 1.2rem; margin-top: 2.5rem; border-bottom: 1px solid #ddd }
table { border-collapse: collapse; margin: 1rem 0; font-size: .88rem; display: block; overflow-x: auto }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #eee; text-align: right }
th:first-child, td:first-child { text-align: left } thead th { border-bottom: 2px solid #bbb }
svg { max-width: 100%; height: auto } .facts { color: #666; font-size: .88rem }
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return run_command(_run, arguments)


def _run(arguments: Sequence[str] | None) -> None:
    parser = Parser(prog="python -m benchmark report", description="Make a page of figures.")
    parser.add_argument("--quality", type=Path, metavar="FILE", help="of benchmark quality --json")
    parser.add_argument("--speed", type=Path, metavar="FILE", help="of benchmark speed --json")
    parser.add_argument("--evidence", type=Path, metavar="FILE", help="of benchmark ab evidence --out")
    parser.add_argument("--ab", type=Path, metavar="FILE", help="results.json of benchmark ab llm")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="gets report.html and pictures"
    )
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    parts = {"quality": _quality, "speed": _speed, "evidence": _evidence, "ab": _ab}
    blocks: list[Block] = []
    for name, make in parts.items():
        file = getattr(given, name)
        if file is not None:
            blocks += _made(make, file, given.out)
    if not blocks:
        raise BenchmarkError("nothing to report; give at least one file of figures")
    (given.out / "report.html").write_text(page(blocks), encoding="utf-8")
    print(given.out / "report.html")


def _made(make: Any, file: Path, out: Path) -> list[Block]:
    try:
        blocks: list[Block] = make(json.loads(file.read_text(encoding="utf-8")), out)
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise BenchmarkError(
            f"{file}: not what that option takes ({type(error).__name__}: {error})"
        ) from error
    return blocks


def page(blocks: Sequence[Block]) -> str:
    """Return a page that needs no other file."""
    facts = machine()
    said = ", ".join(f"{name} {value}" for name, value in facts.items() if value and name != "versions")
    body = "\n".join(f"<h2>{html.escape(title)}</h2>\n{content}" for title, content in blocks)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>searchsvc measured</title>'
        f"<style>{_STYLE}</style></head>\n<body><h1>searchsvc measured</h1>"
        f'<p class="facts">{html.escape(said)}</p>\n{body}\n</body></html>\n'
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in HTML."""
    top = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
    lines = ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _quality(document: dict[str, Any], out: Path) -> list[Block]:
    runs = document["runs"]
    picture = plots.save(plots.quality(runs), out / "quality.png")
    rows = []
    for run in runs:
        for kind in dict.fromkeys(row["kind"] for row in run["queries"]):
            chosen = [row for row in run["queries"] if row["kind"] == kind]
            found = estimate([row["ndcg"] for row in chosen], [row["id"] for row in chosen])
            rows.append(
                [
                    run["set"], kind, str(len(chosen)), f"{run['mode']} {run['profile']}".strip(),
                    f"{found.mean:.3f}", f"{found.low:.3f} to {found.high:.3f}",
                    *(f"{mean(row[name] for row in chosen):.3f}" for name in
                      ("recall5", "recall", "mrr", "success", "document_ndcg")),
                ]
            )  # fmt: skip
    head = ["set", "kind", "queries", "ranking", "nDCG@10", "95 %", "recall@5", "recall@10", "MRR@10"]
    head += ["success@1", "document nDCG@10"]
    return [("Retrieval quality", f"{picture}\n{table(head, rows)}")]


def _speed(document: dict[str, Any], out: Path) -> list[Block]:
    sizes = document["sizes"]
    picture = plots.save(plots.growth(sizes), out / "latency.png")
    rows = [
        [
            f"{size['sections']:,}", row["name"], f"{row['p50']:.2f}", f"{row['p95']:.2f}",
        ]
        for size in sizes
        for kind in ("words", "vectors", "both")
        for row in size[kind]
    ]  # fmt: skip
    return [("Speed", f"{picture}\n{table(['sections', 'engine', 'p50 CPU ms', 'p95 CPU ms'], rows)}")]


def _evidence(document: dict[str, Any], out: Path) -> list[Block]:
    blocks = []
    for run in document["runs"]:
        rows = [row for row in run["questions"] if row["answerable"] and row["units"]]
        shown = [name for name in (*_SHOWN, run["grep"]) if name in run["policies"]]
        curves, lines = dict[str, dict[str, Any]](), list[list[str]]()
        for kind in (_ALL, *sorted({row["kind"] for row in rows})):
            chosen = [row for row in rows if kind in (row["kind"], _ALL)]
            curves[kind] = {name: _curve(chosen, name, run["budgets"]) for name in shown}
            lines += [
                [kind, name, str(len(chosen)), *(f"{mean:.2f}" for _, mean, _, _ in curves[kind][name])]
                for name in shown
            ]
        picture = plots.save(plots.evidence(curves), out / f"evidence-{run['name']}.png")
        head = ["kind", "policy", "questions", *(f"{budget:,} tok" for budget in run["budgets"])]
        blocks.append((f"Evidence by budget: {run['name']}", f"{picture}\n{table(head, lines)}"))
    return blocks


def _curve(
    rows: Sequence[dict[str, Any]], policy: str, budgets: Sequence[int]
) -> list[tuple[int, float, float, float]]:
    clusters = [row["cluster"] for row in rows]
    found = []
    for place, budget in enumerate(budgets):
        e = estimate([row["policies"][policy]["recall"][place] for row in rows], clusters, resamples=2000)
        found.append((budget, e.mean, e.low, e.high))
    return found


def _ab(document: dict[str, Any], out: Path) -> list[Block]:
    differences = {
        name: (found["mean"], found["low"], found["high"])
        for name, found in document["differences"]["all"].items()
        if name in _SHARES
    }
    picture = plots.save(plots.forest(differences, "files+searchsvc minus files"), out / "ab.png")
    arms = {name: figures["all"] for name, figures in document["arms"].items()}
    names = list(dict.fromkeys(name for arm in arms.values() for name in arm))
    rows = [[name, *(_shown(arm.get(name)) for arm in arms.values())] for name in names]
    compared = [
        [
            name, f"{d['mean']:+.3f}", f"{d['low']:+.3f} to {d['high']:+.3f}", f"{d['detectable']:.3f}",
            f"{d['wins']}/{d['ties']}/{d['losses']}", str(d["count"]),
        ]
        for name, d in document["differences"]["all"].items()
    ]  # fmt: skip
    head = ["with searchsvc minus without", "mean", "95 %", "detectable", "wins/ties/losses", "questions"]
    few = "" if document["complete"] else "<p>The run is not complete.</p>"
    return [("A/B study", f"{few}{picture}\n{table(head, compared)}\n{table(['measure', *arms], rows)}")]


def _shown(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    sys.exit(main())
