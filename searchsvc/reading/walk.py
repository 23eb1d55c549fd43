"""A root -> its note files, each real file once.

Symbolic links are not followed: what they point at inside the root is found under its own name, and
what lies outside is not the root's. That also makes a walk end, however links are nested.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from searchsvc.config import Config
from searchsvc.items import Problem
from searchsvc.reading.ignore import IgnoreRules
from searchsvc.reading.links import NOTE_SUFFIXES

_HELD_BY_ANOTHER = (32, 33)
"""Windows errors: another program has the file open, or a part of it locked."""
_UNSHOWABLE = re.compile("[\\\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A note file as the file system sees it."""

    path: str
    """Relative to its root, ``/``-separated."""
    size: int
    """In bytes."""
    signature: str
    """Changes whenever the file does: size, modification and change time, inode."""


def walk(root: Path, config: Config) -> Iterator[FileEntry | Problem]:
    """Yield the notes under ``root`` in path order, and a problem for each entry that cannot be read.

    Problems that may pass are such as skip nothing: what is indexed of the entry should stay.
    """
    rules = IgnoreRules(root, config)
    folders = [""]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(root / folder) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            yield _unread(folder or ".", f"folder cannot be opened: {error.strerror}", error)
            continue
        inner = []
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            try:
                if entry.is_dir(follow_symlinks=False):
                    if not rules.skips(path, is_folder=True):
                        if _UNSHOWABLE.search(entry.name):
                            yield _unshowable(path, "folder")
                        else:
                            inner.append(path)
                elif entry.is_symlink():
                    broken = _examine_link(entry, path, root, rules)
                    if broken is not None:
                        yield broken
                elif is_note_name(entry.name) and not rules.skips(path, is_folder=False):
                    found = _examine(entry, path, root, config)
                    if found is not None:
                        yield found
            except OSError as error:
                yield _unread(path, f"cannot be read: {error.strerror}", error)
        folders += reversed(inner)


def is_note_name(name: str) -> bool:
    """Tell whether a file name is that of a note, by its suffix in any letter case."""
    return name.lower().endswith(NOTE_SUFFIXES)


def signature(stat: os.stat_result) -> str:
    """Return what changes when a file changes, even when its modification time is set back."""
    return f"{stat.st_size}-{stat.st_mtime_ns}-{stat.st_ctime_ns}-{stat.st_ino}"


def may_pass(error: Exception) -> bool:
    """Tell whether a file that could not be read may be readable in a moment, without any change to it.

    So it is with too many open files, a disk that is away, or another program that holds the file (on
    Windows); a lack of rights stays until the file changes.
    """
    cause = error if isinstance(error, OSError) else error.__cause__
    if isinstance(cause, PermissionError):
        return getattr(cause, "winerror", None) in _HELD_BY_ANOTHER
    return isinstance(cause, OSError)


def _examine(entry: os.DirEntry[str], path: str, root: Path, config: Config) -> FileEntry | Problem | None:
    if not entry.is_file(follow_symlinks=False):
        return None
    if _UNSHOWABLE.search(entry.name):
        return _unshowable(path, "file")
    stat = entry.stat(follow_symlinks=False)
    if stat.st_size > config.max_file_bytes:
        return Problem(
            path=path,
            reason=f"{stat.st_size:,} bytes, at most {config.max_file_bytes:,} are read; "
            "split it or raise max_file_bytes",
        )
    return FileEntry(path=path, size=stat.st_size, signature=signature(stat))


def _unread(path: str, reason: str, error: OSError) -> Problem:
    if may_pass(error):
        return Problem(path=path, reason=f"{reason}; what is indexed of it stays", skipped=False)
    return Problem(path=path, reason=reason)


def _unshowable(path: str, kind: str) -> Problem:
    shown = path.encode("unicode_escape", "backslashreplace").decode()
    return Problem(
        path=shown, reason=f"name has a backslash or control characters or is not Unicode; rename the {kind}"
    )


def _examine_link(entry: os.DirEntry[str], path: str, root: Path, rules: IgnoreRules) -> Problem | None:
    """Report a link whose target looks like notes but is not found under another name."""
    is_folder = entry.is_dir()
    if not (is_folder or is_note_name(entry.name)) or rules.skips(path, is_folder=is_folder):
        return None
    target = Path(os.path.realpath(root / path))
    if not target.exists():
        return Problem(path=path, reason="link leads nowhere")
    if not target.is_relative_to(root):
        return Problem(path=path, reason="link leads outside the root; add its target as a root to search it")
    if not is_folder and not is_note_name(target.name):
        return Problem(path=path, reason="link leads to a file that is not Markdown by its name")
    return None
