"""Which notes a question is about: exact conditions, applied before ranking."""

import difflib
import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import numpy as np

from searchsvc.errors import NotFound, QueryError
from searchsvc.index.catalog import Catalog, NoteRow
from searchsvc.index.node_names import Spell
from searchsvc.index.open import Frame
from searchsvc.index.shelf import Shelf
from searchsvc.items import FileType
from searchsvc.ranking.corpus import Mask
from searchsvc.ranking.paths import path_tests, section_part, tidy
from searchsvc.ranking.pinpoint import pinpoint

_AGE = re.compile(r"(\d{1,6})\s*([hdwmy])", re.IGNORECASE)
_SHOWN = 8
_HOURS = {"h": 1, "d": 24, "w": 168, "m": 730, "y": 8766}


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions that a note must meet, all of them."""

    path: str = ""
    """A note, a section (``note#section``), a folder or a glob; ``root:`` before it picks a root."""
    tags: tuple[str, ...] = ()
    """Every one must be on the note; ``a`` also takes ``a/b``."""
    properties: Mapping[str, Any] = field(default_factory=dict)
    """Front matter values; a list must hold the value, ``None`` means that there is none."""
    since: str = ""
    """File changed on or after: a date, a date with time (UTC without a zone), or an age such as ``30d``."""
    file_types: tuple[FileType, ...] = ()
    """Made from a file of one of these types."""

    @property
    def names_section(self) -> bool:
        """Whether the path seems to name one section, which then is wanted whatever the question."""
        return "#" in self.path

    @property
    def any(self) -> bool:
        """Whether there is any condition."""
        return bool(self.path or self.tags or self.properties or self.file_types or self.since)


def allowed(
    filters: Filters,
    roots: Sequence[tuple[str, Frame, Catalog]],
    now: datetime,
    spell: Spell = lambda asked: "",
) -> Mask:
    """Return which sections of the corpus meet the conditions, shape ``(sections,)``.

    A path that is no note, folder or glob as it stands means what ``spell`` makes of it. Raises ``NotFound``
    when a path, tag or property exists nowhere, naming the nearest, and ``QueryError`` for a ``since`` that
    is no date.
    """
    earliest = _earliest(filters.since, now)
    passed: list[set[int]] = []
    sections: list[set[int]] = []
    if filters.path or filters.since:
        notes = [list(catalog.notes().values()) for _, _, catalog in roots]
        if filters.path:
            path, notes = _by_any_name(filters.path, [name for name, _, _ in roots], notes, spell)
            sections = _by_section(path, [catalog for _, _, catalog in roots], notes)
        passed = [{note.id for note in rows if note.modified >= earliest} for rows in notes]
    if filters.tags or filters.properties:
        having = _by_values(filters, [catalog for _, _, catalog in roots])
        passed = _both(passed, having)
    if filters.file_types:
        passed = _both(passed, [Shelf(catalog).of_types(filters.file_types) for _, _, catalog in roots])
    masks = [
        np.isin(frame.table["note"], np.fromiter(ids, np.int64, len(ids)))
        for (_, frame, _), ids in zip(roots, passed, strict=True)
    ]
    if sections:
        wanted = [np.fromiter(ids, np.int64, len(ids)) for ids in sections]
        masks = [
            mask & np.isin(frame.table["id"], ids)
            for mask, (_, frame, _), ids in zip(masks, roots, wanted, strict=True)
        ]
    return np.concatenate([np.empty(0, bool), *masks])


def _by_any_name(
    asked: str, names: Sequence[str], notes: Sequence[list[NoteRow]], spell: Spell
) -> tuple[str, list[list[NoteRow]]]:
    """Return the path that is meant, and the notes of each root that it means."""
    try:
        return asked, _by_path(asked, names, notes)
    except NotFound as error:
        path = spell(asked)
        if path:
            with suppress(NotFound):
                return path, _by_path(path, names, notes)
        raise error from None


def _by_path(asked: str, names: Sequence[str], notes: Sequence[list[NoteRow]]) -> list[list[NoteRow]]:
    """Return the notes of each root that a path means; ``root:`` before it picks a root."""
    prefix, _, rest = asked.partition(":")
    if prefix in names and ":" in asked:
        asked = rest
        notes = [rows if name == prefix else [] for name, rows in zip(names, notes, strict=True)]
    spelled = [[(unicodedata.normalize("NFC", row.path), row) for row in rows] for rows in notes]
    for is_meant in path_tests(asked):
        found = [[row for path, row in rows if is_meant(path)] for rows in spelled]
        if any(found):
            return found
    if not tidy(asked):
        return list(notes)
    known = {path for rows in spelled for path, _ in rows}
    known |= {
        "/".join(parts[:depth])
        for parts in (path.split("/") for path in known)
        for depth in range(1, len(parts))
    }
    unknown = f"; no root {prefix[:80]!r}; roots: {', '.join(names)}" if rest and "/" not in prefix else ""
    unknown = "" if prefix in names else unknown
    raise NotFound(
        f"no note or folder matches path {asked!r}{unknown}{_closest(tidy(asked), known)}; "
        "give a folder, a file or a glob such as 'guides/**', or leave path out"
    )


def _by_section(asked: str, catalogs: Sequence[Catalog], notes: Sequence[list[NoteRow]]) -> list[set[int]]:
    """Return the sections of each root that ``note#section`` means; nothing when it names no section."""
    rows = [row for found in notes for row in found]
    if len(rows) != 1:
        return []
    spellings = (asked, asked.partition(":")[2])
    section = next(filter(None, (section_part(spelling, rows[0].path) for spelling in spellings)), "")
    if not section:
        return []
    return [
        set(pinpoint(catalog.sections_of(found[0].id), section, found[0].path)) if found else set()
        for catalog, found in zip(catalogs, notes, strict=True)
    ]


def _both(passed: list[set[int]], others: list[set[int]]) -> list[set[int]]:
    return [a & b for a, b in zip(passed, others, strict=True)] if passed else others


def _by_values(filters: Filters, catalogs: Sequence[Catalog]) -> list[set[int]]:
    """Return the notes of each root that have all tags and all values."""
    wanted = {_folded(tag.strip().lstrip("#").strip("/")): tag for tag in filters.tags}
    tags_known, keys_known = set[str](), set[str]()
    passed = []
    for catalog in catalogs:
        ids = set()
        for note, tags, properties in catalog.tags_and_properties():
            owned = set[str]().union(*map(_tag_names, tags))
            tags_known |= owned
            keys_known |= properties.keys()
            if wanted.keys() <= owned and _has_values(properties, filters.properties):
                ids.add(note)
        passed.append(ids)
    _complain("tag", [tag for folded, tag in wanted.items() if folded not in tags_known], tags_known)
    folded_keys = set(map(_folded, keys_known))
    asked = [key for key, value in filters.properties.items() if value is not None]
    _complain("property", [key for key in asked if _folded(key) not in folded_keys], keys_known)
    return passed


def _complain(kind: str, unknown: Sequence[str], known: Iterable[str]) -> None:
    for name in unknown:
        names = sorted(known)
        some = f"; there are {len(names)}: {', '.join(names[:_SHOWN])}{', …' * (len(names) > _SHOWN)}"
        near = _closest(name.lstrip("#"), names) or (some if names else "; there is none")
        raise NotFound(f"no note has the {kind} {name!r}{near}; leave it out to search all notes")


def _closest(asked: str, known: Iterable[str]) -> str:
    folded = {_folded(name): name for name in sorted(known, reverse=True)}
    near = difflib.get_close_matches(_folded(asked), folded, n=3, cutoff=0.5)
    return f"; nearest: {', '.join(repr(folded[name]) for name in near)}" if near else ""


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()


@lru_cache(4096)
def _tag_names(tag: str) -> frozenset[str]:
    """Return a nested tag with the tags it lies in, folded: ``a/b`` is also ``a``."""
    parts = _folded(tag).split("/")
    return frozenset("/".join(parts[:depth]) for depth in range(1, len(parts) + 1))


def _has_values(properties: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    folded = {_folded(key): value for key, value in properties.items()}
    return all(_matches(folded.get(_folded(key)), value) for key, value in wanted.items())


def _matches(value: Any, wanted: Any) -> bool:
    """Tell whether a value is the wanted one; a list must hold it, a mapping must have its parts."""
    if isinstance(wanted, Mapping):
        return isinstance(value, Mapping) and _has_values(value, wanted)
    if isinstance(wanted, list | tuple):
        return all(_matches(value, item) for item in wanted) if wanted else value in ([], None)
    if isinstance(value, list):
        return any(_matches(item, wanted) for item in value)
    if value is None or wanted is None:
        return value is wanted
    if isinstance(value, bool) or isinstance(wanted, bool):
        return str(value).casefold() == str(wanted).casefold()
    return bool(value == wanted) or _folded(str(value)) == _folded(str(wanted))


def _earliest(since: str, now: datetime) -> float:
    """Return the time from which notes count, in seconds since 1970."""
    if not since:
        return -math.inf
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
