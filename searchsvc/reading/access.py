"""The jail: a path that somebody asked for -> a file inside a root, or a refusal.

The check is made on the real path, after every symbolic link, and by path components. What indexing
leaves out by rule is not served by name either. A refusal never shows where the roots lie.
"""

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from searchsvc.config import Config, Root
from searchsvc.errors import AccessDenied, NotFound, ReadingError
from searchsvc.reading.ignore import IgnoreRules
from searchsvc.reading.walk import is_note_name

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+:/")
_DRIVE = re.compile(r"[A-Za-z]:" if os.name == "nt" else r"[A-Za-z]:(/|$)")
_MAX_SHOWN = 200
_MAX_LENGTH = 4_096
_MAX_DEPTH = 200
"""Of a path: what no system takes is not even looked for."""


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
    shown = repr(asked if len(asked) <= _MAX_SHOWN else f"{asked[:_MAX_SHOWN]}…")
    _refuse_foreign(asked, shown)
    try:
        real = Path(os.path.realpath(root.path / asked))
        inside = real.is_relative_to(root.path) and real != root.path
    except (OSError, ValueError) as error:
        raise AccessDenied(f"{shown} is not a path of a note") from error
    if not inside:
        raise AccessDenied(f"{shown} lies outside the root; give a path relative to it, without '..'")
    path = real.relative_to(root.path).as_posix()
    if IgnoreRules(root.path, config).hides(path):
        raise AccessDenied(f"{shown} is left out by rule (hidden or ignored)")
    if not is_note_name(real.name):
        raise AccessDenied(f"{shown} is not a Markdown file")
    try:
        mode = real.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFound(f"no note at {shown}; search for it, or check the spelling") from error
    except OSError as error:
        raise ReadingError(f"{shown} cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(mode):
        raise NotFound(f"no note at {shown}: it is no file; search for it, or check the spelling")
    return Place(root=root, path=path)


def read_bytes(place: Place, config: Config) -> bytes:
    """Return the content of a file, checking on the open file what it is and how large.

    A file or folder that has become a symbolic link since its place was found is refused.
    """
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
    try:
        number = os.open(place.file, flags | getattr(os, "O_NONBLOCK", 0))
        with open(number, "rb") as stream:
            found = os.fstat(number)
            if not stat.S_ISREG(found.st_mode) or os.path.realpath(place.file) != str(place.file):
                raise AccessDenied(f"{place.path}: is a link or no file by now")
            if found.st_size > config.max_file_bytes:
                raise ReadingError(
                    f"{place.path}: {found.st_size:,} bytes, at most {config.max_file_bytes:,} are read"
                )
            return stream.read(config.max_file_bytes)
    except OSError as error:
        raise ReadingError(f"{place.path}: cannot be read: {error.strerror}") from error


def _refuse_foreign(asked: str, shown: str) -> None:
    if not asked.strip() or "\x00" in asked:
        raise AccessDenied("an empty path names no note; give a path relative to the root")
    if len(asked) > _MAX_LENGTH or asked.count("/") > _MAX_DEPTH:
        raise AccessDenied(f"{shown} is longer or deeper than a path of a note can be")
    if _SCHEME.match(asked):
        raise AccessDenied(f"{shown} is an address, expected a path relative to the root")
    if asked.startswith(("/", "~/")) or asked == "~" or _DRIVE.match(asked) or "\\" in asked:
        raise AccessDenied(f"{shown} is not relative to the root; use '/' between names and no drive")
