"""Which document a caller means by an id, a path or a title."""

import difflib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from searchsvc.answering.shelf import Document
from searchsvc.errors import NotFound, QueryError, SearchError
from searchsvc.index.shelf import Shelf
from searchsvc.library import Library
from searchsvc.searching import Pinned

_MAX_SHOWN = 8
_MAX_COMPARED = 10_000
"""Titles and ids looked at for the nearest, those of the latest documents, so that errors are quick."""


@dataclass(frozen=True, slots=True)
class Locator:
    """What a caller says of a document; any of these is enough."""

    doc_id: str = ""
    path: str = ""
    """Of the note, or of the file that it was imported from."""
    title: str = ""

    def __bool__(self) -> bool:
        return bool(self.doc_id or self.path or self.title)


@dataclass(frozen=True, slots=True)
class Shelved:
    """A document with its place in the index."""

    document: Document
    root: str
    path: str
    """Relative to the root."""
    note: int
    """Id of the note in the catalog of its root."""


@dataclass(frozen=True, slots=True)
class Located:
    """The document that was meant."""

    shelved: Shelved
    by: str
    """Which part of the locator matched."""
    missed: str = ""
    """Which parts before it matched nothing."""
    fragment: str = ""
    """What followed ``#`` in an id: a section."""

    @property
    def note(self) -> str:
        """Which part of the locator matched."""
        return (
            f"{self.missed} matched no document; found by {self.by}" if self.missed else f"found by {self.by}"
        )

    @property
    def scope(self) -> str:
        """The same, for what is looked for in this document alone."""
        return f"only in {self.shelved.document.id}: {self.note}"


def shelve(pinned: Pinned) -> list[Shelved]:
    """Return all documents of all roots, those changed last first."""
    rows = [(root, row) for root, catalog in pinned.named_catalogs() for row in Shelf(catalog).documents()]
    holders = Counter(row.path for _, row in rows)
    shelved = []
    for root, row in rows:
        name = f"{root}:{row.path}" if holders[row.path] > 1 else row.path
        document = Document(name, row.title, row.modified, row.cost, row.metadata)
        shelved.append(Shelved(document, root, row.path, row.id))
    return sorted(shelved, key=lambda item: (-item.document.modified, item.document.id))


def find_document(locator: Locator, shelf: Sequence[Shelved], library: Library) -> Located:
    """Return the document that a locator means: by its id, else its path, else its title.

    Where one part fits several documents the other parts may decide. ``QueryError`` lists several that
    fit; ``NotFound`` names the nearest.
    """
    if not locator:
        raise QueryError("which document? give doc_id, path or title; reader.list_documents has them")
    ways: list[tuple[str, str, Callable[[str], list[Shelved]]]] = [
        ("doc_id", locator.doc_id, lambda asked: _by_path(asked, shelf, library)),
        ("path", locator.path, lambda asked: _by_place(asked, shelf, library)),
        ("title", locator.title, lambda asked: _by_title(asked, shelf)),
    ]
    missed, several, by = list[str](), list[Shelved](), ""
    for name, asked, find in ways:
        found = find(asked) if asked else []
        if not asked:
            continue
        both = [item for item in found if item in several] if several else found
        if len(both) == 1:
            fragment = _fragment(asked, both[0], library) if name != "title" else ""
            return Located(both[0], name, " and ".join(missed), fragment)
        if not found:
            missed.append(f"{name} {asked[:80]!r}")
        elif not several:
            several, by = found, name
        elif both:
            several = both
    if several:
        names = ", ".join(
            f"{item.document.id} ({item.document.title[:60]!r})" for item in several[:_MAX_SHOWN]
        )
        more = f" and {len(several) - _MAX_SHOWN} more" if len(several) > _MAX_SHOWN else ""
        raise QueryError(f"{by} fits {len(several)} documents; give the doc_id of one: {names}{more}")
    folder = library.contents(locator.path or locator.doc_id) if locator.path or locator.doc_id else ""
    raise NotFound(f"no document for {' and '.join(missed)}; {folder or _nearest(locator, shelf)}")


def _by_path(asked: str, shelf: Sequence[Shelved], library: Library) -> list[Shelved]:
    """Find by all spellings of a path that reading tools know."""
    exact = [item for item in shelf if item.document.id == asked]
    if exact:
        return exact
    try:
        found = library.find(asked)
    except SearchError:
        return []
    place = found.place.root.path, found.place.path
    roots = {root.name: root.path for root in library.roots}
    return [item for item in shelf if (roots.get(item.root), item.path) == place]


def _fragment(asked: str, found: Shelved, library: Library) -> str:
    """Return the section that an id names in the document it led to."""
    try:
        return "" if asked == found.document.id else library.find(asked).fragment
    except SearchError:
        return ""


def _by_place(asked: str, shelf: Sequence[Shelved], library: Library) -> list[Shelved]:
    """Find by the path of the note or of the file that it was imported from.

    What a note says of its source takes no other note's place: both are candidates then.
    """
    exact = [item for item in shelf if item.document.id == asked]
    return exact or list(dict.fromkeys([*_by_source(asked, shelf), *_by_path(asked, shelf, library)]))


def _by_source(asked: str, shelf: Sequence[Shelved]) -> list[Shelved]:
    """Find what was imported from a file, by its whole path or the end of it."""
    wanted = asked.replace("\\", "/").strip()
    sources = [(item, item.document.metadata.source.replace("\\", "/")) for item in shelf]
    exact = [item for item, source in sources if source == wanted]
    return exact or [item for item, source in sources if source and source.endswith(f"/{wanted.lstrip('/')}")]


def _by_title(asked: str, shelf: Sequence[Shelved]) -> list[Shelved]:
    """Find by the title as it is written, else in any letter case, else by a part of it."""
    wanted = " ".join(asked.split())
    for test in (
        lambda title: title == wanted,
        lambda title: title.casefold() == wanted.casefold(),
        lambda title: wanted.casefold() in title.casefold(),
    ):
        found = [item for item in shelf if wanted and test(" ".join(item.document.title.split()))]
        if found:
            return found
    return []


def _nearest(locator: Locator, shelf: Sequence[Shelved]) -> str:
    if not shelf:
        return "there are no documents yet: reader.import_document adds one"
    latest = shelf[: _MAX_COMPARED // 2]
    names = {item.document.title[:200].casefold(): item.document.id for item in latest}
    names |= {item.document.id.casefold(): item.document.id for item in latest}
    asked = (locator.title or locator.path or locator.doc_id).casefold()[:200]
    near = difflib.get_close_matches(asked, names, n=3, cutoff=0.5)
    if near:
        return f"nearest: {', '.join(dict.fromkeys(names[name] for name in near))}"
    return "nothing is called alike; reader.list_documents shows what there is"
