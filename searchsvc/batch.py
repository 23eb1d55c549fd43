"""The batch job: embed what lacks vectors, commit as it goes, and never stop for one text.

    from searchsvc import batch, load
    report = batch.run(load({"roots": "notes", "provider": "ollama", "model": "nomic-embed-text"}))

Work is by hash of what is embedded, so equal texts are embedded once and a renamed note not again. What is
committed is never embedded a second time; a crash costs what was under way. One process at a time embeds for
a profile.
"""

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from searchsvc.config import Config
from searchsvc.embedding.base import (
    Embedder,
    Matrix,
    ModelChoice,
    Partial,
    Passage,
    encode_queries,
)
from searchsvc.embedding.context import PROBES, encode_in_context
from searchsvc.errors import EmbeddingError
from searchsvc.index.build import Writer
from searchsvc.index.catalog import Catalog
from searchsvc.index.faults import write_fault
from searchsvc.index.ledger import Failure, Ledger
from searchsvc.index.open import Frame
from searchsvc.index.profiles import ProfileCard
from searchsvc.index.records import context_of, passage_text
from searchsvc.indexing import Progress
from searchsvc.models import check, make_card
from searchsvc.vault import Vault

_COMMIT_SHARE = 0.025
"""Share of the time that commits may take: the oftener, the less work a crash costs."""
_FIRST_COMMIT_SECONDS = 0.2
_MAX_COMMIT_SECONDS = 5.0
"""How much work a crash may cost, however long a commit takes."""
_COMMIT_ROWS = 10_000
_READ = 256
"""Passages read from the index at a time."""
_LEASE_SECONDS = 600.0
"""How long a commit waits for another process that writes; an update of a large root takes minutes."""
_POLL_SECONDS = 0.5
_RANK_CONSTANT = 60
_MIN_TIMED = 50
"""Texts that must have been embedded before the rate is remembered."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How far and how fast a job may go."""

    texts: int | None = None
    """Texts to embed at most."""
    at_most: int | None = None
    """Do nothing at all when more texts than this are missing."""
    per_second: float = 0.0
    """Texts a second, over time; a model may be given some hundred ahead. 0 for no limit."""
    retry_failed: bool = False
    """Try again what failed before."""
    wait: bool = True
    """Wait for another process that embeds the same; otherwise leave it to that one."""

    def after(self, texts: int) -> "Limits":
        """Return what is left once so many texts were embedded."""
        return self if self.texts is None else replace(self, texts=max(self.texts - texts, 0))


NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class EmbedReport:
    """What a job did, over all roots and models it was for."""

    wanted: int = 0
    """Distinct texts in the index, once for each model."""
    embedded: int = 0
    """Texts embedded in this run."""
    shortened: int = 0
    """Those of them of which the model did not take everything."""
    failed: int = 0
    """Texts that have no vector because the model would not take them, earlier runs included."""
    left: int = 0
    """Texts not tried yet."""
    seconds: float = 0.0

    @property
    def state(self) -> Literal["complete", "partial"]:
        """Whether every text has a vector now."""
        return "partial" if self.left or self.failed else "complete"

    def __add__(self, other: "EmbedReport") -> "EmbedReport":
        return EmbedReport(
            self.wanted + other.wanted,
            self.embedded + other.embedded,
            self.shortened + other.shortened,
            self.failed + other.failed,
            self.left + other.left,
            self.seconds + other.seconds,
        )


def run(config: Config, *, limits: Limits = NO_LIMITS, progress: Progress | None = None) -> EmbedReport:
    """Bring the index of every root up to date and embed all that lacks vectors of the configured model.

    Raises ``EmbeddingError`` when the model cannot be asked; what was embedded until then is kept.
    """
    from searchsvc.service import Service

    service = Service(config)
    service.index(progress=progress)
    return service.embed(progress=progress, limits=limits)


def never() -> bool:
    """Go on."""
    return False


def embed_vault(
    vault: Vault,
    embedder: Embedder,
    choice: ModelChoice,
    *,
    limits: Limits = NO_LIMITS,
    use: bool = False,
    progress: Progress | None = None,
    stop: Callable[[], bool] = never,
) -> EmbedReport:
    """Make the vectors that a profile lacks in one root; with ``use``, go by it once it is complete.

    The lease is held only to commit, so that other writers get their turn while the model works. Ends
    early, in good order, when ``stop`` says so.
    """
    job = _Job(vault, embedder, make_card(embedder, choice), limits, progress, stop)
    return job.run(use=use)


@dataclass(frozen=True, slots=True)
class _Item:
    """A text on its way through the model."""

    key: int
    address: str


class _Job:
    """One profile of one root."""

    def __init__(
        self,
        vault: Vault,
        embedder: Embedder,
        card: ProfileCard,
        limits: Limits,
        progress: Progress | None,
        stop: Callable[[], bool],
    ) -> None:
        check(card, vault.reader.card(card.identity))
        self._vault, self._embedder, self._card = vault, embedder, card
        self._limits, self._progress, self._stop = limits, progress, stop
        self._identity = card.identity
        self._under_way: deque[_Item] = deque()
        self._made: dict[int, Matrix] = {}
        self._failures: list[Failure] = []
        self._begin = time.monotonic()
        self._commit_at = self._begin + _FIRST_COMMIT_SECONDS
        self._total = self._embedded = self._shortened = self._failed = 0

    def run(self, *, use: bool) -> EmbedReport:
        """Embed, commit, and measure what the cosines mean."""
        with self._alone() as is_alone:
            return self._run(use=use) if is_alone else self._report(0.0)

    @contextmanager
    def _alone(self) -> Iterator[bool]:
        """Keep other jobs of this profile away: two would embed the same texts."""
        lock = FileLock(self._vault.layout.embedding_lock(self._identity))
        is_held = False
        while not is_held:
            try:
                lock.acquire(timeout=_POLL_SECONDS if self._limits.wait else 0)
                is_held = True
            except Timeout:
                if not self._limits.wait or self._stop():
                    break
                if self._progress:
                    self._progress("waiting for another process that embeds", 0, 1)
            except OSError as error:
                raise write_fault(error) from error
        try:
            yield is_held
        finally:
            lock.release()

    def _run(self, *, use: bool) -> EmbedReport:
        if self._limits.retry_failed:
            with self._writer() as writer:
                writer.vectors.forget_failures(self._identity)
        work = self._work()
        if self._limits.at_most is not None and len(work) > self._limits.at_most:
            return self._report(0.0)
        self._total = len(work) if self._limits.texts is None else min(len(work), self._limits.texts)
        if self._total:
            self._embed(work[: self._total])
        seconds = time.monotonic() - self._begin
        if not self._stop():
            self._finish(seconds)
        report = self._report(seconds)
        if use and not report.left and self._vault.reader.active != self._identity:
            with self._writer() as writer:
                writer.vectors.use(self._identity)
        return report

    def _writer(self) -> Writer:
        return self._vault.writer(patience=_LEASE_SECONDS, repair=False)

    def _work(self) -> NDArray[np.uint64]:
        """Return id and key of a section for each text to embed, in order, shape ``(texts, 2)``."""
        with self._vault.reader.pinned() as (frame, catalog):
            places = _in_order(frame, catalog, frame.missing(self._identity))
            return np.stack([frame.table["id"][places].astype(np.uint64), frame.table["key"][places]], axis=1)

    def _embed(self, work: NDArray[np.uint64]) -> None:
        pace = _Pace(self._limits.per_second, self._stop)
        try:
            for outcome in encode_in_context(self._embedder, self._passages(work)):
                item = self._under_way.popleft()
                self._take(item, outcome)
                if self._progress:
                    self._progress("embedding", self._embedded + self._failed, self._total, self._failed)
                if time.monotonic() > self._commit_at or len(self._made) > _COMMIT_ROWS:
                    self._commit()
                if not pace.wait():
                    break
        finally:
            self._commit()

    def _take(self, item: _Item, outcome: Matrix | Partial) -> None:
        if isinstance(outcome, Partial):
            is_embedded = len(outcome.rows) > 0
            self._failures.append(Failure(item.key, item.address, outcome.reason, is_embedded))
            if not is_embedded:
                self._failed += 1
                return
            self._shortened += 1
            outcome = outcome.rows
        self._made[item.key] = outcome
        self._embedded += 1

    def _commit(self) -> None:
        begin = time.monotonic()
        if self._made or self._failures:
            with self._writer() as writer:
                writer.vectors.add(self._card, self._made, self._failures)
            self._made, self._failures = {}, []
        end = time.monotonic()
        self._commit_at = end + min((end - begin) / _COMMIT_SHARE, _MAX_COMMIT_SECONDS)

    def _passages(self, work: NDArray[np.uint64]) -> Iterator[Passage]:
        """Yield the passages as the model takes them; sections that are gone are left out."""
        for start in range(0, len(work), _READ):
            chunk = work[start : start + _READ].tolist()
            with self._vault.reader.rows() as catalog:
                passages = read_passages(catalog, [(section, key) for section, key in chunk])
            self._total -= len(chunk) - len(passages)
            for item, passage in passages:
                self._under_way.append(item)
                yield passage

    def _finish(self, seconds: float) -> None:
        """Measure cosines after a change, remember the rate, forget failures of texts that are gone."""
        with self._vault.reader.pinned() as (frame, catalog):
            failed = {failure.key for failure in Ledger(catalog.connection).failures(self._identity)}
            gone = failed - set(frame.table["key"][frame.live].tolist()) if failed else set()
        with self._writer() as writer:
            if gone:
                writer.vectors.forget_failures(self._identity, gone)
            if self._embedded >= _MIN_TIMED and not self._limits.per_second:
                writer.catalog.set_meta({rate_key(self._identity): f"{self._embedded / seconds:.3f}"})
            is_due = self._embedded or not writer.vectors.is_calibrated(self._identity)
        if is_due:
            # Vectors that are made are good without it, and the next run measures again.
            with suppress(EmbeddingError):
                probes = encode_queries(self._embedder, PROBES)
                with self._writer() as writer:
                    writer.vectors.calibrate(self._identity, probes)

    def _report(self, seconds: float) -> EmbedReport:
        with self._vault.reader.pinned() as (frame, catalog):
            keys = frame.table["key"][frame.live]
            failed = Ledger(catalog.connection).failed_keys(self._identity)
            left = len(frame.missing(self._identity))
        return EmbedReport(
            wanted=len(np.unique(keys[keys != 0])),
            embedded=self._embedded,
            shortened=self._shortened,
            failed=len(failed),
            left=left,
            seconds=seconds,
        )


def rate_key(identity: str) -> str:
    """Name the setting that remembers how many texts a second a profile embeds."""
    return f"rate {identity}"


def read_passages(catalog: Catalog, work: Sequence[tuple[int, int]]) -> list[tuple[_Item, Passage]]:
    """Return the passages of ``(section id, key)`` pairs; sections that are gone are left out."""
    rows = catalog.sections([section for section, _ in work])
    notes = catalog.notes({row.note for row in rows.values()})
    passages = []
    for section, key in work:
        if section not in rows:
            continue
        row = rows[section]
        title = notes[row.note].title
        passage = Passage(
            context=context_of(title, row.section.heading_path),
            text=passage_text(row.section, row.text),
            heading=row.section.title or title,
        )
        passages.append((_Item(key, f"{notes[row.note].path}#{row.section.slug}"), passage))
    return passages


def _in_order(frame: Frame, catalog: Catalog, places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sort sections so that those of new and of much linked notes come first, by reciprocal ranks."""
    notes, owner = np.unique(frame.table["note"][places], return_inverse=True)
    modified, links = catalog.modified(), Counter(to for source, to in catalog.edges() if source != to)
    by_time = np.argsort(np.argsort([-modified.get(note, 0.0) for note in notes.tolist()], kind="stable"))
    by_links = np.argsort(np.argsort([-links[note] for note in notes.tolist()], kind="stable"))
    merit = 1 / (_RANK_CONSTANT + by_time) + 1 / (_RANK_CONSTANT + by_links)
    return places[np.lexsort((places, -merit[owner]))]


class _Pace:
    """Lets so many texts a second through."""

    def __init__(self, per_second: float, stop: Callable[[], bool]) -> None:
        self._gap = 1 / per_second if per_second else 0.0
        self._next = time.monotonic()
        self._stop = stop
        self._sleep = threading.Event()

    def wait(self) -> bool:
        """Wait for the turn of the next text; false when the job is to stop."""
        while not self._stop():
            delay = self._next - time.monotonic()
            if delay <= 0:
                self._next = max(self._next, time.monotonic() - 1) + self._gap
                return True
            self._sleep.wait(min(delay, 0.2))
        return False
