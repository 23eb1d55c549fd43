"""Notes on disk -> index: what is new or changed is read, tokenised and committed; then embedded.

Joins reading, tokens, embedding and index. Reading and tokenising go to worker processes when there is
enough to do; embedding uses threads, since the model runtime releases the interpreter lock.
"""

import hashlib
import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache

from searchsvc.config import Config, Root
from searchsvc.embedding.base import Embedder, Passage
from searchsvc.errors import ReadingError
from searchsvc.index.build import Writer
from searchsvc.index.records import Batch, BatchBuilder, context_of, passage_text
from searchsvc.items import Note, Problem
from searchsvc.reading.access import Place, read_bytes
from searchsvc.reading.note import read_note, stem
from searchsvc.reading.walk import FileEntry, signature, walk
from searchsvc.tokens import Tokenizer

Progress = Callable[[str, int, int], None]
"""Called with the stage (``reading`` or ``embedding``), how much is done and how much there is."""

_CHUNK_BYTES = 1_000_000
_MIN_BYTES_FOR_WORKERS = 3_000_000
_COMMIT_BYTES = 48_000_000
_EMBED_COMMIT = 512
"""Passages between two commits of vectors: what a crash can cost, about ten seconds of work."""


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


def update_index(
    writer: Writer, root: Root, config: Config, *, progress: Progress | None = None
) -> IndexReport:
    """Bring the lexical index of a root up to date with its files.

    Large runs are committed in portions, so that what was read stays read when a run is cut short,
    which ``progress`` may do by raising.
    """
    known = writer.catalog.signatures()
    entries, problems = _look(root, config)
    changed = [entry for entry in entries if known.get(entry.path, (0, ""))[1] != entry.signature]
    present = {entry.path for entry in entries}
    gone = [note for path, (note, _) in known.items() if path not in present]
    report = IndexReport(
        added=sum(entry.path not in known for entry in changed),
        unchanged=len(entries) - len(changed),
        removed=len(gone),
        remark=writer.remark,
    )
    report.changed = len(changed) - report.added
    before = writer.catalog.problems()
    replaced = {entry.path for entry in changed} | (set(known) - present)
    standing = [problem for problem in before if problem.path in known and problem.path not in replaced]
    unread = [problem for problem in before if problem.path not in known]
    if changed or gone or problems != unread or not writer.catalog.generation():
        _commit_portions(writer, root, config, changed, known, report, progress)
        report.problems += [*problems, *standing]
        writer.commit([], removed=gone, problems=report.problems, problem_paths=None)
        writer.compact()
    else:
        report.problems = before
    return report


def update_notes(writer: Writer, root: Root, config: Config, paths: Sequence[str]) -> None:
    """Bring only these notes up to date, for an answer that found them changed."""
    known = writer.catalog.signatures()
    batch, problems = read_batch(root, config, paths)
    removed = [known[path][0] for path in paths if path in known]
    writer.commit([batch], removed=removed, problems=problems, problem_paths=paths)


def _look(root: Root, config: Config) -> tuple[list[FileEntry], list[Problem]]:
    entries, problems = [], []
    for found in walk(root.path, config):
        if isinstance(found, Problem):
            problems.append(found)
        else:
            entries.append(found)
    return entries, sorted(problems, key=lambda problem: (problem.path, problem.reason))


def _commit_portions(
    writer: Writer,
    root: Root,
    config: Config,
    changed: Sequence[FileEntry],
    known: dict[str, tuple[int, str]],
    report: IndexReport,
    progress: Progress | None,
) -> None:
    """Read and commit new and changed notes."""
    portion: list[Batch] = []
    removed: list[int] = []
    size = done = 0
    with _reader(config, sum(entry.size for entry in changed)) as read:
        for chunk, (batch, problems) in read(root, config, _chunks(changed)):
            portion.append(batch)
            removed += [known[entry.path][0] for entry in chunk if entry.path in known]
            report.problems += problems
            report.sections += sum(len(note.sections) for note in batch.notes)
            size += sum(entry.size for entry in chunk)
            done += len(chunk)
            if progress:
                progress("reading", done, len(changed))
            if size >= _COMMIT_BYTES or done == len(changed):
                writer.commit(portion, removed=removed)
                portion, removed, size = [], [], 0


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


@contextmanager
def _reader(config: Config, size: int) -> Iterator[Callable[..., Iterator[_Result]]]:
    """Give a function that reads chunks in order, in worker processes when that pays."""
    workers = config.workers or os.cpu_count() or 1
    if workers == 1 or size < _MIN_BYTES_FOR_WORKERS:

        def here(root: Root, config: Config, chunks: Iterable[list[FileEntry]]) -> Iterator[_Result]:
            for chunk in chunks:
                yield chunk, read_batch(root, config, [entry.path for entry in chunk])

        yield here
        return
    # Spawned, not forked: a server runs threads, and a forked child may inherit their locks.
    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))

    def elsewhere(root: Root, config: Config, chunks: Iterable[list[FileEntry]]) -> Iterator[_Result]:
        all_chunks = list(chunks)
        paths = ([entry.path for entry in chunk] for chunk in all_chunks)
        jobs = [pool.submit(read_batch, root, config, part) for part in paths]
        for number, chunk in enumerate(all_chunks):
            yield chunk, jobs[number].result()
            jobs[number] = None  # type: ignore[call-overload]

    try:
        yield elsewhere
    finally:
        pool.shutdown(cancel_futures=True)


@cache
def make_tokenizer(stemming: bool) -> Tokenizer:
    """Return the tokeniser of this process, which remembers the words it has seen."""
    return Tokenizer(stemming=stemming)


def read_batch(root: Root, config: Config, paths: Sequence[str]) -> tuple[Batch, list[Problem]]:
    """Read and tokenise notes; what cannot be read becomes a problem."""
    builder, problems = BatchBuilder(make_tokenizer(config.stemming)), []
    for path in paths:
        try:
            stat = (root.path / path).stat()
        except OSError as error:
            problems.append(Problem(path=path, reason=f"cannot be read: {error.strerror}"))
            continue
        try:
            data = read_bytes(Place(root=root, path=path), config)
            note = read_note(path, data)
        except ReadingError as error:
            # Kept by name, without sections: it is read again when it changes, not at every run.
            data, note = b"", Note(path=path, title=stem(path), lines=(), sections=())
            problems.append(Problem(path=path, reason=str(error).removeprefix(f"{path}: ")))
        problems += [Problem(path=path, reason=reason, skipped=False) for reason in note.problems]
        digest = hashlib.sha256(data).hexdigest()
        builder.add(note, signature=signature(stat), digest=digest, modified=stat.st_mtime)
    return builder.finish(), problems


def embed_sections(
    open_writer: Callable[[], Writer],
    embedder: Embedder,
    *,
    progress: Progress | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> int:
    """Make the vectors that a profile lacks, and return how many texts were embedded.

    Every few hundred passages are committed; what is committed is never embedded again. The lease is
    held only to look and to commit, so that other writers get their turn while the model works.
    """
    identity = embedder.profile.identity
    with open_writer() as writer:
        work = writer.passages_to_embed(identity)
    done = 0
    for start in range(0, len(work), _EMBED_COMMIT):
        if stop():
            break
        with open_writer() as writer:
            passages = _passages(writer, work[start : start + _EMBED_COMMIT])
        keys, matrices = [], []
        for key, matrix in zip(passages, embedder.encode_passages(list(passages.values())), strict=False):
            keys.append(key)
            matrices.append(matrix)
            done += 1
            if progress:
                progress("embedding", done, len(work))
            if stop():
                break
        with open_writer() as writer:
            writer.add_vectors(identity, keys, matrices, embedder.profile.dimension)
    return done


def _passages(writer: Writer, work: Sequence[tuple[int, int]]) -> dict[int, Passage]:
    """Return the passages of ``(section id, key)`` pairs by key; sections gone meanwhile are left out."""
    rows = writer.catalog.sections([section for section, _ in work])
    titles = writer.catalog.notes({row.note for row in rows.values()})
    return {
        key: Passage(
            context=context_of(titles[rows[section].note].title, rows[section].section.heading_path),
            text=passage_text(rows[section].section, rows[section].text),
        )
        for section, key in work
        if section in rows
    }
