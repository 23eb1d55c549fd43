"""The files that may be read: found by what callers call them.

Every read looks at the file as it is now.
"""

import difflib
import os
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from searchsvc.config import Config, Root, distinct_roots, make_root
from searchsvc.errors import AccessDenied, NotFound, QueryError, ReadingError, SearchError
from searchsvc.parsed import ParsedFiles, signature_of
from searchsvc.reading.access import Place, locate, locate_folder
from searchsvc.reading.ignore import IgnoreRules
from searchsvc.reading.links import NOTE_SUFFIXES
from searchsvc.reading.manifest import read_manifest
from searchsvc.reading.note import stem
from searchsvc.reading.outline import Outline
from searchsvc.reading.walk import FileEntry, is_note_name, walk

_MAX_FOUND = 20_000
"""Names whose notes are remembered, for as long as the rules of what is left out are."""
_MAX_SHOWN = 8
_MAX_INSIDE = 5
_MAX_COMPARED = 20_000
"""Names looked at for the nearest; more would make an error take longer than an answer."""

Names = Callable[[Root], Sequence[str] | None]
"""Paths of the notes of a root as last indexed, or none when there is no index."""
Costs = Callable[[Root], Mapping[str, tuple[str, int]]]
"""Signature and tokens of the files of a root as last indexed, by path."""


@dataclass(frozen=True, slots=True)
class Found:
    """A note that somebody named."""

    place: Place
    location: str
    """How replies name it: its path, or ``root:path`` when several roots hold that path."""
    fragment: str = ""
    """What followed ``#`` in the name: a section."""


class Library:
    """Files under the roots and the allowed folders; safe to use from several threads."""

    def __init__(
        self,
        roots: Sequence[Root],
        config: Config,
        names: Names = lambda root: None,
        costs: Costs = lambda root: {},
    ) -> None:
        self._config = config
        allowed = (make_root(path) for path in config.allow_paths)
        self.roots = distinct_roots((*roots, *allowed))
        self._names = names
        self.costs = costs
        self._lock = threading.Lock()
        self._parsed = ParsedFiles(config)
        self._found: dict[str, tuple[Found, str]] = {}
        self._rules: dict[str, IgnoreRules] = {}
        self._ids: dict[str, tuple[str, dict[str, str]]] = {}
        self._rules_until = 0.0

    # Finding

    def find(self, asked: str) -> Found:
        """Return the note that a caller means by a path, a section id or a unique name.

        Raises ``NotFound`` naming the nearest, ``QueryError`` naming the candidates when several fit,
        ``AccessDenied`` when it lies outside or is hidden.
        """
        with self._lock:
            self._renew_rules()
            known = self._found.get(asked)
        if known is not None and known[1] and signature_of(known[0].place.file) == known[1]:
            return known[0]
        found = self._find(asked)
        # A name that had to be searched for may mean another note as soon as one comes.
        if len(self.roots) == 1 and asked.partition("#")[0] == found.location:
            with self._lock:
                if len(self._found) >= _MAX_FOUND:
                    self._found.clear()
                self._found[asked] = found, signature_of(found.place.file)
        return found

    def folders(self, asked: str) -> list[tuple[Root, str]]:
        """Return the roots, or the folder of a root, that a caller means.

        Raises ``NotFound`` naming the nearest, or the note that was given for a folder, ``AccessDenied`` as
        ``find``.
        """
        found = self._folders(asked.strip())
        if found:
            return found
        try:
            note = self.find(asked).location
        except SearchError:
            unknown, folder = self._foreign_root(asked)
            near = self._near_folders(folder)
            nearest = f"nearest: {', '.join(near)}; " if near else ""
            raise NotFound(
                f"no folder at {asked[:200]!r}; {unknown}{nearest}"
                "list_documents() shows the folders there are"
            ) from None
        raise NotFound(f"{asked[:200]!r} is a note, not a folder; md_tree(path={note!r}) outlines it")

    def address(self, asked: str) -> str:
        """Return what a caller means as ``root:path#section``, or ``root:folder``; empty for what is neither.

        Raises ``QueryError`` naming the candidates when several notes fit.
        """
        try:
            found = self.find(asked)
        except (NotFound, ReadingError):
            with suppress(SearchError):
                for root, folder in self._folders(asked.strip()):
                    return f"{root.name}:{folder}"
            return ""
        fragment = f"#{found.fragment}" if found.fragment else ""
        return f"{found.place.root.name}:{found.place.path}{fragment}"

    def contents(self, asked: str) -> str:
        """Say what notes a folder holds that was given for a note; empty for what is no folder of notes."""
        try:
            folders = self._folders(asked.strip())
        except SearchError:
            return ""
        inside = [Place(r, path) for r, folder in folders for path in self.listing(r) if is_in(path, folder)]
        if not inside:
            return ""
        inside.sort(key=lambda place: (place.path.count("/"), place.path))
        names = ", ".join(self.location(place) for place in inside[:_MAX_INSIDE])
        more = ", …" if len(inside) > _MAX_INSIDE else ""
        plural = "" if len(inside) == 1 else "s"
        return f"{asked[:200]!r} is a folder of {len(inside)} note{plural}, not a note: {names}{more}"

    def root_named(self, name: str) -> Root | None:
        """Return a root or allowed folder by its name or its absolute path."""
        for root in self.roots:
            if name == root.name or (os.path.isabs(name) and Path(name) == root.path):
                return root
        return None

    def split_root(self, asked: str) -> tuple[Sequence[Root], str]:
        """Return the roots in which a path is to be looked for, and the path relative to them."""
        name, colon, rest = asked.partition(":")
        named = self.root_named(name) if colon else None
        if named is not None:
            return [named], rest
        if os.path.isabs(asked):
            for spelled in (asked, _real(asked)):
                for root in self.roots:
                    for base in (str(root.path), os.path.realpath(root.path)):
                        if spelled == base or spelled.startswith(base.rstrip(os.sep) + os.sep):
                            return [root], spelled[len(base) :].replace(os.sep, "/").strip("/")
        return self.roots, asked

    def location(self, place: Place) -> str:
        """Return how replies name a file: its path, with its root's name where several roots hold it."""
        others = (root for root in self.roots if root.path != place.root.path)
        is_shared = any((root.path / place.path).exists() for root in others)
        return f"{place.root.name}:{place.path}" if is_shared else place.path

    def notes(self, root: Root) -> list[str]:
        """Return the paths of all notes of a root as they are on disk now, in path order."""
        return [entry.path for entry in self.files(root)]

    def files(self, root: Root) -> list[FileEntry]:
        """Return the files of all notes of a root as they are on disk now, in path order."""
        return [entry for entry in walk(root.path, self._config) if isinstance(entry, FileEntry)]

    def rules(self, root: Root) -> IgnoreRules:
        """Return what is left out of a root."""
        with self._lock:
            return self._rules.setdefault(root.name, IgnoreRules(root.path, self._config))

    def _find(self, asked: str) -> Found:
        roots, path = self.split_root(asked)
        if not path.strip("/#.: "):
            nothing = f"{asked[:80]!r} names no note; give a path such as {self._example()!r}"
            raise NotFound(self._way_in(asked) or nothing)
        names = list(dict.fromkeys(chain(_splits(path), _splits(path.strip()))))
        for spelled, fragment in names:
            places = [] if is_note_name(spelled) else self._by_id(roots, spelled)
            places = places or [place for root in roots for place in self._direct(root, spelled)]
            if places:
                return self._one(places, asked, fragment)
        for spelled, fragment in names:
            places = self._by_name(roots, spelled)
            if places:
                return self._one(places, asked, fragment)
        if held := self._way_in(asked):
            raise NotFound(held)
        unknown, path = self._foreign_root(path)
        raise NotFound(f"no note at {asked[:200]!r}; {unknown}{self._nearest(roots, path)}")

    def _foreign_root(self, path: str) -> tuple[str, str]:
        """Say that no root is called as what stands before the colon of a path; return what is behind it."""
        name, colon, rest = path.partition(":")
        if not (colon and name.strip() and rest.strip()) or "/" in name or "#" in name:
            return "", path
        names = ", ".join(root.name for root in self.roots)
        return f"no root {name[:80]!r}; roots: {names}; ", rest

    def _way_in(self, asked: str) -> str:
        """Say what a folder holds that was given for a note, and how to go on; empty for what is none."""
        for spelled in dict.fromkeys([asked, asked.partition("#")[0]]):
            if held := self.contents(spelled) if spelled else "":
                return f"{held}; list_documents(root={spelled[:200]!r}) lists them"
        return ""

    def _folders(self, asked: str) -> list[tuple[Root, str]]:
        """Return the folders that a path means, with their roots; none when there is no such folder."""
        if asked in ("", ".", "/"):
            return [(root, "") for root in self.roots]
        named = self.root_named(asked.rstrip(":/"))
        if named is not None:
            return [(named, "")]
        roots, path = self.split_root(asked)
        first, _, rest = path.partition("/")
        within = self.root_named(first)
        ways = [(root, path) for root in roots], [(within, rest)] if within is not None and rest else []
        for way in ways:
            found = []
            for root, folder in way:
                with suppress(NotFound):
                    found.append((root, locate_folder(folder, root, self._config)))
            if found:
                return found
        return []

    def _near_folders(self, asked: str) -> list[str]:
        paths = list(chain.from_iterable(self.listing(root) for root in self.roots))[:_MAX_COMPARED]
        parents = {path.rpartition("/")[0] for path in paths}
        known = {"/".join(p.split("/")[:depth]) for p in parents for depth in range(1, p.count("/") + 2)}
        by_key = {_comparable(folder): folder for folder in sorted(known)}
        near = difflib.get_close_matches(_comparable(asked).strip("/")[:200], by_key, n=3)
        return [by_key[key] for key in near]

    def _direct(self, root: Root, path: str) -> Iterator[Place]:
        path = path.rstrip("/")  # of which ".md" would be a hidden name
        for ending in ("",) if is_note_name(path) else NOTE_SUFFIXES:
            try:
                yield locate(path + ending, root, self._config, self.rules(root))
                return
            except NotFound:
                continue
            except AccessDenied as error:
                raise AccessDenied(str(error).replace(repr(path + ending), repr(path))) from error
        if (root.path / path).is_file():
            locate(path, root, self._config, self.rules(root))  # says that it is no Markdown file

    def _by_id(self, roots: Sequence[Root], asked: str) -> list[Place]:
        """Find notes to which the index file of their root gives an id."""
        places = []
        for root in roots:
            now = signature_of(root.path / self._config.documents_index)
            with self._lock:
                known = self._ids.get(root.name)
            if known is None or known[0] != now:
                manifest = read_manifest(root, self._config)
                known = now, {entry.id: entry.path for entry in manifest.documents} if manifest else {}
                with self._lock:
                    self._ids[root.name] = known
            if asked in known[1]:
                places.append(locate(known[1][asked], root, self._config, self.rules(root)))
        return places

    def _by_name(self, roots: Sequence[Root], asked: str) -> list[Place]:
        """Find notes by another spelling of their path, by the end of it, or by their file name.

        The name of the root may stand before the path, as it does in ids of the graph.
        """
        wanted = _comparable(asked).strip("/")
        known = [(root, path, _comparable(path)) for root in roots for path in self.listing(root)]
        heads = {root.name: _comparable(root.name) for root in roots}
        for test in (_is_path, _is_end, _is_joined):
            places = []
            for root, path, name in known:
                head = heads[root.name]
                if test(name, wanted) or (wanted.startswith(head) and test(f"{head}/{name}", wanted)):
                    try:
                        places.append(locate(path, root, self._config, self.rules(root)))
                    except (NotFound, ReadingError):
                        continue
            if places:
                return places
        return []

    def _one(self, places: list[Place], asked: str, fragment: str) -> Found:
        distinct = list(dict.fromkeys(places))
        if len(distinct) > 1:
            several = ", ".join(self.location(place) for place in distinct[:_MAX_SHOWN])
            more = f" and {len(distinct) - _MAX_SHOWN} more" if len(distinct) > _MAX_SHOWN else ""
            raise QueryError(f"{asked[:200]!r} means several notes; give one of: {several}{more}")
        return Found(distinct[0], self.location(distinct[0]), fragment)

    def listing(self, root: Root) -> Sequence[str]:
        """Return the paths of the notes of a root as indexed, or as they are on disk without an index."""
        known = self._names(root)
        return self.notes(root) if known is None else known

    def _nearest(self, roots: Sequence[Root], asked: str) -> str:
        paths = list(chain.from_iterable(self.listing(root) for root in roots))[:_MAX_COMPARED]
        if not paths:
            return "there are no notes here"
        wanted = _comparable(asked.partition("#")[0])[:200]
        by_key = {_comparable(path): path for path in paths}
        near = difflib.get_close_matches(wanted, by_key, n=3, cutoff=0.6)
        if not near:
            by_stem = {_comparable(stem(path)): path for path in paths}
            name = wanted.rsplit("/", 1)[-1]
            near = difflib.get_close_matches(stem(name), by_stem, n=3, cutoff=0.6)
            by_key = by_stem
        if near:
            return f"nearest: {', '.join(by_key[key] for key in near)}"
        if folders := self._near_folders(wanted):
            return f"nearest folder: {folders[0]}; list_documents(root={folders[0]!r}) lists its notes"
        return "nothing is called alike; list_documents shows what there is"

    def _example(self) -> str:
        first = next((path for root in self.roots for path in self.listing(root)), "folder/note.md")
        return first

    def _renew_rules(self) -> None:
        now = time.monotonic()
        if now > self._rules_until:
            self._rules, self._found, self._ids = {}, {}, {}
            self._rules_until = now + self._config.rescan_seconds

    # Reading

    def outline(self, place: Place) -> Outline:
        """Return what stands where in a file as it is now; parsed only when its content is new."""
        return self._parsed.outline(place)

    def read(self, place: Place) -> tuple[Outline, tuple[str, ...]]:
        """Return outline and lines of a file, of one and the same content."""
        return self._parsed.read(place)


def _real(asked: str) -> str:
    """Return an absolute path without links, which a root may be reached by; as it is when it is none."""
    try:
        return os.path.realpath(asked)
    except (OSError, ValueError):
        return asked


def _splits(asked: str) -> Iterator[tuple[str, str]]:
    """Yield what may be the path and the section in it; a ``#`` may belong to a file's name."""
    yield asked, ""
    for place in reversed([place for place, sign in enumerate(asked) if sign == "#"][:20]):
        if asked[:place]:
            yield asked[:place], asked[place + 1 :]


def is_in(path: str, folder: str) -> bool:
    """Tell whether a note lies in a folder of its root; the empty folder is the root itself."""
    return not folder or path.startswith(f"{folder}/")


def _comparable(path: str) -> str:
    return unicodedata.normalize("NFC", path).casefold()


def _is_path(path: str, wanted: str) -> bool:
    return path == wanted or path.rpartition(".")[0] == wanted


def _is_joined(path: str, wanted: str) -> bool:
    """Tell whether a name is a path as the graph of links writes it, where file names are not unique."""
    return wanted in (path.replace("/", "_"), path.rpartition(".")[0].replace("/", "_"))


def _is_end(path: str, wanted: str) -> bool:
    return f"/{path}".endswith(f"/{wanted}") or f"/{path.rpartition('.')[0]}".endswith(f"/{wanted}")
