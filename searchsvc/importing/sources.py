"""What a person names -> the documents that it stands for: files, folders with all below them, patterns.

In folders and patterns, what is hidden, symbolic links, and documents that an import has made are left out.
"""

import fnmatch
import os
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from searchsvc.importing.store import is_import

_MAGIC = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class Found:
    """A document, or something that was named and is none."""

    path: str
    """As it was given, or below what was given."""
    problem: str = ""
    """Why it is none; empty for a document."""


def find_sources(paths: Iterable[str | Path], suffixes: Collection[str]) -> Iterator[Found]:
    """Yield the documents that paths stand for, each once; ``suffixes`` are in lower case."""
    seen: set[str] = set()
    for given in map(str, paths):
        for found in _expanded(given, suffixes):
            key = os.path.abspath(found.path)
            if key not in seen:
                seen.add(key)
                yield found


def suffix_of(path: str) -> str:
    """Return the suffix of a file name in lower case."""
    return os.path.splitext(path)[1].lower()


def _expanded(given: str, suffixes: Collection[str]) -> Iterator[Found]:
    if os.path.isdir(given):
        yield from _walk(given, suffixes)
    elif os.path.lexists(given):
        yield _named(given, suffixes)
    elif not _MAGIC.search(given):
        yield Found(given, "there is no such file or folder; check the path")
    else:
        is_any = False
        for found in _matching(os.path.expanduser(given), suffixes):
            is_any = True
            yield found
        if not is_any:
            yield Found(given, f"matches no document; expected {', '.join(suffixes)}")


def _named(path: str, suffixes: Collection[str]) -> Found:
    """Return a file that was named by itself, which may be a link or hidden."""
    suffix = suffix_of(path)
    if suffix not in suffixes:
        kind = f"a {suffix} file" if suffix else "a file without suffix"
        return Found(path, f"{kind}, expected {', '.join(suffixes)}; convert it to one of these")
    if is_import(Path(os.path.abspath(path)).parent):
        return Found(path, "was made by an import; import its source instead")
    return Found(path)


def _walk(folder: str, suffixes: Collection[str]) -> Iterator[Found]:
    """Yield the documents below a folder, those of a folder before those of its folders."""
    folders = [folder]
    while folders:
        folder = folders.pop()
        try:
            entries = _listed(folder)
        except OSError as error:
            yield Found(folder, f"the folder cannot be opened: {error.strerror}; check its permissions")
            continue
        for entry in entries:
            if entry.is_file(follow_symlinks=False) and suffix_of(entry.name) in suffixes:
                yield Found(os.path.join(folder, entry.name))
        folders += [os.path.join(folder, entry.name) for entry in reversed(entries) if _is_open(entry)]


def _matching(pattern: str, suffixes: Collection[str]) -> Iterator[Found]:
    """Yield the documents that match a pattern, or lie in a folder that does.

    Not by the ``glob`` module: its ``**`` follows links, in circles if need be.
    """
    parts = Path(pattern).parts
    fixed = next(number for number, part in enumerate(parts) if _MAGIC.search(part))
    for match in _descend(os.path.join(*parts[:fixed]) if fixed else "", parts[fixed:]):
        if os.path.isdir(match or os.curdir):
            yield from _walk(match, suffixes)
        elif suffix_of(match) in suffixes:
            yield Found(match)


def _descend(base: str, parts: tuple[str, ...]) -> Iterator[str]:
    if not parts:
        yield base
        return
    head, rest = parts[0], parts[1:]
    try:
        entries = _listed(base)
    except OSError:
        return
    if head == "**":
        yield from _descend(base, rest)
    for entry in entries:
        path = os.path.join(base, entry.name)
        if head == "**":
            if _is_open(entry):
                yield from _descend(path, parts)
        elif fnmatch.fnmatchcase(entry.name, head) and (_is_open(entry) or not (rest or entry.is_dir())):
            yield from _descend(path, rest)


def _listed(folder: str) -> list[os.DirEntry[str]]:
    """Return what a folder holds that is neither hidden nor a link, by name; no name is the current one."""
    with os.scandir(folder or os.curdir) as listing:
        entries = [e for e in listing if not e.name.startswith(".") and not e.is_symlink()]
    return sorted(entries, key=lambda entry: entry.name)


def _is_open(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False) and not is_import(Path(entry.path))
