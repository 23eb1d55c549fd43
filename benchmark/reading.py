"""Token economy and speed of the reading tools: ``python -m benchmark.reading --data DIR [DIR ...]``.

Economy: what an outline, and an outline with one section, cost against the whole note, over all notes of
500 tokens or more. Speed: an outline from the file against markdown-it-py's own block parse of the same
text, an outline out of memory with 10,000 files visited in turn, and 200 sections of 100 files in one call.
Times are CPU milliseconds of the process; ratios are of one run.
"""

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

from benchmark.errors import BenchmarkError, Parser, run_command
from benchmark.tables import markdown
from searchsvc.config import Config, make_root
from searchsvc.documents import Documents
from searchsvc.library import Library
from searchsvc.reading.decode import decode
from searchsvc.reading.outline import outline_of

_LEAST_TOKENS = 500
_ROUNDS = 5
_MANY_FILES = 10_000
_FILES, _SECTIONS = 100, 200


@dataclass(frozen=True, slots=True)
class Economy:
    """Tokens of one corpus, summed over its notes."""

    corpus: str
    notes: int
    whole: int
    tree: int
    section: int
    """Of each note its section of median cost (own text), as md_section returns it."""
    median: int
    """Tokens of the section of median cost of the whole corpus, with a header of mean cost."""

    @property
    def tree_saves(self) -> float:
        """Share of the tokens that the outline spares."""
        return 1 - self.tree / self.whole

    @property
    def both_save(self) -> float:
        """Share that the outline and the note's own median section spare together."""
        return 1 - (self.tree + self.section) / self.whole

    @property
    def both_save_overall(self) -> float:
        """Share that the outline and a section of the corpus's median cost spare together."""
        return 1 - (self.tree + self.notes * self.median) / self.whole


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return run_command(_run, arguments)


def _run(arguments: Sequence[str] | None) -> None:
    parser = Parser(prog="python -m benchmark.reading", description="Measure the reading tools.")
    parser.add_argument(
        "--data",
        nargs="+",
        action="extend",
        type=Path,
        required=True,
        help="folders of notes, or sets with corpus/",
    )
    parser.add_argument("--json", type=Path, help="file for the figures")
    options = parser.parse_args(arguments)
    corpora = [path / "corpus" if (path / "corpus").is_dir() else path for path in options.data]
    for corpus in corpora:
        if not corpus.is_dir():
            raise BenchmarkError(f"{corpus} is no folder")
    economies = [economy for economy in map(_economy, corpora) if economy.notes]
    if not economies:
        raise BenchmarkError(f"no note of {_LEAST_TOKENS} tokens or more in the folders given")
    economies.append(_pooled(economies))
    speed = _speed(corpora)
    print(_economy_table(economies), "", _speed_table(speed), sep="\n")
    if options.json:
        figures = {"economy": [asdict(economy) for economy in economies], "speed": speed}
        options.json.write_text(json.dumps(figures, indent=2), encoding="utf-8")


def _desk(folder: Path) -> Documents:
    config = Config(roots=(make_root(folder),))
    return Documents(Library(config.roots, config), config)


def _economy(folder: Path) -> Economy:
    desk = _desk(folder)
    notes = whole = trees = sections = bare = 0
    costs: list[int] = []
    for path in desk.library.notes(desk.library.roots[0]):
        tree = desk.tree(path)
        if tree.cost < _LEAST_TOKENS or not tree.rows:
            continue
        outline = desk.library.outline(desk.library.find(path).place)
        median = statistics.median_low(outline.costs)
        costs += outline.costs
        notes += 1
        whole += tree.cost
        trees += desk.md_tree(path, max_tokens=20_000).cost
        row = tree.rows[outline.costs.index(median)]
        bare += median
        sections += desk.md_section(row.id, include_subsections=False, max_tokens=20_000).cost
    name = folder.parent.name if folder.name == "corpus" else folder.name
    header = (sections - bare) // max(notes, 1)
    return Economy(name, notes, whole, trees, sections, statistics.median_low(costs) + header if costs else 0)


def _pooled(economies: Sequence[Economy]) -> Economy:
    sums = [sum(getattr(e, name) for e in economies) for name in ("notes", "whole", "tree", "section")]
    median = sum(e.notes * e.median for e in economies) // max(sums[0], 1)
    notes, whole, tree, section = sums
    return Economy("pooled", notes, whole, tree, section, median)


def _speed(corpora: Sequence[Path]) -> dict[str, Any]:
    texts = [file.read_bytes() for corpus in corpora for file in sorted(corpus.rglob("*.md"))]
    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(["normalize", "block"])
    decoded = [text.decode("utf-8", "replace") for text in texts]
    bare = _cpu(lambda: _each(parser.parse, decoded))
    fresh = _cpu(lambda: _each(lambda data: outline_of("note.md", decode(data)), texts))
    return {
        "files": len(texts),
        "mean_bytes": sum(map(len, texts)) // len(texts),
        "bare_ms": bare / len(texts),
        "fresh_ms": fresh / len(texts),
        "fresh_ratio": fresh / bare,
        **_many_files(texts),
    }


def _each(call: Callable[[Any], Any], items: Sequence[Any]) -> None:
    """Call for each item and keep nothing: results that pile up would cost the collector's time."""
    for item in items:
        call(item)


def _many_files(texts: Sequence[bytes]) -> dict[str, Any]:
    """Measure cached outlines and the reading of many sections, in a folder of many files."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(_MANY_FILES):
            inside = folder / f"{number % 100:02}"
            inside.mkdir(exist_ok=True)
            (inside / f"note-{number}.md").write_bytes(texts[number % len(texts)])
        desk = _desk(folder)
        paths = desk.library.notes(desk.library.roots[0])

        def visit() -> None:
            for path in paths:
                desk.library.outline(desk.library.find(path).place)

        first = _cpu(visit, rounds=1)
        again = _cpu(visit, rounds=2)
        select = _selection(desk, paths)
        calls = [_cpu(lambda: desk.get_documents(select, max_tokens=20_000), rounds=1) for _ in range(9)]
        large = _unbounded(folder)
        whole = [_cpu(lambda: large.get_documents(select, max_tokens=10**7), rounds=1) for _ in range(9)]
    return {
        "first_visit_ms": first / len(paths),
        "cached_ms": again / len(paths),
        "get_documents_p50_ms": statistics.median(calls),
        "get_documents_whole_p50_ms": statistics.median(whole),
    }


def _unbounded(folder: Path) -> Documents:
    config = Config(roots=(make_root(folder),), max_reply_tokens=10**7)
    return Documents(Library(config.roots, config), config)


def _selection(desk: Documents, paths: Sequence[str]) -> list[str]:
    """Return ids of two sections from each of 100 files."""
    select: list[str] = []
    for path in paths:
        rows = desk.tree(path).rows
        if len(rows) > 3:
            select += [rows[1].id, rows[-1].id]
        if len(select) >= _SECTIONS:
            break
    return select[:_SECTIONS]


def _cpu(call: Callable[[], Any], rounds: int = _ROUNDS) -> float:
    """Return the CPU milliseconds of the quickest round."""
    spent = []
    for _ in range(rounds):
        start = time.process_time_ns()
        call()
        spent.append(time.process_time_ns() - start)
    return min(spent) / 1e6


def _economy_table(economies: Sequence[Economy]) -> str:
    rows = [
        [
            e.corpus,
            str(e.notes),
            str(e.whole),
            f"{e.tree_saves:.1%}",
            f"{e.both_save:.1%}",
            f"{e.both_save_overall:.1%}",
        ]
        for e in economies
    ]
    head = [
        "corpus",
        "notes",
        "tokens",
        "md_tree saves",
        "+ the note's median section",
        "+ the corpus's median section",
    ]
    return markdown(head, rows)


def _speed_table(speed: dict[str, Any]) -> str:
    rows = [
        ["outline from the file / bare block parse", f"{speed['fresh_ratio']:.2f} ×", "≤ 1.3 ×"],
        ["outline from the file", f"{speed['fresh_ms']:.3f} ms", ""],
        ["outline out of memory, 10,000 files in turn", f"{speed['cached_ms']:.3f} ms", "≤ 0.1 ms"],
        [
            "get_documents, 200 sections of 100 files, 20,000 tokens",
            f"{speed['get_documents_p50_ms']:.0f} ms",
            "",
        ],
        ["the same without a budget, p50", f"{speed['get_documents_whole_p50_ms']:.0f} ms", "≤ 100 ms"],
    ]
    return markdown(["what", "CPU", "target"], rows)


if __name__ == "__main__":
    sys.exit(main())
