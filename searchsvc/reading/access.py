"""The jail: a path that somebody asked for -> a file inside a root, or a refusal.

The check is made on the real path, after every symbolic link, and by path components. What indexing
leaves out by rule is not served by name either. A refusal never shows where the roots lie.
"""

import os
import re
import stat
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from searchsvc.config import Config, Root
from searchsvc.errors import AccessDenied, NotFound, ReadingError
from searchsvc.reading.ignore import IgnoreRules
from searchsvc.reading.walk import is_note_name

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+:/")
_DRIVE = re.compile(r"[A-Za-z]:" if os.name == "nt" else r"[A-Za-z]:(/|$)")
_OPENS_OTHER_SPELLINGS = sys.platform == "darwin"
"""Whether a file opens under its name in other letter case or Unicode form, and its real path keeps that
form; on Windows, which is as lenient, the real path is spelled as it is listed."""
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


def locate(asked: str, root: Root, config: Config, rules: IgnoreRules | None = None) -> Place:
    """Return the place of a note given by its path relative to ``root``; ``rules`` spares reading them.

    Raises ``AccessDenied`` when the path leaves the root or is hidden by rule, ``NotFound`` when there
    is no such file.
    """
    real, shown = _real(asked, root)
    path = real.relative_to(root.path).as_posix()
    if (rules or IgnoreRules(root.path, config)).hides(path):
        raise AccessDenied(f"{shown} is left out by rule (hidden or ignored)")
    if not is_note_name(real.name):
        raise AccessDenied(f"{shown} is not a Markdown file")
    _expect_file(real, shown, "note")
    return Place(root=root, path=path)


def locate_attachment(asked: str, root: Root) -> Place:
    """Return the place of a file that a note shows, such as an image, given relative to ``root``.

    Patterns that keep folders from being searched do not count here; hidden names do. Raises as ``locate``.
    """
    real, shown = _real(asked, root)
    path = real.relative_to(root.path).as_posix()
    if any(name.startswith(".") for name in path.split("/")):
        raise AccessDenied(f"{shown} is hidden")
    _expect_file(real, shown, "file")
    return Place(root=root, path=path)


def locate_folder(asked: str, root: Root, config: Config) -> str:
    """Return a folder relative to ``root``, empty for the root itself; raises as ``locate``."""
    if asked.strip("/") in ("", "."):
        return ""
    real, shown = _real(asked.rstrip("/"), root)
    path = real.relative_to(root.path).as_posix()
    if IgnoreRules(root.path, config).hides(f"{path}/"):
        raise AccessDenied(f"{shown} is left out by rule (hidden or ignored)")
    if not real.is_dir():
        raise NotFound(f"no folder at {shown}")
    return path


def _real(asked: str, root: Root) -> tuple[Path, str]:
    """Return the real path of something inside a root, and how an error may show what was asked."""
    shown = repr(asked if len(asked) <= _MAX_SHOWN else f"{asked[:_MAX_SHOWN]}…")
    _refuse_foreign(asked, shown)
    try:
        real = Path(os.path.realpath(root.path / asked))
        inside = real.is_relative_to(root.path) and real != root.path
    except (OSError, ValueError) as error:
        raise AccessDenied(f"{shown} is not a path of a note") from error
    if not inside:
        raise AccessDenied(f"{shown} lies outside the root; give a path relative to it, without '..'")
    if _OPENS_OTHER_SPELLINGS:
        real = _as_listed(root.path, real.relative_to(root.path).parts)
    return real, shown


def _as_listed(folder: Path, names: Sequence[str]) -> Path:
    """Return the path of names in a folder as the folders on the way list them, by which rules go."""
    for name in names:
        try:
            listed = os.listdir(folder)
        except OSError:
            listed = []
        if name not in listed:
            name = next((other for other in listed if _folded(other) == _folded(name)), name)
        folder /= name
    return folder


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _expect_file(real: Path, shown: str, kind: str) -> None:
    try:
        mode = real.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFound(f"no {kind} at {shown}; search for it, or check the spelling") from error
    except OSError as error:
        raise ReadingError(f"{shown} cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(mode):
        raise NotFound(f"no {kind} at {shown}: it is no file; search for it, or check the spelling")


def read_bytes(place: Place, config: Config, max_bytes: int = 0) -> bytes:
    """Return the content of a file of at most ``max_bytes`` (without it, of a note's size).

    What it is and how large is checked on the open file.

    A file or folder that has become a symbolic link since its place was found is refused.
    """
    limit = max_bytes or config.max_file_bytes
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
    file = os.path.join(place.root.path, place.path)
    try:
        number = os.open(file, flags | getattr(os, "O_NONBLOCK", 0))
        with open(number, "rb") as stream:
            found = os.fstat(number)
            if not stat.S_ISREG(found.st_mode) or os.path.realpath(file) != file:
                raise AccessDenied(f"{place.path}: is a link or no file by now")
            if found.st_size > limit:
                raise ReadingError(f"{place.path}: {found.st_size:,} bytes, at most {limit:,} are read")
            # Room is made for as much as is asked for, which takes longer than reading a note.
            return stream.read(found.st_size or limit)
    except OSError as error:
        raise ReadingError(f"{place.path}: cannot be read: {error.strerror}") from error


def _refuse_foreign(asked: str, shown: str) -> None:
    if not asked.strip() or "\x00" in asked:
        raise AccessDenied("an empty path names no note; give a path relative to the root")
    if len(asked) > _MAX_LENGTH or asked.count("/") > _MAX_DEPTH:
        raise AccessDenied(f"{shown} is longer or deeper than a path of a note can be")
    if _SCHEME.match(asked):
        raise AccessDenied(f"{shown} is an address, expected a path relative to the root")
    if asked.startswith("~/") or asked == "~":
        raise AccessDenied(f"{shown} is not written out; give a path relative to a root, or the whole path")
    if asked.startswith("/") or _DRIVE.match(asked):
        raise AccessDenied(
            f"{shown} is not relative to a root, nor a whole path inside one or inside an allowed folder; "
            "give a path relative to a root, or start with --allow-path"
        )
    if "\\" in asked:
        raise AccessDenied(f"{shown} is not written as paths are here; use '/' between names")
