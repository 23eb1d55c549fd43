"""The speed that is wanted, held against what was measured."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

SMALL, LARGE = 10_000, 100_000
"""Numbers of sections that targets are for; a run counts when it is within a tenth of one."""

RANKING = "searchsvc, ranking alone"
HYBRID = "searchsvc hybrid, whole answer without the model"
SCAN = "searchsvc, int8 scan and rescoring"
BM25 = "rank_bm25, same tokens"
TANTIVY = ("tantivy, its English tokeniser", "tantivy, same tokens")
NUMPY = "numpy float32 `M @ q`"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One target and what was measured."""

    what: str
    measured: float
    limit: float
    unit: str
    """``x`` for a ratio."""

    @property
    def met(self) -> bool:
        """Whether the figure is within its limit."""
        return self.measured <= self.limit


def judge(sizes: Sequence[dict[str, Any]], programs: dict[str, Any]) -> Iterator[Verdict]:
    """Yield a verdict for each target that the run has figures for."""
    for size in sizes:
        rows = [row for table in ("words", "vectors", "both") for row in size[table]]
        timings = {row["name"]: row["p50"] for row in rows if row["p50"] is not None}
        if _is_about(size["wanted"], SMALL):
            yield Verdict("hybrid without model, 10k, p50 CPU", timings[HYBRID], 2, "ms")
        if _is_about(size["wanted"], LARGE):
            yield from _judge_large(size, timings)
    yield Verdict("`searchsvc --help`, CPU", programs["help"]["cpu"], 0.25, "s")


def _judge_large(size: dict[str, Any], timings: dict[str, float]) -> Iterator[Verdict]:
    if BM25 in timings:
        yield Verdict("lexical / rank_bm25, 100k", timings[RANKING] / timings[BM25], 0.03, "x")
    for name in TANTIVY:
        if name in timings:
            yield Verdict(f"lexical / {name}, 100k", timings[RANKING] / timings[name], 2.5, "x")
    yield Verdict("vectors / numpy `M @ q`, 100k", timings[SCAN] / timings[NUMPY], 0.5, "x")
    yield Verdict("hybrid without model, 100k, p50 CPU", timings[HYBRID], 10, "ms")
    hundred_thousand = LARGE / size["sections"]
    yield Verdict("indexing, CPU per 100k sections", size["index_cpu"] * hundred_thousand, 40, "s")
    yield Verdict("re-index of an unchanged tree, 100k, CPU", size["reindex_cpu"], 2, "s")
    yield Verdict("start to first lexical answer, 100k, CPU", size["first"]["cpu"], 0.7, "s")
    yield Verdict("serving memory, 100k", size["memory"]["rss_mb"], 250, "MB")
    serve = size["serve"]["wall"] - size["bare"]["wall"]
    yield Verdict("`serve` to tools/list over a bare MCPServer, 100k, wall", serve, 0.5, "s")


def _is_about(sections: int, wanted: int) -> bool:
    return abs(sections - wanted) <= wanted / 10
