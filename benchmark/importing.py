"""Importing books and papers: ``python -m benchmark.importing --source DIR [DIR ...]``.

Makes PDF and EPUB files of real Markdown text (reportlab, a zip writer): chapters, running heads, page
numbers, lists, bookmarks. Two tables: CPU time a page beside what others would take (text alone, which is
less work), and one job over many documents: cores used, memory of all its processes, killed half-way and
run again. Copies of a document under other names are imported like any other.
"""

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmark.core import say
from benchmark.errors import BenchmarkError, Parser, run_command
from benchmark.papers import make_epub, make_pdf, read_chapters
from benchmark.tables import markdown
from searchsvc.importing.base import Limits
from searchsvc.importing.pdf import convert

_KINDS = ("pdf", "pdf", "pdf", "epub")
_DISTINCT = 40
"""Documents made; the others are copies of these."""
_SAMPLE = 8
"""PDFs that each engine reads."""
_SAMPLE_SECONDS = 0.1
MOST_MB = 400
"""What is wanted: memory of the job, and pages a CPU second."""


@dataclass(frozen=True, slots=True)
class Engine:
    """How fast one way of reading PDF is."""

    name: str
    pages_a_second: float
    """Of CPU."""
    makes: str


@dataclass(frozen=True, slots=True)
class Job:
    """One job over all documents, with a kill in the middle."""

    documents: int
    pages: int
    done_when_killed: int
    wall: float
    """Seconds, both runs together."""
    cores: float
    """CPU time over wall time of the second run; the workers of a killed process are nobody's children."""
    peak_mb: float
    """Most memory of all processes together, shared pages counted once a process."""
    failed: int
    unchanged_wall: float
    """Seconds of a further run, in which nothing is to be done."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return run_command(_run, arguments)


def _run(arguments: Sequence[str] | None) -> None:
    parser = Parser(prog="python -m benchmark.importing", description="Measure importing PDF and EPUB.")
    parser.add_argument("--source", type=Path, nargs="+", required=True, metavar="DIR", help="real Markdown")
    parser.add_argument("--documents", type=int, default=1000, help="of the job (default 1000)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure here")
    given = parser.parse_args(arguments)
    if given.documents < 4:
        raise BenchmarkError("--documents is a number from 4")
    with tempfile.TemporaryDirectory(prefix="searchsvc-bench-", ignore_cleanup_errors=True) as folder:
        files = make_documents(given.source, Path(folder) / "papers", given.documents)
        engines = time_engines([file for file in files if file.suffix == ".pdf"][:_SAMPLE])
        job = time_job(Path(folder), len(files))
    print(engine_table(engines), job_table(job), sep="\n\n")
    if given.json:
        facts = {"engines": [asdict(engine) for engine in engines], "job": asdict(job)}
        given.json.write_text(json.dumps(facts, indent=1), encoding="utf-8")


def make_documents(sources: Sequence[Path], folder: Path, count: int) -> list[Path]:
    """Write documents made of the Markdown under some folders, and return their files."""
    chapters, folder = read_chapters(sources), folder
    folder.mkdir(parents=True)
    files = list[Path]()
    for number in range(count):
        kind = _KINDS[number % len(_KINDS)]
        file = folder / f"{number % 10}" / f"paper {number}.{kind}"
        file.parent.mkdir(exist_ok=True)
        if number >= _DISTINCT:
            shutil.copyfile(files[number % _DISTINCT], file)
        elif kind == "pdf":
            make_pdf(file, f"Paper {number}", chapters(number))
        else:
            make_epub(file, f"Book {number}", chapters(number))
        files.append(file)
    return files


def time_engines(files: Sequence[Path]) -> list[Engine]:
    """Return how many pages a CPU second each engine that is installed reads, ours first."""
    datas = [file.read_bytes() for file in files]
    pages = sum(convert(data, Limits()).pages for data in datas)
    engines = [("searchsvc", lambda data: convert(data, Limits()), "headings, lists, tables, images, pages")]
    engines += [(name, read, "text") for name, read in _others()]
    found = []
    for name, read, makes in engines:
        best = min(_cpu(read, datas) for _ in range(2))
        found.append(Engine(name, pages / best, makes))
        say(f"{name}: {found[-1].pages_a_second:.1f} pages a CPU second")
    return found


def _cpu(read: Callable[[bytes], Any], datas: Sequence[bytes]) -> float:
    start = time.process_time()
    for data in datas:
        read(data)
    return time.process_time() - start


def _others() -> list[tuple[str, Callable[[bytes], Any]]]:
    """Return what a user might take instead, as far as it is installed."""
    found = list[tuple[str, Callable[[bytes], Any]]]()
    for name, make in (("pypdf", _pypdf), ("pdfminer.six", _pdfminer), ("markitdown", _markitdown)):
        try:
            found.append((name, make()))
        except ImportError:
            say(f"{name} is not installed: left out")
    return found


def _pypdf() -> Callable[[bytes], Any]:
    import io

    reader = importlib.import_module("pypdf").PdfReader
    return lambda data: [page.extract_text() for page in reader(io.BytesIO(data)).pages]


def _pdfminer() -> Callable[[bytes], Any]:
    import io

    extract = importlib.import_module("pdfminer.high_level").extract_text
    return lambda data: extract(io.BytesIO(data))


def _markitdown() -> Callable[[bytes], Any]:
    import io

    converter = importlib.import_module("markitdown").MarkItDown()
    return lambda data: converter.convert_stream(io.BytesIO(data), file_extension=".pdf").text_content


def time_job(folder: Path, count: int) -> Job:
    """Import all documents, killed half-way by SIGKILL and run again, then once more with nothing to do."""
    command = [sys.executable, "-m", "searchsvc", "--data-dir", str(folder / "data"), "import",
               str(folder / "papers"), "--json"]  # fmt: skip
    store = folder / "data" / "imports"
    begin, peak = time.perf_counter(), _Peak()
    first = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with peak:
        while first.poll() is None and _done(store) < count // 2:
            time.sleep(_SAMPLE_SECONDS)
        first.send_signal(getattr(signal, "SIGKILL", signal.SIGTERM))
        first.wait()
        killed = _done(store)
        say(f"killed with {killed} of {count} done")
        again, cpu = time.perf_counter(), _children()
        last = subprocess.run(command, capture_output=True, text=True, check=False)
        cores = (_children() - cpu) / (time.perf_counter() - again)
    wall = time.perf_counter() - begin
    report = json.loads(last.stdout)
    pages = sum(row["pages"] for row in report["documents"])
    begin = time.perf_counter()
    subprocess.run(command, capture_output=True, check=False)
    unchanged = time.perf_counter() - begin
    return Job(count, pages, killed, wall, cores, peak.megabytes, report["failed"], unchanged)


def _children() -> float:
    times = os.times()
    return times.children_user + times.children_system


def _done(store: Path) -> int:
    return sum(not entry.name.startswith(".") for entry in store.iterdir()) if store.is_dir() else 0


class _Peak:
    """Watches the memory of all children of this process."""

    def __init__(self) -> None:
        self.megabytes = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        import psutil

        here = psutil.Process()
        while not self._stop.wait(_SAMPLE_SECONDS):
            total = 0
            for child in here.children(recursive=True):
                try:
                    total += child.memory_info().rss
                except psutil.Error:
                    continue
            self.megabytes = max(self.megabytes, total / 1e6)


def engine_table(engines: Sequence[Engine]) -> str:
    """Return the speed of engines, with ratios to ours."""
    ours = engines[0].pages_a_second
    rows = [(e.name, f"{e.pages_a_second:.1f}", f"{e.pages_a_second / ours:.2f}", e.makes) for e in engines]
    return markdown(("engine", "pages a CPU second", "times ours", "makes"), rows)


def job_table(job: Job) -> str:
    """Return the facts of a job."""
    rows = [
        ("documents, pages", f"{job.documents}, {job.pages}", ""),
        ("done when killed, then run again", f"{job.done_when_killed}", ""),
        ("failed", f"{job.failed}", "0"),
        ("wall, both runs", f"{job.wall:.0f} s", ""),
        ("cores used", f"{job.cores:.2f}", "both"),
        ("memory of all processes", f"{job.peak_mb:.0f} MB", f"< {MOST_MB} MB"),
        ("nothing to do", f"{job.unchanged_wall:.1f} s", ""),
    ]
    return markdown(("one job", "found", "wanted"), rows)


if __name__ == "__main__":
    sys.exit(main())
