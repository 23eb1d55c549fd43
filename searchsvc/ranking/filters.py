"""Which notes a question is about: exact conditions, applied before ranking."""

import difflib
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from searchsvc.errors import NotFound, QueryError
from searchsvc.index.catalog import Catalog
from searchsvc.index.open import Frame
from searchsvc.ranking.corpus import Mask

_GLOB_SIGNS = re.compile(r"[*?\[]")
_AGE = re.compile(r"(\d{1,6})\s*([hdwmy])", re.IGNORECASE)
_HOURS = {"h": 1, "d": 24, "w": 168, "m": 730, "y": 8766}


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions that a note must meet, all of them."""

    path: str = ""
    """A note, a folder or a glob; ``root:`` before it picks a root."""
    tags: tuple[str, ...] = ()
    """Every one must be on the note; ``a`` also takes ``a/b``."""
    properties: Mapping[str, Any] = field(default_factory=dict)
    """Front matter values; a list property must hold the value."""
    since: str = ""
    """Changed on or after: a date, a date with time, or an age such as ``30d``."""

    @property
    def any(self) -> bool:
        """Whether there is any condition."""
        return bool(self.path or self.tags or self.properties or self.since)


def allowed(filters: Filters, roots: Sequence[tuple[str, Frame, Catalog]], now: datetime) -> Mask:
    """Return which sections of the corpus meet the conditions, shape ``(sections,)``.

    Raises ``NotFound`` when a path or tag exists nowhere, naming the nearest, and ``QueryError`` for a
    ``since`` that is no date.
    """
    earliest = _earliest(filters.since, now)
    masks, near = [], _Near()
    for name, frame, catalog in roots:
        ids = set(catalog.notes())
        if filters.path:
            ids &= _by_path(filters.path, name, catalog, near, several=len(roots) > 1)
        if filters.tags or filters.properties:
            ids &= _by_values(filters, catalog, near)
        if earliest:
            ids &= {note for note, row in catalog.notes(ids).items() if row.modified >= earliest}
        masks.append(np.isin(frame.table["note"], np.fromiter(ids, np.int64, len(ids))))
    near.complain(filters)
    return np.concatenate([np.empty(0, bool), *masks])


class _Near:
    """Remembers what was there, to say it when nothing was found."""

    def __init__(self) -> None:
        self.paths: set[str] = set()
        self.tags: dict[str, str] = {}
        self.path_found = False

    def complain(self, filters: Filters) -> None:
        if filters.path and not self.path_found:
            raise NotFound(
                f"no note or folder matches path {filters.path!r}{_closest(filters.path, self.paths)}; "
                "give a folder, a file or a glob such as 'guides/**', or leave path out"
            )
        for tag in filters.tags:
            if tag.lstrip("#").casefold() not in self.tags:
                names = _closest(tag.lstrip("#"), set(self.tags.values()))
                raise NotFound(f"no note has the tag {tag!r}{names}; leave it out to search all notes")


def _closest(asked: str, known: set[str]) -> str:
    folded = {name.casefold(): name for name in sorted(known, reverse=True)}
    near = difflib.get_close_matches(asked.casefold(), folded, n=3, cutoff=0.5)
    return f"; nearest: {', '.join(repr(folded[name]) for name in near)}" if near else ""


def _by_path(asked: str, root: str, catalog: Catalog, near: _Near, *, several: bool) -> set[int]:
    prefix, colon, rest = asked.partition(":")
    if colon and prefix == root:
        asked = rest
        near.path_found |= not asked
    elif colon and several and "/" not in prefix and prefix:
        asked = asked if catalog.note_by_path(asked) else "\x00"
    asked = unicodedata.normalize("NFC", asked.removeprefix("./").strip("/"))
    matches = _path_test(asked)
    ids = set()
    for note, row in catalog.notes().items():
        path = unicodedata.normalize("NFC", row.path)
        near.paths |= {path, path.rpartition("/")[0]} - {""}
        if matches(path):
            ids.add(note)
    if not ids and _GLOB_SIGNS.search(asked):
        from pathspec import GitIgnoreSpec

        spec = GitIgnoreSpec.from_lines([f"/{asked}" if "/" in asked else asked])
        ids = {note for note, row in catalog.notes().items() if spec.match_file(row.path)}
    near.path_found |= bool(ids)
    return ids


def _path_test(asked: str) -> Callable[[str], bool]:
    if asked in ("", "."):
        return lambda path: True
    folder = f"{asked}/"
    return lambda path: path == asked or path.startswith(folder) or path.rpartition(".")[0] == asked


def _by_values(filters: Filters, catalog: Catalog, near: _Near) -> set[int]:
    wanted = [tag.lstrip("#").casefold() for tag in filters.tags]
    ids = set()
    for note, tags, properties in catalog.tags_and_properties():
        owned = set()
        for tag in tags:
            parts = tag.split("/")
            for depth in range(1, len(parts) + 1):
                name = "/".join(parts[:depth])
                owned.add(name.casefold())
                near.tags.setdefault(name.casefold(), name)
        if all(tag in owned for tag in wanted) and _has_values(properties, filters.properties):
            ids.add(note)
    return ids


def _has_values(properties: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    folded = {key.casefold(): value for key, value in properties.items()}
    return all(_matches(folded.get(key.casefold()), value) for key, value in wanted.items())


def _matches(value: Any, wanted: Any) -> bool:
    if isinstance(value, list) and not isinstance(wanted, list):
        return any(_matches(item, wanted) for item in value)
    if isinstance(value, bool) or isinstance(wanted, bool):
        return str(value).casefold() == str(wanted).casefold()
    return value == wanted or (value is not None and str(value).casefold() == str(wanted).casefold())


def _earliest(since: str, now: datetime) -> float:
    """Return the time from which notes count, in seconds since 1970; 0 for always."""
    if not since:
        return 0.0
    age = _AGE.fullmatch(since.strip())
    if age:
        hours = int(age.group(1)) * _HOURS[age.group(2).lower()]
        return now.timestamp() - timedelta(hours=hours).total_seconds()
    try:
        moment = datetime.fromisoformat(since.strip())
    except ValueError as error:
        raise QueryError(
            f"since is {since!r}, expected a date (2026-05-26), a date with time, or an age (12h, 30d, 6w)"
        ) from error
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
