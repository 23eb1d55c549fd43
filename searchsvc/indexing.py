"""Notes on disk -> index: what is new or changed is read, tokenised and committed.

Joins reading, tokens and index. Reading and tokenising go to worker processes when there is enough to do.
"""

import gc
import hashlib
import multiprocessing
import os
import stat
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.process import BaseProcess
from types import ModuleType
from typing import Any, Protocol

from searchsvc.config import Config, Root
from searchsvc.errors import IndexFault, ReadingError
from searchsvc.index.build import Writer
from searchsvc.index.catalog import NoteRow
from searchsvc.index.faults import faults
from searchsvc.index.records import Batch, BatchBuilder, Touched
from searchsvc.index.vocabulary import Vocabulary
from searchsvc.items import Note, Problem
from searchsvc.reading.access import Place, read_bytes
from searchsvc.reading.ignore import IgnoreRules
from searchsvc.reading.note import read_note, stem
from searchsvc.reading.walk import FileEntry, signature, walk
from searchsvc.tokens import Tokenizer


class Progress(Protocol):
    """Told how far a stage, ``reading`` or ``embedding``, has got."""

    def __call__(self, stage: str, done: int, total: int, failed: int = 0) -> None:
        """Take note; may raise to stop the work."""


_CHUNK_BYTES = 1_000_000
_MIN_BYTES_FOR_WORKERS = 3_000_000
_COMMIT_BYTES = 24_000_000
_CLOCK_TICK_NS = 20_000_000
"""Two writes to a file within this time may leave it with the same time stamps."""


@dataclass(slots=True)
class IndexReport:
    """What one run of indexing did to one root."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0
    sections: int = 0
    """Sections read in this run."""
    problems: list[Problem] = field(default_factory=list)
    remark: str = ""
    """One line about an index of another version; usually empty."""


@faults()
def update_index(
    writer: Writer, root: Root, config: Config, *, progress: Progress | None = None
) -> IndexReport:
    """Bring the lexical index of a root up to date with its files.

    Large runs are committed in portions, so that what was read stays read when a run is cut short,
    which ``progress`` may do by raising.
    """
    known = {row.path: row for row in writer.catalog.notes().values()}
    entries, walked = _look(root, config)
    present = {entry.path for entry in entries}
    changed = [e for e in entries if e.path not in known or known[e.path].signature != e.signature]
    gone = [row.id for path, row in known.items() if path not in present]
    before = writer.catalog.problems()
    report = IndexReport(removed=len(gone), unchanged=len(entries), remark=writer.remark)
    problems, replaced = walked, set[str]()
    with _reader(config, sum(entry.size for entry in changed)) as read:
        for portion in _portions(read(root, config, _chunks(changed), known), len(changed), progress):
            portion.count(report, known)
            problems += portion.problems
            replaced.update(portion.replaced)
            if not portion.is_last:
                portion.commit(writer, known)
    problems += [p for p in before if p.path in known and p.path in present and p.path not in replaced]
    report.problems = sorted(set(problems), key=lambda problem: (problem.path, problem.reason))
    if portion.replaced or gone or set(problems) != set(before) or writer.is_unfinished:
        portion.commit(writer, known, gone, report.problems)
    else:
        writer.touch(portion.touched(known))
    writer.compact()
    return report


@faults()
def update_notes(writer: Writer, root: Root, config: Config, paths: Sequence[str]) -> None:
    """Bring only these notes up to date, for an answer that found them changed."""
    known = {row.path: row for row in writer.catalog.notes().values() if row.path in paths}
    rules = IgnoreRules(root.path, config)
    vocabulary = Vocabulary(make_tokenizer(config.stemming))
    shown = [path for path in paths if not rules.hides(path)]
    batch, problems = read_batch(root, config, shown, known, vocabulary)
    portion = _Portion([batch], list(paths), problems, is_last=True)
    if portion.replaced:
        portion.commit(writer, known)
    else:
        writer.touch(portion.touched(known))
    if writer.is_crowded:
        writer.compact()


def _look(root: Root, config: Config) -> tuple[list[FileEntry], list[Problem]]:
    entries, problems = [], []
    for found in walk(root.path, config):
        if isinstance(found, Problem):
            problems.append(found)
        else:
            entries.append(found)
    return entries, sorted(problems, key=lambda problem: (problem.path, problem.reason))


Known = Mapping[str, NoteRow]
"""What the index holds, by path."""


@dataclass(slots=True)
class _Portion:
    """What one commit brings."""

    batches: list[Batch] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    """All files that were looked at."""
    problems: list[Problem] = field(default_factory=list)
    is_last: bool = False

    @property
    def replaced(self) -> list[str]:
        """Paths whose notes are new, changed, or gone since the walk."""
        same = {touched.path for batch in self.batches for touched in batch.touched}
        return [path for path in self.paths if path not in same]

    def touched(self, known: Known) -> list[tuple[str, float, int]]:
        """Return new signatures and times of notes with unchanged content."""
        return [(t.signature, t.modified, known[t.path].id) for batch in self.batches for t in batch.touched]

    def count(self, report: IndexReport, known: Known) -> None:
        """Add to a report."""
        notes = [note for batch in self.batches for note in batch.notes]
        fresh = sum(note.path not in known for note in notes)
        report.added += fresh
        report.changed += len(notes) - fresh
        report.unchanged -= len(notes)
        report.sections += sum(len(note.sections) for note in notes)

    def commit(
        self,
        writer: Writer,
        known: Known,
        gone: Sequence[int] = (),
        all_problems: Sequence[Problem] | None = None,
    ) -> None:
        """Make a generation; with ``all_problems`` it replaces what other notes had, too."""
        paths = self.replaced
        writer.commit(
            self.batches,
            removed=[*(known[path].id for path in paths if path in known), *gone],
            touched=self.touched(known),
            problems=self.problems if all_problems is None else all_problems,
            problem_paths=paths if all_problems is None else None,
            more_follows=not self.is_last,
        )


def _portions(results: Iterator["_Result"], total: int, progress: Progress | None) -> Iterator[_Portion]:
    """Gather what was read into commits of bounded size; the last one comes even when it is empty."""
    portion = _Portion()
    size = done = 0
    for chunk, (batch, problems) in results:
        portion.batches.append(batch)
        portion.paths += [entry.path for entry in chunk]
        portion.problems += problems
        size += sum(entry.size for entry in chunk)
        done += len(chunk)
        if progress:
            progress("reading", done, total)
        if size >= _COMMIT_BYTES and done < total:
            yield portion
            portion, size = _Portion(), 0
    portion.is_last = True
    yield portion


def _chunks(entries: Sequence[FileEntry]) -> Iterator[list[FileEntry]]:
    """Split files into chunks of about equal size, in path order."""
    chunk: list[FileEntry] = []
    size = 0
    for entry in entries:
        chunk.append(entry)
        size += entry.size
        if size >= _CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


_Result = tuple[list[FileEntry], tuple[Batch, list[Problem]]]


_Reader = Callable[[Root, Config, Iterable[list[FileEntry]], Known], Iterator[_Result]]


@contextmanager
def _reader(config: Config, size: int) -> Iterator[_Reader]:
    """Give a function that reads chunks in order, in worker processes when that pays."""
    workers = config.workers or os.cpu_count() or 1
    if workers == 1 or size < _MIN_BYTES_FOR_WORKERS:
        yield _read_here
        return
    # Spawned, not forked: a server runs threads, and a forked child may inherit their locks.
    pool = ProcessPoolExecutor(workers, mp_context=_SpawnContext(), initializer=_end_with_parent)

    def read_there(
        root: Root, config: Config, chunks: Iterable[list[FileEntry]], known: Known
    ) -> Iterator[_Result]:
        jobs: deque[tuple[list[FileEntry], Future[tuple[Batch, list[Problem]]]]] = deque()
        for chunk in chunks:
            paths = [entry.path for entry in chunk]
            mine = {path: known[path] for path in paths if path in known}
            jobs.append((chunk, pool.submit(_read_in_worker, root, config, paths, mine)))
            # Few ahead, or results would pile up when committing is slower than reading.
            if len(jobs) > 2 * workers:
                first, job = jobs.popleft()
                yield first, job.result()
        for rest, job in jobs:
            yield rest, job.result()

    try:
        yield read_there
    except BrokenProcessPool as error:
        raise IndexFault(
            "a process that reads notes was ended from outside, perhaps for lack of memory; "
            "index again with the setting workers: 1"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _read_here(
    root: Root, config: Config, chunks: Iterable[list[FileEntry]], known: Known
) -> Iterator[_Result]:
    vocabulary = Vocabulary(make_tokenizer(config.stemming))
    for chunk in chunks:
        yield chunk, read_batch(root, config, [entry.path for entry in chunk], known, vocabulary)


class _Process(SpawnProcess):
    """A new interpreter that does not run the caller's script again, as spawned processes do."""

    @staticmethod
    def _Popen(process_obj: BaseProcess) -> Any:  # noqa: N802
        main, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
        try:
            return SpawnProcess._Popen(process_obj)
        finally:
            sys.modules["__main__"] = main


class _SpawnContext(SpawnContext):
    Process = _Process


def _end_with_parent() -> None:
    """Make this worker end when the process that started it is killed; it would wait for ever."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@cache
def make_tokenizer(stemming: bool) -> Tokenizer:
    """Return the tokeniser of this process, which remembers the words it has seen."""
    return Tokenizer(stemming=stemming)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Keep the garbage collector from running, if it was on; reading makes much and no cycles.

    It would go through all that was made again and again, to find nothing.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@_collector_paused()
def read_batch(
    root: Root, config: Config, paths: Sequence[str], known: Known, vocabulary: Vocabulary
) -> tuple[Batch, list[Problem]]:
    """Read and tokenise notes; what cannot be read becomes a problem, what is gone is left out.

    A note whose content is as ``known`` is only marked as touched.
    """
    builder, problems = BatchBuilder(vocabulary), list[Problem]()
    touched = []
    for path in paths:
        try:
            state = _settled(root, path)
            data = read_bytes(Place(root=root, path=path), config)
            digest = hashlib.sha256(data).hexdigest()
            if path in known and known[path].digest == digest:
                touched.append(Touched(path, signature(state), state.st_mtime))
                continue
            note = read_note(path, data)
        except FileNotFoundError:
            continue
        except (OSError, ReadingError, ValueError, RecursionError) as error:
            # Kept by name, without sections: it is read again when it changes, not at every run.
            digest, note = "", Note(path=path, title=stem(path), lines=(), sections=())
            problems.append(Problem(path=path, reason=_reason(path, error)))
        problems += [Problem(path=path, reason=reason, skipped=False) for reason in note.problems]
        builder.add(note, signature=signature(state), digest=digest, modified=state.st_mtime)
    batch = builder.finish()
    batch.touched += touched
    return batch, problems


def _read_in_worker(
    root: Root, config: Config, paths: Sequence[str], known: Known
) -> tuple[Batch, list[Problem]]:
    return read_batch(root, config, paths, known, _worker_vocabulary(config.stemming))


@cache
def _worker_vocabulary(stemming: bool) -> Vocabulary:
    return Vocabulary(make_tokenizer(stemming))


def _settled(root: Root, path: str) -> os.stat_result:
    """Return the state of a file, once every later write to it is sure to change that state.

    A file that has become a symbolic link, or lies behind one, counts as gone: the walk finds what it
    points at under its own name, or not at all.
    """
    file = str(root.path)
    for name in path.split("/"):
        file = os.path.join(file, name)
        state = os.lstat(file)
        if stat.S_ISLNK(state.st_mode):
            raise FileNotFoundError(path)
    age = time.time_ns() - max(state.st_mtime_ns, state.st_ctime_ns)
    if 0 <= age < _CLOCK_TICK_NS:
        time.sleep((_CLOCK_TICK_NS - age) / 1e9)
        state = os.lstat(file)
    return state


def _reason(path: str, error: Exception) -> str:
    if isinstance(error, ReadingError):
        return str(error).removeprefix(f"{path}: ")
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror}"
    return f"cannot be understood ({type(error).__name__}); please report this file as a bug"
