"""A corpus and questions -> rankings with their latency, through the public API and a temporary index."""

import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self, get_args

from benchmark.errors import BenchmarkError
from searchsvc.config import Config, load
from searchsvc.items import Hit, Mode
from searchsvc.service import Service

_WARM_UP = 3
"""Questions asked before timing begins."""
_REPORT_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Query:
    """One line of a query file."""

    id: str
    text: str
    facts: dict[str, Any]
    """The whole object, for what only a scorer needs."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back for one query."""

    id: str
    latency_ms: float
    """Wall time of the call."""
    results: list[dict[str, Any]]
    """Path, first and last line, score; best first."""
    costs: list[int]
    """Tokens of each result's own text."""


@dataclass(slots=True)
class IndexFacts:
    """What making the index took."""

    index_seconds: float = 0.0
    """Wall time of reading and lexical indexing."""
    embed_seconds: float = 0.0
    """Wall time of making vectors, the model being loaded."""
    sections: int = 0
    index_bytes: int = 0
    """On disk, vectors included."""


def read_queries(file: Path) -> list[Query]:
    """Read a query file, one JSON object with ``id`` and ``query`` a line; blank lines are passed over.

    Raises ``BenchmarkError`` that names the line of what is malformed.
    """
    if not file.is_file():
        raise BenchmarkError(f"no query file at {file}")
    queries: dict[str, Query] = {}
    for number, line in enumerate(file.read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        query = _read_query(line, f"{file}, line {number}")
        if query.id in queries:
            raise BenchmarkError(f"{file}, line {number}: id {query.id!r} stands there twice")
        queries[query.id] = query
    if not queries:
        raise BenchmarkError(f"{file} holds no queries")
    return list(queries.values())


def _read_query(line: bytes, place: str) -> Query:
    try:
        facts = json.loads(line.decode("utf-8-sig"))
    except ValueError as error:
        raise BenchmarkError(f"{place}: not a JSON object ({error})") from error
    if not isinstance(facts, dict):
        raise BenchmarkError(f"{place}: found a {type(facts).__name__}, expected a JSON object")
    for name in ("id", "query"):
        value = facts.get(name)
        if not isinstance(value, str) or not value.strip():
            raise BenchmarkError(f"{place}: {name!r} is {value!r}, expected a text that is not blank")
    return Query(facts["id"], facts["query"], facts)


class Progress:
    """Prints how far indexing is, to stderr, every few seconds."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, stage: str, done: int, total: int, failed: int = 0) -> None:
        """Say that ``done`` of ``total`` is done."""
        if time.monotonic() - self._last >= _REPORT_SECONDS or done == total:
            self._last = time.monotonic()
            say(f"{stage} {done} of {total}")


def say(text: str) -> None:
    """Print a line of progress to stderr."""
    print(text, file=sys.stderr, flush=True)


@dataclass(slots=True)
class Session:
    """An index of one corpus in a temporary folder; a context manager that removes it at the end.

    Neither the user's config file nor the environment has a say. Only one model is used: the fast one
    that the product serves with while the main one works would change nothing in the rankings.
    """

    corpus: Path
    profile: str | None = None
    """Card name of the embedding model; none for the product's default, ``none`` for no model."""
    facts: IndexFacts = field(default_factory=IndexFacts)
    _folder: tempfile.TemporaryDirectory[str] | None = None
    _service: Service | None = None

    def __enter__(self) -> Self:
        if not self.corpus.is_dir():
            raise BenchmarkError(f"no corpus folder at {self.corpus}")
        self._folder = tempfile.TemporaryDirectory(prefix="searchsvc-bench-", ignore_cleanup_errors=True)
        try:
            self._build(Path(self._folder.name))
        except BaseException:
            self._folder.cleanup()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._service = None
        if self._folder is not None:
            self._folder.cleanup()

    @property
    def service(self) -> Service:
        """The service over the finished index."""
        if self._service is None:
            raise RuntimeError("the session is not open")
        return self._service

    def _build(self, folder: Path) -> None:
        service = Service(make_config(self.corpus, folder, self.profile))
        for profile in service.status().profiles:
            if profile.state != "ready":
                raise BenchmarkError(profile.state)
        start = time.perf_counter()
        reports = service.index(progress=Progress())
        self.facts.index_seconds = time.perf_counter() - start
        for report in reports.values():
            for problem in report.problems:
                say(f"{problem.path}: {problem.reason}")
        start = time.perf_counter()
        if service.slots:
            service.embed(progress=Progress())
            self.facts.embed_seconds = time.perf_counter() - start
        root = service.status().roots[0]
        self.facts.sections, self.facts.index_bytes = root.sections, root.index_bytes
        self._service = service

    def ask(self, queries: Sequence[Query], mode: Mode, k: int) -> Iterator[Reply]:
        """Ask one query at a time, after some for warmth; raise ``BenchmarkError`` without vectors."""
        if mode == "vector" and not self.service.slots:
            raise BenchmarkError("mode vector needs a model; give another --profile than 'none'")
        for query in queries[:_WARM_UP]:
            self.service.search(query.text, mode=mode, top_k=k)
        noted = set[str]()
        for query in queries:
            start = time.perf_counter()
            ranking = self.service.search(query.text, mode=mode, top_k=k)
            latency = (time.perf_counter() - start) * 1000
            for notice in ranking.notices:
                if notice not in noted:
                    noted.add(notice)
                    say(f"note: {notice}")
            costs = [hit.cost for hit in ranking.hits]
            yield Reply(query.id, round(latency, 3), [_result(hit) for hit in ranking.hits], costs)


def make_config(corpus: Path, data_dir: Path, profile: str | None = None) -> Config:
    """Return the product's settings for a corpus, with nothing from the user's config or environment."""
    empty = data_dir / "config.yaml"
    empty.write_text("", encoding="utf-8")
    arguments = {"roots": [corpus], "data_dir": data_dir, "model": profile, "instant_model": "none"}
    return load(arguments, config_file=empty, environment={})


def modes() -> tuple[Mode, ...]:
    """Return every mode, the product's default first."""
    return get_args(Mode)


def _result(hit: Hit) -> dict[str, Any]:
    lines = {"line_start": hit.section.line_start, "line_end": hit.section.line_end}
    return {"path": hit.path, **lines, "score": round(float(hit.score), 6)}
