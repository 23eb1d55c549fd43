"""Figures of one or more commands as one page: ``python -m benchmark report --out DIR …``.

Takes what the commands wrote with ``--json`` or ``--out``, and writes ``report.html``, which needs nothing
beside it, and its pictures as PNG files.
"""

import html
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmark import plots
from benchmark.errors import BenchmarkError, Parser, run_command
from benchmark.study.arms import ANSWERABILITY, tally_text
from benchmark.study.intervals import Estimate, estimate
from benchmark.tables import mean

Block = tuple[str, str]
"""A heading and what stands under it, in HTML."""
_ALL = "all"
_SHOWN = ("oracle", "reply", "hybrid", "hybrid+links", "lexical", "vector", "windows", "sequential", "random")
_SHARES = ("score", *ANSWERABILITY, "evidence_recall", "evidence_cited", "citation_precision")
"""Measures of the A/B study that are shares, of which more is better."""
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 2rem auto; padding: 0 1rem }
body { color: #222 }
h1 { font-size: 1.6rem } h2 { font-size: 1.2rem; margin-top: 2.5rem; border-bottom: 1px solid #ddd }
table { border-collapse: collapse; margin: 1rem 0; font-size: .88rem; display: block; overflow-x: auto }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #eee; text-align: right }
td { white-space: nowrap }
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
    blocks: list[Block] = []
    for name in PARTS:
        file = getattr(given, name)
        if file is not None:
            blocks += _made(name, file, given.out)
    if not blocks:
        raise BenchmarkError("nothing to report; give at least one file of figures")
    print(_write(blocks, given.out))


def _made(name: str, file: Path, out: Path) -> list[Block]:
    try:
        return PARTS[name](json.loads(file.read_text(encoding="utf-8")), out)
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise BenchmarkError(
            f"{file}: not what that option takes ({type(error).__name__}: {error})"
        ) from error


def write_page(name: str, document: dict[str, Any], out: Path) -> Path:
    """Write the page of one command's figures and return its file; ``name`` is one of ``PARTS``."""
    out.mkdir(parents=True, exist_ok=True)
    return _write(PARTS[name](document, out), out)


def _write(blocks: Sequence[Block], out: Path) -> Path:
    file = out / "report.html"
    file.write_text(page(blocks), encoding="utf-8")
    return file


def page(blocks: Sequence[Block]) -> str:
    """Return a page that needs no other file."""
    body = "\n".join(f"<h2>{html.escape(title)}</h2>\n{content}" for title, content in blocks)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>searchsvc measured</title>'
        f"<style>{_STYLE}</style></head>\n<body><h1>searchsvc measured</h1>\n{body}\n</body></html>\n"
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in HTML."""
    top = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
    lines = ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _facts(document: Mapping[str, Any]) -> str:
    """Return where figures come from: the machine and commit that measured them, not those of the page."""
    machine = document.get("machine") or {"searchsvc": document.get("version", "")}
    said = ", ".join(f"{name} {value}" for name, value in machine.items() if value and name != "versions")
    return f'<p class="facts">{html.escape(said)}</p>' if said else ""


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
                    f"{found.mean:.3f}", _interval(found),
                    *(f"{mean(row[name] for row in chosen):.3f}" for name in
                      ("recall5", "recall", "mrr", "success", "document_ndcg")),
                ]
            )  # fmt: skip
    head = ["set", "kind", "queries", "ranking", "nDCG@10", "95 %", "recall@5", "recall@10", "MRR@10"]
    head += ["success@1", "document nDCG@10"]
    caption = f"<p>Kinds of fewer than {plots.FEW} queries are in the table alone.</p>"
    blocks = [("Retrieval quality", f"{_facts(document)}{picture}{caption}\n{table(head, rows)}")]
    leads = document.get("leads", {}).get("best channel", [])
    return [*blocks, *([_leads(leads)] if leads else [])]


def _leads(leads: Sequence[Mapping[str, Any]]) -> Block:
    rows = [
        [
            lead["set"], lead["kind"], str(lead["queries"]), lead["profile"], lead["other"],
            f"{lead['difference']['mean']:+.3f}",
            "–" if lead["difference"]["low"] is None
            else f"{lead['difference']['low']:+.3f} to {lead['difference']['high']:+.3f}",
        ]
        for lead in leads
    ]  # fmt: skip
    head = ["set", "kind", "queries", "model", "best channel", "fused minus that, nDCG@10", "95 %"]
    return "The fused ranking against its best channel", table(head, rows)


def _interval(found: Estimate) -> str:
    if found.low is None or found.high is None:
        return found.note("query")
    note = found.note("query")
    return f"{found.low:.3f} to {found.high:.3f}{note and f' ({note})'}"


def _speed(document: dict[str, Any], out: Path) -> list[Block]:
    sizes = document["sizes"]
    picture = plots.save(plots.growth(sizes), out / "latency.png")
    rows = [
        [f"{size['sections']:,}", row["name"], *_times(row)]
        for size in sizes
        for kind in ("words", "vectors", "both")
        for row in size[kind]
    ]
    head = ["sections", "engine", "p50 CPU ms", "p95 CPU ms", "p50 wall ms", "p95 wall ms"]
    return [("Speed", f"{_facts(document)}{picture}\n{table(head, rows)}")]


def _times(row: Mapping[str, Any]) -> list[str]:
    if row["p50"] is None:
        return [f"left out: {row['skipped']}", "", "", ""]
    return [f"{row[name]:.2f}" for name in ("p50", "p95", "wall_p50", "wall_p95")]


def _evidence(document: dict[str, Any], out: Path) -> list[Block]:
    blocks = []
    for run in document["runs"]:
        rows = [row for row in run["questions"] if row["answerable"] and row["units"]]
        shown = [name for name in (*_SHOWN, run["grep"]) if name in run["policies"]]
        curves, lines = dict[str, dict[str, Any]](), list[list[str]]()
        for kind in (_ALL, *sorted({row["kind"] for row in rows})):
            chosen = [row for row in rows if kind in (row["kind"], _ALL)]
            found = {name: _curve(chosen, name, run["budgets"]) for name in shown}
            lines += [
                [kind, name, str(len(chosen)), *(_with_interval(point) for point in found[name])]
                for name in shown
            ]
            counts = f"{len(chosen)} questions, {len({row['cluster'] for row in chosen})} documents"
            curves[f"{kind}: {counts}"] = {
                name: [(budget, e.mean, e.low, e.high) for budget, e in points]
                for name, points in found.items()
            }
        picture = plots.save(plots.evidence(curves), out / f"evidence-{run['name']}.png")
        head = ["kind", "policy", "questions", *(f"{budget:,} tok" for budget in run["budgets"])]
        content = f"{_facts(document)}{picture}\n{table(head, lines)}"
        blocks.append((f"Evidence by budget: {run['name']}", content))
    return blocks


def _curve(rows: Sequence[dict[str, Any]], policy: str, budgets: Sequence[int]) -> list[tuple[int, Estimate]]:
    clusters = [row["cluster"] for row in rows]
    return [
        (
            budget,
            estimate([row["policies"][policy]["recall"][place] for row in rows], clusters, resamples=2000),
        )
        for place, budget in enumerate(budgets)
    ]


def _with_interval(point: tuple[int, Estimate]) -> str:
    found = point[1]
    if found.low is None or found.high is None:
        return f"{found.mean:.2f} [–]"
    return f"{found.mean:.2f} [{found.low:.2f}, {found.high:.2f}]"


def _ab(document: dict[str, Any], out: Path) -> list[Block]:
    groups = document["differences"]
    shown = {name: entry for name, entry in groups["all"].items() if name in _SHARES}
    for group in ("kinds", "tags"):
        shown |= {f"score, {name}": entry["score"] for name, entry in groups[group].items()}
    shown = {name: entry for name, entry in shown.items() if entry["mean"] is not None}
    picture = plots.save(plots.forest(shown, "files+searchsvc minus files"), out / "ab.png")
    arms = {name: figures["all"] for name, figures in document["arms"].items()}
    names = list(dict.fromkeys(name for arm in arms.values() for name in arm))
    rows = [[name, *(_shown(arm.get(name)) for arm in arms.values())] for name in names]
    compared = [_compared(name, entry) for name, entry in (groups["all"] | shown).items()]
    head = ["with searchsvc minus without", "mean", "95 %", "detectable", "wins/ties/losses", "questions"]
    few = "" if document["complete"] else "<p>The run is not complete.</p>"
    content = f"{_facts(document)}{few}{picture}\n{table(head, compared)}\n{table(['measure', *arms], rows)}"
    return [("A/B study", content)]


def _compared(name: str, entry: Mapping[str, Any]) -> list[str]:
    interval = entry["note"]
    if entry["low"] is not None:
        interval = f"{entry['low']:+.3f} to {entry['high']:+.3f}{interval and f' ({interval})'}"
    return [
        name,
        "–" if entry["mean"] is None else f"{entry['mean']:+.3f}",
        interval,
        "–" if entry["detectable"] is None else f"{entry['detectable']:.3f}",
        tally_text(entry),
        str(entry["count"]),
    ]


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_shown(count)}" for name, count in value.items()) or "–"
    if value is None:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


PARTS: dict[str, Callable[[dict[str, Any], Path], list[Block]]] = {
    "quality": _quality,
    "speed": _speed,
    "evidence": _evidence,
    "ab": _ab,
}
"""What makes the blocks of a command's figures, by the option that takes them."""


if __name__ == "__main__":
    sys.exit(main())
