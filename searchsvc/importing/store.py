"""Imported documents on disk: one folder for each, which is there whole or not at all.

<store>/
    <slug>-<hash of source path>/index.md     the text, with front matter that says where it comes from
    <slug>-<hash of source path>/assets/      its images
    .searchsvc-import.lock                    held by the one job that writes
    .searchsvc-new-*, .searchsvc-old-*        documents being written, replaced or removed

A document is written beside its place, synced, and renamed into place; one that it replaces is renamed away
before and removed after. What a crash leaves in between is put right by the next job.
"""

import errno
import hashlib
import os
import re
import secrets
import shutil
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import yaml
from filelock import FileLock, Timeout

from searchsvc.errors import SearchError
from searchsvc.importing.base import VERSION, Asset, Book
from searchsvc.reading.decode import decode
from searchsvc.reading.frontmatter import read_front_matter
from searchsvc.reading.slugs import slug

INDEX = "index.md"
ASSETS = "assets"
_LOCK = ".searchsvc-import.lock"
_NEW = ".searchsvc-new-"
_OLD = ".searchsvc-old-"
_POLL_SECONDS = 0.5
_SLUG_CHARACTERS = 50
"""With these all of four bytes, a name stays within the 255 bytes that file systems take."""
_HASH_CHARACTERS = 12
_PLACE = re.compile(rf".+-[0-9a-f]{{{_HASH_CHARACTERS}}}")
_HEAD_BYTES = 100_000
"""More than front matter of ours takes."""
_MAX_TEXT = 500
_MAX_SOURCE = 8_000
_NO_TEXT = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\ud800-\udfff]")
"""Control characters, by which readers tell binary data, and halves of surrogate pairs."""
_NO_YAML = re.compile("[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ue028\ue029\ue085\ufffe\uffff]")
"""What YAML has no place for, and three characters that our reader of front matter uses inside."""
_ASSET_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,150}")
_LANGUAGE = re.compile(r"[A-Za-z]{1,8}([-_][A-Za-z0-9]{1,8}){0,8}")
OVERRIDABLE = ("title", "author", "language")


@dataclass(frozen=True, slots=True)
class Record:
    """What the front matter of an imported document says about its making."""

    sha256: str
    version: int
    overrides: Mapping[str, str] = field(default_factory=dict)
    """What the user said instead of the document, by name of the property."""
    pages: int = 0


@dataclass(frozen=True, slots=True)
class Source:
    """A file that was imported."""

    path: str
    """Absolute."""
    sha256: str
    overrides: Mapping[str, str] = field(default_factory=dict)
    """As ``clean_overrides`` returns them."""


class Store:
    """A folder of imported documents. Whoever writes holds ``lock``, or works for one who does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def place(self, source: str) -> Path:
        """Return the folder of a document given the absolute path of its source: always the same."""
        digest = hashlib.sha256(os.fsencode(source)).hexdigest()[:_HASH_CHARACTERS]
        stem = unicodedata.normalize("NFC", Path(source).stem)
        return self.folder / f"{slug(stem)[:_SLUG_CHARACTERS].strip('-') or 'document'}-{digest}"

    def record(self, source: str) -> Record | None:
        """Return what is known of a document that is there, none when it has to be made."""
        return read_record(self.place(source))

    def write(self, source: Source, book: Book) -> Path:
        """Put a document in its place, and return that; raises ``SearchError`` when it cannot be written."""
        place = self.place(source.path)
        staging = self.folder / f"{_NEW}{secrets.token_hex(8)}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            _fill(staging, source, book)
            self._swap(staging, place)
        except OSError as error:
            raise _write_error(error) from error
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        return place

    @contextmanager
    def lock(self, waiting: Callable[[], None] | None = None) -> Iterator[None]:
        """Keep other jobs away, and put right what a crash left behind.

        ``waiting`` is called again and again while another job is at work; it may raise to give up.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.folder / _LOCK)
            while not lock.is_locked:
                try:
                    lock.acquire(timeout=_POLL_SECONDS)
                except Timeout:
                    if waiting is not None:
                        waiting()
        except OSError as error:
            raise _write_error(error) from error
        try:
            self._repair()
            try:
                yield
            finally:
                # What workers were at when they were ended: on Ctrl-C, or one by its document.
                self._repair()
        finally:
            lock.release()

    def _repair(self) -> None:
        """Remove what was not finished; bring back what was renamed away for something that never came."""
        try:
            for name in os.listdir(self.folder):
                if name.startswith(_NEW):
                    _remove(self.folder / name)
                elif name.startswith(_OLD):
                    place = self.folder / name.removeprefix(_OLD)
                    if os.path.lexists(place):
                        self._discard(self.folder / name)
                    else:
                        os.rename(self.folder / name, place)
        except OSError as error:
            raise _write_error(error) from error

    def _swap(self, staging: Path, place: Path) -> None:
        old = self.folder / f"{_OLD}{place.name}"
        is_there = os.path.lexists(place)
        if is_there:
            os.rename(place, old)
        try:
            os.rename(staging, place)
        except OSError:
            if is_there:
                os.rename(old, place)
            raise
        _sync_folder(self.folder)
        if is_there:
            self._discard(old)

    def _discard(self, old: Path) -> None:
        """Remove a document that was replaced.

        It gets the name of an unfinished one first: what is called old is whole, and may be brought back.
        """
        doomed = self.folder / f"{_NEW}{secrets.token_hex(8)}"
        os.rename(old, doomed)
        _remove(doomed)


def read_record(place: Path) -> Record | None:
    """Return what the document in a folder says about its making; none when it is no import."""
    try:
        with open(place / INDEX, "rb") as stream:
            lines = decode(stream.read(_HEAD_BYTES)).lines
    except (OSError, SearchError):
        return None
    properties = read_front_matter(lines).properties
    sha256, version, named = (properties.get(key) for key in ("sha256", "importer", "overrides"))
    if not isinstance(sha256, str) or not isinstance(version, int):
        return None
    names = [name for name in named if name in OVERRIDABLE] if isinstance(named, list) else []
    pages = properties.get("pages")
    return Record(
        sha256,
        version,
        {name: str(properties.get(name, "")) for name in names},
        pages if isinstance(pages, int) else 0,
    )


def is_import(folder: Path) -> bool:
    """Tell whether a folder holds an imported document, which is nobody's source."""
    return _PLACE.fullmatch(folder.name) is not None and read_record(folder) is not None


def clean_overrides(overrides: Mapping[str, str]) -> dict[str, str]:
    """Return what a user says of a document as it is kept; an empty value takes back what was said before."""
    return {name: _clean(name, value) for name, value in overrides.items()}


def _clean(name: str, value: str) -> str:
    """Return a property in one line of text of bounded length."""
    line = " ".join(_NO_YAML.sub("\ufffd", value).split())
    if name == "language":
        return line if _LANGUAGE.fullmatch(line) else ""
    return line if len(line) <= _MAX_TEXT else f"{line[: _MAX_TEXT - 1]}…"


class _Dumper(yaml.SafeDumper):
    """Quotes every text: what YAML 1.1 takes for text may be a number to readers of YAML 1.2."""


class _Text(str):
    """A value, as opposed to a key."""

    __slots__ = ()


def _quoted(dumper: yaml.SafeDumper, text: _Text) -> yaml.ScalarNode:
    style = "'" if text.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style=style)


_Dumper.add_representer(_Text, _quoted)


def _front_matter(source: Source, book: Book) -> str:
    said = {"title": book.title, "author": book.author, "language": book.language}
    said = {name: _clean(name, value) for name, value in said.items()} | dict(source.overrides)
    said["title"] = said["title"] or _clean("title", Path(source.path).stem) or "Untitled"
    known: dict[str, object] = {name: _Text(value) for name, value in said.items() if value}
    # A name that is not Unicode is shown with escapes: YAML has no way to write it.
    shown = os.fsencode(source.path).decode("utf-8", "backslashreplace")
    known |= {"source": _Text(shown[:_MAX_SOURCE]), "file_type": _Text(book.kind)}
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    known |= {"sha256": _Text(source.sha256), "imported_at": _Text(now), "importer": VERSION}
    if book.pages:
        known["pages"] = book.pages
    if source.overrides:
        known["overrides"] = sorted(source.overrides)
    return yaml.dump(known, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=float("inf"))


def _fill(staging: Path, source: Source, book: Book) -> None:
    """Write a document into a new folder; when this returns all of it is on the disk."""
    staging.mkdir()
    if book.assets:
        (staging / ASSETS).mkdir()
        taken = set[str]()
        for asset in book.assets:
            _write(staging / ASSETS / _checked_name(asset, taken), asset.data)
        _sync_folder(staging / ASSETS)
    body = _NO_TEXT.sub("\ufffd", book.markdown).strip("\n")
    text = f"---\n{_front_matter(source, book)}---\n\n{body}\n"
    _write(staging / INDEX, text.encode("utf-8"))
    _sync_folder(staging)


def _checked_name(asset: Asset, taken: set[str]) -> str:
    folded = asset.name.casefold()
    if not _ASSET_NAME.fullmatch(asset.name) or folded in taken:
        raise SearchError(
            f"an importer made the image name {asset.name[:80]!r}, expected a new one of letters, digits and "
            "- _ . only; please report this file as a bug"
        )
    taken.add(folded)
    return asset.name


def _write(file: Path, data: bytes) -> None:
    with open(file, "xb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":  # Windows has no handle for this, and orders renames by itself.
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _write_error(error: OSError) -> SearchError:
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    advice = "free space" if is_full else "check the permissions of the folder, or choose another with --into"
    return SearchError(
        f"cannot be written: {error.strerror or 'unknown error'}; {advice}, then import again. "
        "What was imported before is kept"
    )
