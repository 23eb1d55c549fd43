"""Speed against other engines: ``python -m benchmark.speed --source DIR [DIR ...]``.

Makes corpora of the wanted sizes out of real Markdown (see benchmark/corpus), indexes them, and asks the
same questions of every engine in one run. Times of calls are CPU milliseconds of the whole process, and wall
time beside them.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmark import processes, targets
from benchmark.core import Progress, make_config, say
from benchmark.corpus import SourceFile, read_questions, read_sources, write_corpus
from benchmark.errors import BenchmarkError, Parser, run_command
from benchmark.inside import (
    RandomModel,
    RankingCall,
    Stages,
    add_random_vectors,
    open_stages,
    time_stages,
)
from benchmark.machine import machine
from benchmark.memory import children_cpu_seconds, own_cpu_seconds, peak_rss_mb
from benchmark.peers import Texts, time_combination, time_lexical_peers, time_vector_peers
from benchmark.report import print_report
from benchmark.timing import Timing, cpu_of, time_calls
from searchsvc.models import DEFAULT_MODEL
from searchsvc.service import Service

QUESTIONS = 240
MILLION = 1_000_000
STAGE_SECTIONS = 20_000
"""Of the notes that the stages of indexing are timed over."""
_EMBEDDED = 128
"""Sections that vectors are made of."""
_ENGINES = ("searchsvc", "numpy", "simsimd", "rank-bm25", "bm25s", "tantivy", "faiss-cpu", "usearch", "mcp")

_EPILOG = """\
--million: 0.9 GB of Markdown and 4.5 GB of index in the temporary folder, about 11 GB of memory in this
process, since other engines hold their own copy of the texts, and 3 GB in the one with the vectors, for most
of an hour. That is ten times what 100,000 sections took on two cores, and has not been measured. rank_bm25 is
left out there, by itself and with numpy, and the tables say so and why."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return run_command(_run, arguments)


def _run(arguments: Sequence[str] | None) -> None:
    parser = Parser(
        prog="python -m benchmark.speed",
        description="Measure speed against other engines.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--sections", type=int, nargs="+", default=[targets.SMALL, targets.LARGE], metavar="N"
    )
    parser.add_argument(
        "--source",
        type=Path,
        nargs="+",
        action="extend",
        metavar="DIR",
        help="real Markdown, with queries.jsonl in or beside it (default: this checkout's own)",
    )
    parser.add_argument("--million", action="store_true", help="1,000,000 sections as well; see below")
    parser.add_argument("--out", type=Path, metavar="DIR", help="make report.html and its pictures there")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure here")
    given = parser.parse_args(arguments)
    if min(given.sections) < 1:
        raise BenchmarkError(f"--sections holds {min(given.sections)}, expected numbers from 1")
    sizes = sizes_of(given.sections, million=given.million)
    folders = given.source or [Path(__file__).resolve().parents[1]]
    files = read_sources(folders)
    questions = read_questions(folders, files, QUESTIONS)
    say(f"sources: {', '.join(map(str, folders))}")
    measured = [measure(files, questions, number) for number in sizes]
    programs = {"help": asdict(processes.time_help()), "python": asdict(processes.time_python())}
    sources = [folder.resolve().name for folder in folders]
    report = {"machine": machine(_ENGINES), "sources": sources, "questions": len(questions)}
    report |= {"sizes": measured, "vectors": _time_embedding(files), "programs": programs}
    verdicts = list(targets.judge(measured, programs))
    report["targets"] = [asdict(verdict) | {"met": verdict.met} for verdict in verdicts]
    print_report(report)
    if given.json:
        given.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    if given.out:
        from benchmark.pages import write_page

        print(write_page("speed", report, given.out))


def sizes_of(sections: Sequence[int], *, million: bool) -> list[int]:
    """Return the numbers of sections to measure at, each once, the smallest first.

    A million takes time, memory and disk that nobody expects of a benchmark, so it needs its own option:
    ``BenchmarkError`` when it is asked for as a number.
    """
    if max(sections) >= MILLION and not million:
        raise BenchmarkError(f"--sections holds {max(sections)}; from {MILLION} on give --million too")
    return sorted({*sections, *([MILLION] if million else [])})


def measure(files: Sequence[SourceFile], questions: Sequence[str], wanted: int) -> dict[str, Any]:
    """Measure everything on a corpus of ``wanted`` sections; the corpus is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="searchsvc-speed-", ignore_cleanup_errors=True) as folder:
        corpus, data_dir = Path(folder) / "notes", Path(folder) / "index"
        data_dir.mkdir()
        say(f"{wanted} sections: writing them")
        size = write_corpus(files, corpus, wanted)
        figures = {"wanted": wanted, "markdown_bytes": size, **_time_indexing(corpus, data_dir)}
        say("stages of indexing")
        step = -(-figures["sections"] // STAGE_SECTIONS)
        figures["stages"] = asdict(time_stages(corpus, step, stemming=True))
        stages = open_stages(corpus, data_dir)
        calls = [stages.ranking_of(text, "lexical") for text in questions]
        data = Texts(stages.tokens(), stages.texts(), [(call.terms, call.words) for call in calls])
        figures |= _time_words(stages, questions, calls, data)
        figures |= _time_vectors_and_both(stages, questions, figures["vector_count"], data)
        figures["peak_mb"] = peak_rss_mb()
        say("fresh processes")
        figures["first"] = asdict(processes.time_first_answer(corpus, data_dir, questions[0]))
        figures["memory"] = processes.serving_memory(corpus, data_dir, questions)
        serve, bare = processes.time_serve(corpus, data_dir)
        return figures | {"serve": asdict(serve), "bare": asdict(bare)}


def _time_indexing(corpus: Path, data_dir: Path) -> dict[str, Any]:
    """Index a corpus, index it again, then add vectors; times in seconds."""
    service = Service(make_config(corpus, data_dir, "none"))
    own, others, start = own_cpu_seconds(), children_cpu_seconds(), time.perf_counter()
    service.index(progress=Progress())
    wall, others, own = (
        time.perf_counter() - start,
        children_cpu_seconds() - others,
        own_cpu_seconds() - own,
    )
    again, start = own_cpu_seconds(), time.perf_counter()
    service.index()
    again, again_wall = own_cpu_seconds() - again, time.perf_counter() - start
    root = service.status().roots[0]
    say("adding random vectors")
    vectors, storing = cpu_of(lambda: add_random_vectors(service))
    return {
        "sections": root.sections,
        "notes": root.notes,
        "index_cpu": own + others,
        "index_wall": wall,
        "reading_cpu": others,
        "writing_cpu": own,
        "reindex_cpu": again,
        "reindex_wall": again_wall,
        "index_bytes": root.index_bytes,
        "vector_count": vectors,
        "vectors_storing_cpu": storing,
        "index_bytes_with_vectors": service.status().roots[0].index_bytes,
    }


def _time_words(
    stages: Stages, questions: Sequence[str], calls: Sequence[RankingCall], data: Texts
) -> dict[str, Any]:
    """Time search by words: ours in whole and in part, then the other engines."""
    say("search by words")
    rows = [
        time_calls(
            "searchsvc, whole answer", lambda text: stages.service.search(text, mode="lexical"), questions
        ),
        time_calls(targets.RANKING, lambda call: call.rank(), calls),
    ]
    rows += time_lexical_peers(data)
    return {"words": _plain(rows)}


def _time_vectors_and_both(
    stages: Stages, questions: Sequence[str], count: int, data: Texts
) -> dict[str, Any]:
    """Time the scan against other exact engines over as many vectors, then both ways of search together."""
    say("search by vectors")
    scan = time_calls(targets.SCAN, stages.cosines, list(RandomModel(3).vectors(len(questions))))
    vectors = [scan, *time_vector_peers(count, len(questions))]
    whole = time_calls(
        "searchsvc, whole answer without the model", lambda text: stages.ask(text, "vector"), questions
    )
    calls = [stages.ranking_of(text, "hybrid") for text in questions]
    both = [
        time_calls(targets.HYBRID, lambda text: stages.ask(text, "hybrid"), questions),
        time_calls("searchsvc hybrid, ranking alone, vectors scanned", lambda call: call.rank(), calls),
        time_combination(data),
    ]
    return {"vectors": _plain([*vectors, whole]), "both": _plain(both)}


def _time_embedding(files: Sequence[SourceFile]) -> dict[str, Any]:
    """Time making vectors with the default model over a few sections; CPU in seconds."""
    say("making vectors")
    with tempfile.TemporaryDirectory(prefix="searchsvc-speed-", ignore_cleanup_errors=True) as folder:
        corpus, data_dir = Path(folder) / "notes", Path(folder) / "index"
        data_dir.mkdir()
        write_corpus(files, corpus, _EMBEDDED)
        service = Service(make_config(corpus, data_dir))
        service.index()
        _, cpu = cpu_of(lambda: service.embed())
        return {"model": DEFAULT_MODEL, "sections": service.status().roots[0].sections, "cpu": cpu}


def _plain(rows: Sequence[Timing]) -> list[dict[str, Any]]:
    return [asdict(row) for row in rows]


if __name__ == "__main__":
    sys.exit(main())
