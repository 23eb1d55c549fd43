"""What each tool costs against reading whole files: ``python -m benchmark.tokens --data DIR [DIR ...]``.

By note, over all notes of 500 tokens or more: what a reading tool returns for it against the note. By
question, over sets with known answers: the reply of a search tool against the whole notes that hold the
answer, and how often the reply holds text of the answer. Replies are what an agent gets, headers included;
tokens are the product's own estimate on both sides.
"""

import json
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmark.core import Query, Session, say
from benchmark.errors import Parser, run_command
from benchmark.sets import corpus_of, find_sets, queries_of
from benchmark.tables import markdown
from searchsvc.documents import Documents
from searchsvc.items import Answer

_LEAST_TOKENS = 500
_ALL = 20_000
BUDGETS = (500, 1000, 2000, 4000)


@dataclass(frozen=True, slots=True)
class Cost:
    """One tool over one set."""

    set: str
    tool: str
    calls: int
    tokens: int
    """Of all replies."""
    whole: int
    """Of the whole notes that they stand for."""
    holds: float | None = None
    """Share of the questions whose reply holds text of the answer; none for tools that take no question."""

    @property
    def saves(self) -> float:
        """Share of the tokens that is spared."""
        return 1 - self.tokens / self.whole if self.whole else 0.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return run_command(_run, arguments)


def _run(arguments: Sequence[str] | None) -> None:
    parser = Parser(prog="python -m benchmark.tokens", description="Measure what each tool costs.")
    parser.add_argument(
        "--data", type=Path, nargs="+", action="extend", required=True, metavar="DIR", help="sets of queries"
    )
    parser.add_argument("--profile", help="model card name (default: the product's)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure here")
    given = parser.parse_args(arguments)
    costs = [cost for folder in find_sets(given.data) for cost in measure(folder, given.profile)]
    if len({cost.set for cost in costs}) > 1:
        costs += pooled(costs)
    print(table([cost for cost in costs if cost.holds is None]))
    print()
    print(table([cost for cost in costs if cost.holds is not None]))
    if given.json:
        given.json.write_text(json.dumps([asdict(cost) for cost in costs], indent=1), encoding="utf-8")


def measure(folder: Path, profile: str | None) -> Iterator[Cost]:
    """Yield the cost of every tool on one set."""
    queries = queries_of(folder)
    say(f"{folder.name}: {len(queries)} questions")
    with Session(corpus_of(folder), profile) as session:
        yield from _by_note(folder.name, session.service.documents)
        yield from _by_question(folder.name, session, queries)


def _by_note(name: str, desk: Documents) -> Iterator[Cost]:
    paths = desk.library.notes(desk.library.roots[0])
    trees = {path: desk.tree(path) for path in paths}
    large = [path for path in paths if trees[path].cost >= _LEAST_TOKENS and trees[path].rows]
    whole = sum(trees[path].cost for path in large)
    tools: dict[str, Callable[[str], int]] = {
        "md_tree": lambda path: desk.md_tree(path, max_tokens=_ALL).cost,
        "index_md": lambda path: desk.index_md(path, max_tokens=_ALL).cost,
        "md_section, median section": lambda path: _median_section(desk, path),
        "get_documents without code": lambda path: (
            desk.get_documents([path], include_code=False, max_tokens=_ALL).cost
        ),
    }
    for tool, call in tools.items():
        yield Cost(name, tool, len(large), sum(map(call, large)), whole)
    listing = desk.list_documents(section_depth=0, max_tokens=_ALL)
    yield Cost(name, "list_documents", 1, listing.cost, sum(tree.cost for tree in trees.values()))


def _median_section(desk: Documents, path: str) -> int:
    outline = desk.library.outline(desk.library.find(path).place)
    row = desk.tree(path).rows[outline.costs.index(statistics.median_low(outline.costs))]
    return desk.md_section(row.id, include_subsections=False, max_tokens=_ALL).cost


def _by_question(name: str, session: Session, queries: Sequence[Query]) -> Iterator[Cost]:
    service = session.service
    asked = [query for query in queries if query.facts.get("relevant")]
    if not asked:
        say(f"{name}: no question with a known answer, so search tools are left out")
        return
    whole = sum(_whole(service.documents, query) for query in asked)
    for budget in BUDGETS:
        answers = [service.semantic_search(query.text, max_tokens=budget) for query in asked]
        held = sum(_holds(answer, query) for answer, query in zip(answers, asked, strict=True))
        tokens = sum(answer.cost for answer in answers)
        yield Cost(name, f"semantic_search, {budget} tokens", len(asked), tokens, whole, held / len(asked))


def _whole(desk: Documents, query: Query) -> int:
    return sum(desk.tree(path).cost for path in {str(item["path"]) for item in query.facts["relevant"]})


def _holds(answer: Answer, query: Query) -> bool:
    """Tell whether a reply quotes text of a relevant section."""
    quoted = [hit for hit, shape in answer.shown if shape != "list"]
    return any(
        _is_relevant(item, hit.path, hit.section) for item in query.facts["relevant"] for hit in quoted
    )


def _is_relevant(item: dict[str, Any], path: str, section: Any) -> bool:
    if item["path"] != path:
        return False
    # Some sets know the document only.
    first, last = item.get("line_start") or 1, item.get("line_end") or sys.maxsize
    return bool(section.line_start <= last and section.line_end >= first)


def pooled(costs: Sequence[Cost]) -> list[Cost]:
    """Return each tool over all sets together."""
    found = []
    for tool in dict.fromkeys(cost.tool for cost in costs):
        rows = [cost for cost in costs if cost.tool == tool]
        calls = sum(row.calls for row in rows)
        held = [row.holds * row.calls for row in rows if row.holds is not None]
        tokens, whole = sum(row.tokens for row in rows), sum(row.whole for row in rows)
        found.append(Cost("pooled", tool, calls, tokens, whole, sum(held) / calls if held else None))
    return found


def table(costs: Sequence[Cost]) -> str:
    """Return costs as a table: tools down, one row a set and tool."""
    has_questions = any(cost.holds is not None for cost in costs)
    head = ["set", "tool", "calls", "tokens a call", "whole notes", "saves"]
    rows = [
        [
            cost.set, cost.tool, str(cost.calls), f"{cost.tokens / cost.calls:.0f}",
            f"{cost.whole / cost.calls:.0f}", f"{cost.saves:.1%}",
            *([f"{cost.holds:.2f}"] if cost.holds is not None else []),
        ]
        for cost in costs
        if cost.calls
    ]  # fmt: skip
    return markdown([*head, "quotes the answer"] if has_questions else head, rows)


if __name__ == "__main__":
    sys.exit(main())
