"""The figures of a speed run as Markdown tables on stdout."""

from collections.abc import Sequence
from typing import Any

from benchmark.tables import markdown
from benchmark.targets import HYBRID, RANKING, SCAN, Verdict


def print_report(report: dict[str, Any]) -> None:
    """Print one block a corpus size, then programs and targets."""
    machine = report["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    print(
        f"Python {machine['python']}, {machine['system']}, {machine['cores']} cores, "
        f"{machine['loop_ns']} ns a turn of a Python loop; {versions}"
    )
    print(
        f"Sources: {', '.join(report['sources'])}; {report['questions']} questions. "
        "CPU time unless it says wall."
    )
    for size in report["sizes"]:
        _print_size(size)
    programs = {
        "`searchsvc --help`": report["programs"]["help"],
        "bare `python`": report["programs"]["python"],
    }
    made = report["vectors"]
    print(f"\nMaking vectors, {made['model']}: {made['cpu'] / made['sections'] * 1e3:.1f} CPU ms a section "
          f"({made['sections']} sections)")  # fmt: skip
    print(f"\n## Programs\n\n{_costs(programs)}")
    verdicts = [Verdict(**{k: v for k, v in item.items() if k != "met"}) for item in report["targets"]]
    print(f"\n## Targets\n\n{_targets(verdicts)}")


def _print_size(size: dict[str, Any]) -> None:
    sections = size["sections"]
    megabytes = size["markdown_bytes"] / 1e6
    print(f"\n## {sections:,} sections in {size['notes']:,} notes, {megabytes:.1f} MB of Markdown")
    for title, rows in (
        ("By words", size["words"]),
        (f"By vectors ({size['vector_count']:,} random, clustered, 384 dimensions)", size["vectors"]),
        ("Both", size["both"]),
    ):
        print(f"\n### {title}\n\n{_timings(rows)}")
    print(f"\n### Index and processes\n\n{_figures(size)}\n\n{_stages(size)}\n\n{_size_costs(size)}")


def _timings(rows: Sequence[dict[str, Any]]) -> str:
    base = next(row["p50"] for row in rows if row["name"] in (RANKING, SCAN, HYBRID))
    lines = [_timing(row, base) for row in rows]
    head = ["engine", "p50 ms", "p95 ms", "times searchsvc", "build s", "wall p50 ms", "wall p95 ms"]
    return markdown(head, lines)


def _timing(row: dict[str, Any], base: float) -> list[str]:
    if row["p50"] is None:
        return [row["name"], f"left out: {row['skipped']}", "", "", "", "", ""]
    return [
        row["name"], f"{row['p50']:.2f}", f"{row['p95']:.2f}", f"{row['p50'] / base:.2f}",
        "" if row["build"] is None else f"{row['build']:.1f}",
        f"{row['wall_p50']:.2f}", f"{row['wall_p95']:.2f}",
    ]  # fmt: skip


def _figures(size: dict[str, Any]) -> str:
    per = size["sections"]
    return markdown(
        ["what", "figure"],
        [
            ["index: CPU s (reading in workers + writing)",
             f"{size['index_cpu']:.1f} ({size['reading_cpu']:.1f} + {size['writing_cpu']:.1f})"],
            ["index: wall s", f"{size['index_wall']:.1f}"],
            ["index: CPU s per 100,000 sections", f"{size['index_cpu'] / per * 1e5:.1f}"],
            ["index again, nothing changed: CPU s, wall s",
             f"{size['reindex_cpu']:.2f}, {size['reindex_wall']:.2f}"],
            ["bytes a section, of Markdown", f"{size['markdown_bytes'] / per:.0f}"],
            ["bytes a section, of index without vectors", f"{size['index_bytes'] / per:.0f}"],
            ["bytes a section, of index with vectors", f"{size['index_bytes_with_vectors'] / per:.0f}"],
            ["serving memory: MB, of which mapped files; at most",
             f"{size['memory']['rss_mb']:.0f}, {size['memory']['of_mapped_files_mb']:.0f}; "
             f"{size['memory']['peak_mb'] or 0:.0f}"],
            ["this process with all other engines so far: MB at most", f"{size['peak_mb'] or 0:.0f}"],
        ],
    )  # fmt: skip


def _stages(size: dict[str, Any]) -> str:
    """Show each stage by itself: of indexing over a sample of notes, then of vectors."""
    stages = size["stages"]
    lines = [
        [name, f"{stages[key] / stages['sections'] * 1e6:.0f}"]
        for key, name in (
            ("parse", "parse: bytes to sections, links, metadata"),
            ("tokenise", "tokenise: own lines to terms"),
            ("records", "terms and rows to be stored, tokenising included"),
            ("postings", "postings: terms inverted"),
        )
    ]
    stored = size["vectors_storing_cpu"] / max(size["vector_count"], 1) * 1e6
    lines.append(["vectors: ready ones, quantised and stored", f"{stored:.0f}"])
    return markdown(
        [f"stage, over {stages['sections']:,} sections in one process", "CPU µs a section"], lines
    )


def _size_costs(size: dict[str, Any]) -> str:
    costs = {
        "start to first lexical answer": size["first"],
        "`serve`, start to tools/list": size["serve"],
        "bare MCPServer, start to tools/list": size["bare"],
    }
    return _costs(costs)


def _costs(costs: dict[str, dict[str, float]]) -> str:
    lines = [[name, f"{cost['cpu']:.2f}", f"{cost['wall']:.2f}"] for name, cost in costs.items()]
    return markdown(["fresh process", "CPU s", "wall s"], lines)


def _targets(verdicts: Sequence[Verdict]) -> str:
    lines = [
        [v.what, f"{v.measured:.3g} {v.unit}", f"{v.limit:g} {v.unit}", "met" if v.met else "MISSED"]
        for v in verdicts
    ]
    return markdown(["target", "measured", "at most", ""], lines)
