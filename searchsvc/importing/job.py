"""The import job: files, folders and patterns -> documents in a store, each made in a worker process.

The parent knows names and outcomes only: a worker reads a file, converts it, and writes the result.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, Protocol

from searchsvc.errors import ConfigError, ReadingError, SearchError
from searchsvc.importing.base import VERSION, Book, Limits
from searchsvc.importing.sources import find_sources, suffix_of
from searchsvc.importing.store import OVERRIDABLE, Source, Store, clean_overrides
from searchsvc.importing.workers import Lost, run_each

SECONDS = 300.0
"""How long one document may take."""
_MAX_NOTICES = 20
_MAX_REASON = 500
_NO_LIMITS = Limits()
_NOTHING: Mapping[str, str] = {}

State = Literal["imported", "unchanged", "failed"]
Converter = Callable[[bytes, Limits, Path], Book]
"""Makes a book of the bytes of a file and the folder it lies in; raises ``ReadingError``.

Workers import it by its name."""


class Progress(Protocol):
    """Told how far the job has got."""

    def __call__(self, stage: str, done: int, total: int, failed: int = 0) -> None:
        """Take note; may raise to stop the work."""


@dataclass(frozen=True, slots=True)
class Row:
    """What came of one document."""

    path: str
    """Of its source, as given or as found in what was given."""
    state: State
    reason: str = ""
    """Why it failed."""
    notices: tuple[str, ...] = ()
    """What could not be had, for people."""
    pages: int = 0
    folder: Path | None = None
    """Where it is; none when it failed."""


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What one job did."""

    into: Path
    """The store."""
    rows: tuple[Row, ...] = ()
    """One for each document, in the order of the paths that were given."""

    def count(self, state: State) -> int:
        """Return how many documents ended in a state."""
        return sum(row.state == state for row in self.rows)


@dataclass(frozen=True, slots=True)
class _Settings:
    """What is the same for every document; sent to the workers once."""

    into: Path
    limits: Limits
    force: bool
    overrides: Mapping[str, str]
    converters: Mapping[str, Converter]
    note_bytes: int


@dataclass(frozen=True, slots=True)
class _Task:
    number: int
    path: str


def _pdf(data: bytes, limits: Limits, folder: Path) -> Book:
    from searchsvc.importing.pdf import convert

    return convert(data, limits)


def _epub(data: bytes, limits: Limits, folder: Path) -> Book:
    from searchsvc.importing.epub import convert

    return convert(data, limits)


def _markdown(data: bytes, limits: Limits, folder: Path) -> Book:
    from searchsvc.importing.markdown import convert

    return convert(data, limits, folder)


CONVERTERS: Mapping[str, Converter] = {
    ".pdf": _pdf,
    ".epub": _epub,
    **dict.fromkeys((".md", ".markdown", ".mdx", ".qmd"), _markdown),
}
"""By suffix in lower case."""


def import_documents(
    paths: Iterable[str | Path],
    *,
    into: Path,
    limits: Limits = _NO_LIMITS,
    force: bool = False,
    overrides: Mapping[str, str] = _NOTHING,
    progress: Progress | None = None,
    workers: int = 0,
    seconds: float = SECONDS,
    note_bytes: int = 0,
    converters: Mapping[str, Converter] = CONVERTERS,
) -> ImportReport:
    """Import files, folders with all that is below them, and glob patterns into the store ``into``.

    A document whose content, importer and overrides are as they were is left alone unless ``force``.
    ``overrides`` are a title, author and language for all of them; later jobs that name none keep them, until
    an empty text takes them back. A document that takes more than ``seconds`` is given up; one that makes
    more than ``note_bytes`` of text gets a notice that it will not be indexed. ``workers``: 0 for one a core.

    Raises ``SearchError`` when the store cannot be written; what is wrong with one document is in its row.
    """
    unknown = sorted(set(overrides) - set(OVERRIDABLE))
    if unknown:
        raise ConfigError(f"cannot override {unknown[0]!r}; expected some of {', '.join(OVERRIDABLE)}")
    store = Store(Path(os.path.abspath(into)))
    settings = _Settings(store.folder, limits, force, clean_overrides(overrides), converters, note_bytes)

    def waiting() -> None:
        if progress:
            progress("waiting for another import", 0, 1)

    rows: dict[int, Row] = {}
    tasks: list[_Task] = []
    for number, found in enumerate(find_sources(paths, converters)):
        if found.problem:
            rows[number] = Row(found.path, "failed", found.problem)
        else:
            tasks.append(_Task(number, found.path))
    total, failed = len(rows) + len(tasks), len(rows)
    with store.lock(waiting):
        job = partial(_import, settings)
        results = run_each(job, tasks, workers=workers or os.cpu_count() or 1, seconds=seconds)
        with closing(results):
            for task, outcome in results:
                row = Row(task.path, "failed", outcome.reason) if isinstance(outcome, Lost) else outcome
                rows[task.number] = row
                failed += row.state == "failed"
                if progress:
                    progress("importing", len(rows), total, failed)
    return ImportReport(store.folder, tuple(rows[number] for number in sorted(rows)))


def _import(settings: _Settings, task: _Task) -> Row:
    """Import one document and say what came of it; runs in a worker."""
    try:
        return _imported(settings, task.path)
    except (SearchError, OSError, MemoryError) as error:
        return Row(task.path, "failed", _reason(error)[:_MAX_REASON])
    except ImportError as error:
        return Row(task.path, "failed", f"needs {error.name}, which is not installed; install it")
    except Exception as error:  # Parsers of damaged files raise nearly anything; one file is not the job.
        return Row(task.path, "failed", f"cannot be understood ({type(error).__name__}); is it damaged?")


def _imported(settings: _Settings, path: str) -> Row:
    store, source = Store(settings.into), os.path.abspath(path)
    data = _read(source, settings.limits.file_bytes)
    digest = hashlib.sha256(data).hexdigest()
    place, known = store.place(source), store.record(source)
    said = {**(known.overrides if known else {}), **settings.overrides}
    said = {name: value for name, value in said.items() if value}
    is_same = known is not None and (known.sha256, known.version) == (digest, VERSION)
    if known and is_same and known.overrides == said and not settings.force:
        return Row(path, "unchanged", pages=known.pages, folder=place)
    book = settings.converters[suffix_of(path)](data, settings.limits, Path(source).parent)
    store.write(Source(source, digest, said), book)
    notices = [notice[:_MAX_REASON] for notice in book.notices[:_MAX_NOTICES]]
    if len(book.notices) > _MAX_NOTICES:
        notices.append(f"{len(book.notices) - _MAX_NOTICES} more")
    size = len(book.markdown.encode("utf-8", "replace"))
    if settings.note_bytes and size > settings.note_bytes:
        notices.append(
            f"{size:,} bytes of text, at most {settings.note_bytes:,} are indexed; raise max_file_bytes"
        )
    return Row(path, "imported", notices=tuple(notices), pages=book.pages, folder=place)


def _read(path: str, limit: int) -> bytes:
    """Return the content of a regular file; what it is and how large is checked on the open file."""
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
    with open(os.open(path, flags), "rb") as stream:
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ReadingError("is no regular file; expected a document")
        if status.st_size > limit:
            raise ReadingError(f"{status.st_size:,} bytes, at most {limit:,} are read; split the file")
        return stream.read(limit)


def _reason(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return "takes more memory than one document may have; split the file"
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror or type(error).__name__}; check the file and its permissions"
    return str(error)
