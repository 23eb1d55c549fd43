"""The jail: a path that somebody asked for -> a file inside a root, or a refusal.

The check is made on the real path, after every symbolic link, and by path components. What indexing
leaves out by rule is not served by name either. A refusal never shows where the roots lie.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from searchsvc.config import Config, Root
from searchsvc.errors import AccessDenied, NotFound, ReadingError
from searchsvc.reading.ignore import IgnoreRules
from searchsvc.reading.walk import is_note_name

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+:/")
_DRIVE = re.compile(r"[A-Za-z]:")


@dataclass(frozen=True, slots=True)
class Place:
    """A file that may be read."""

    root: Root
    path: str
    """Of the real file, relative to the root."""

    @property
    def file(self) -> Path:
        """Where to open it."""
        return self.root.path / self.path


def locate(asked: str, root: Root, config: Config) -> Place:
    """Return the place of a note given by its path relative to ``root``.

    Raises ``AccessDenied`` when the path leaves the root or is hidden by rule, ``NotFound`` when there
    is no such file.
    """
    _refuse_foreign(asked)
    try:
        real = Path(os.path.realpath(root.path / asked))
        inside = real.is_relative_to(root.path) and real != root.path
    except (OSError, ValueError) as error:
        raise AccessDenied(f"{asked!r} is not a path of a note") from error
    if not inside:
        raise AccessDenied(f"{asked!r} lies outside the root; give a path relative to it, without '..'")
    path = real.relative_to(root.path).as_posix()
    if IgnoreRules(root.path, config).hides(path):
        raise AccessDenied(f"{asked!r} is left out by rule (hidden or ignored)")
    if not is_note_name(real.name):
        raise AccessDenied(f"{asked!r} is not a Markdown file")
    if not real.is_file():
        raise NotFound(f"no note at {asked!r}; search for it, or check the spelling")
    return Place(root=root, path=path)


def read_bytes(place: Place, config: Config) -> bytes:
    """Return the content of a file, checking its size on the open file."""
    try:
        with place.file.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            if size > config.max_file_bytes:
                raise ReadingError(
                    f"{place.path}: {size:,} bytes, at most {config.max_file_bytes:,} are read"
                )
            return stream.read(config.max_file_bytes)
    except OSError as error:
        raise ReadingError(f"{place.path}: cannot be read: {error.strerror}") from error


def _refuse_foreign(asked: str) -> None:
    if not asked.strip() or "\x00" in asked:
        raise AccessDenied("an empty path names no note; give a path relative to the root")
    if _SCHEME.match(asked):
        raise AccessDenied(f"{asked!r} is an address, expected a path relative to the root")
    if asked.startswith(("/", "\\", "~")) or _DRIVE.match(asked) or "\\" in asked:
        raise AccessDenied(f"{asked!r} is not relative to the root; use '/' between names and no drive")
