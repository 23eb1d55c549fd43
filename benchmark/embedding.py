"""Making vectors: ``python -m benchmark.embedding --source DIR [DIR ...]``.

The default model in the batch job against a bare onnxruntime loop over the same windows with both cores
busy; the instant model's sections a CPU second; a run with nothing to do; and the memory of a large job.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmark import processes
from benchmark.core import make_config, say
from benchmark.corpus import read_sources, write_corpus
from benchmark.errors import BenchmarkError, Parser, run_command
from benchmark.memory import own_cpu_seconds, peak_rss_mb
from benchmark.tables import markdown
from searchsvc.batch import EmbedReport, embed_vault, read_passages
from searchsvc.embedding import load_embedder
from searchsvc.embedding.base import Embedder, Matrix, ModelChoice, Passage, Profile
from searchsvc.embedding.cards import load_card
from searchsvc.embedding.context import encode_in_context, texts_of
from searchsvc.embedding.parallel import cores
from searchsvc.embedding.places import find_files
from searchsvc.embedding.windows import Windower
from searchsvc.service import Service

MODEL, INSTANT = "all-minilm-l6-v2-int8", "minilm-static-256"
_SECTIONS = 1_000
_ROUNDS = 3
_MANY = 20_000
_LARGE = 200_000
_PADDED = 32
_MAX_WINDOWS = 64


@dataclass(frozen=True, slots=True)
class Row:
    """One figure beside its target."""

    what: str
    found: str
    target: str
    met: bool | None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    return run_command(_run, arguments)


def _run(arguments: Sequence[str] | None) -> None:
    parser = Parser(prog="python -m benchmark.embedding", description="Measure how vectors are made.")
    parser.add_argument("--source", type=Path, nargs="+", required=True, metavar="DIR", help="real Markdown")
    parser.add_argument("--sections", type=int, default=_SECTIONS, help=f"(default {_SECTIONS})")
    parser.add_argument("--many", type=int, default=_MANY, help=f"of the run with nothing to do ({_MANY})")
    parser.add_argument(
        "--large", type=int, default=_LARGE, help=f"of the run for memory ({_LARGE}); 0 for none"
    )
    parser.add_argument(
        "--job", nargs=2, metavar=("CORPUS", "INDEX"), help="run the job for memory, and no more"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure here")
    given = parser.parse_args(arguments)
    if given.job:
        print(json.dumps(_memory_of_job(Path(given.job[0]), Path(given.job[1]))))
        return
    files = read_sources(given.source)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="searchsvc-embedding-", ignore_cleanup_errors=True) as folder:
        for wanted, measure in ((given.sections, _local), (given.many, _instant), (given.large, _memory)):
            if wanted:
                corpus, index = Path(folder) / str(wanted), Path(folder) / f"index-{wanted}"
                write_corpus(files, corpus, wanted)
                index.mkdir()
                rows += measure(corpus, index)
    verdicts = {True: "met", False: "missed", None: ""}
    cells = [(row.what, row.found, row.target, verdicts[row.met]) for row in rows]
    print(markdown(("what", "found", "target", ""), cells))
    if given.json:
        report = [{"what": row.what, "found": row.found, "met": row.met} for row in rows]
        given.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def _local(corpus: Path, data_dir: Path) -> list[Row]:
    """Compare the job with bare loops over the windows of the same texts; each takes its turn."""
    service = Service(make_config(corpus, data_dir, MODEL))
    service.index()
    passages = _passages(service)
    card = load_card(MODEL)
    folder = find_files(card)
    windower = Windower(folder / "tokenizer.json", card.max_tokens, _MAX_WINDOWS)
    windows = [ids for passage in passages for text in texts_of(passage) for ids in windower.passage(text)]
    windows.sort(key=len, reverse=True)
    embedder = load_embedder(MODEL)
    session = embedder._session  # type: ignore[attr-defined]  # the same network, without anything around it
    ways: dict[str, Callable[[], Any]] = {
        "one": lambda: _bare(session, [[ids] for ids in windows]),
        "padded": lambda: _bare(
            session, [windows[at : at + _PADDED] for at in range(0, len(windows), _PADDED)]
        ),
        "encode": lambda: list(encode_in_context(embedder, passages)),
        "job": lambda: _fresh_job(service, embedder),
    }
    spent: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(_ROUNDS):
        for way, call in ways.items():
            say(f"round {number + 1} of {_ROUNDS}: {way}")
            start = time.perf_counter()
            call()
            spent[way].append(time.perf_counter() - start)
    best = {way: min(seconds) for way, seconds in spent.items()}
    bare = min(best["one"], best["padded"])
    rate = len(passages) / best["job"]
    return [
        Row("sections, windows", f"{len(passages)}, {len(windows)}", "", None),
        Row("bare loop, batches of 32 / one at a time", f"{best['one'] / best['padded']:.2f}", "", None),
        _least("encoding / the faster bare loop", bare / best["encode"], 0.9),
        _least("batch job / the faster bare loop", bare / best["job"], 0.9),
        Row("batch job, sections a second", f"{rate:.0f}", "", None),
    ]


def _passages(service: Service) -> list[Passage]:
    """Return every distinct passage of the only root."""
    with service.vaults[0].reader.pinned() as (frame, catalog):
        pairs = [(int(section), 0) for section in frame.table["id"][frame.missing("")].tolist()]
        return [passage for _, passage in read_passages(catalog, pairs)]


def _bare(session: Any, batches: Sequence[Sequence[list[int]]]) -> None:
    """Run the network over batches, in as many threads as there are cores."""

    def run(batch: Sequence[list[int]]) -> None:
        width = max(map(len, batch))
        tokens = np.array([ids + [0] * (width - len(ids)) for ids in batch], np.int64)
        mask = np.array([[1] * len(ids) + [0] * (width - len(ids)) for ids in batch], np.int64)
        feed = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros_like(tokens)}
        session.run(None, {tensor.name: feed[tensor.name] for tensor in session.get_inputs()})

    with ThreadPoolExecutor(cores()) as pool:
        for _ in pool.map(run, batches):
            pass


def _fresh_job(service: Service, embedder: Embedder) -> EmbedReport:
    vault, identity = service.vaults[0], embedder.profile.identity
    with vault.writer() as writer:
        writer.vectors.drop(identity)
    report = embed_vault(vault, embedder, ModelChoice(MODEL))
    if report.state != "complete":
        raise BenchmarkError(f"the job left {report.left} texts")
    return report


def _instant(corpus: Path, data_dir: Path) -> list[Row]:
    """Time the instant model, and a whole process that finds nothing to do."""
    service = Service(make_config(corpus, data_dir, INSTANT))
    service.index()
    embedder = service.slots[0].require()
    say("instant model")
    passages = _passages(service)
    start = own_cpu_seconds()
    for _ in encode_in_context(load_embedder(INSTANT), passages):
        pass
    encoding = len(passages) / (own_cpu_seconds() - start)
    start = own_cpu_seconds()
    report = embed_vault(service.vaults[0], embedder, ModelChoice(INSTANT))
    rate = report.embedded / (own_cpu_seconds() - start)
    again = processes.time_embed(corpus, data_dir, INSTANT)
    return [
        _least(f"instant model, sections a CPU second ({len(passages)})", encoding, 4000, digits=0),
        Row("the same in the batch job", f"{rate:.0f}", "", None),
        Row("`embed` with nothing to do, CPU s", f"{again.cpu:.2f}", "< 3", again.cpu < 3),
    ]


def _memory(corpus: Path, data_dir: Path) -> list[Row]:
    say("index of the large corpus")
    Service(make_config(corpus, data_dir, "none")).index()
    found = processes.memory_of_job(corpus, data_dir)
    return [
        Row("large job: texts", f"{found['texts']:.0f}", "", None),
        Row(
            "large job: peak memory, MB, without a model",
            f"{found['peak_mb']:.0f}",
            "< 500",
            found["peak_mb"] < 500,
        ),
    ]


class DrawnModel:
    """Draws vectors as long as MiniLM's: a job with it holds what the job holds, and no model."""

    profile = Profile("drawn", "benchmark", "0", 384, 256)

    def __init__(self) -> None:
        self._random = np.random.default_rng(0)

    def encode_query(self, text: str) -> Any:
        """Return the same vector always."""
        return np.full(384, 384**-0.5, np.float32)

    def encode_passages(self, passages: Iterable[Passage]) -> Iterator[Matrix]:
        """Yield a vector for each."""
        for _ in passages:
            row = self._random.standard_normal((1, 384), dtype=np.float32)
            yield np.asarray(row / np.linalg.norm(row), np.float32)


def _memory_of_job(corpus: Path, data_dir: Path) -> dict[str, float]:
    vault = Service(make_config(corpus, data_dir, "none")).vaults[0]
    report = embed_vault(vault, DrawnModel(), ModelChoice("drawn"))
    return {"texts": report.embedded, "peak_mb": peak_rss_mb() or 0.0}


def _least(what: str, found: float, least: float, digits: int = 2) -> Row:
    return Row(what, f"{found:.{digits}f}", f">= {least}", found >= least)


if __name__ == "__main__":
    sys.exit(main())
