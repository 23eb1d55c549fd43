"""The files that may be read: found by what callers call them, parsed once for each content.

Every read looks at the file as it is now. What is kept in memory is the outline of a file, packed, under a
bound; the text is always read again.
"""

import difflib
import hashlib
import os
import pickle
import threading
import time
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from searchsvc.config import Config, Root, distinct_roots, make_root
from searchsvc.errors import AccessDenied, NotFound, QueryError, ReadingError
from searchsvc.reading.access import Place, locate, read_bytes
from searchsvc.reading.decode import decode
from searchsvc.reading.ignore import IgnoreRules
from searchsvc.reading.links import NOTE_SUFFIXES
from searchsvc.reading.manifest import read_manifest
from searchsvc.reading.note import stem
from searchsvc.reading.outline import Outline, outline_of
from searchsvc.reading.walk import FileEntry, is_note_name, signature, walk

_CACHE_BYTES = 48_000_000
_MAX_FOUND = 20_000
"""Names whose notes are remembered, for as long as the rules of what is left out are."""
_MAX_SHOWN = 8
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


@dataclass(frozen=True, slots=True)
class _Packed:
    signature: str
    digest: bytes
    outline: bytes


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
        self._outlines: OrderedDict[Path, _Packed] = OrderedDict()
        self._size = 0
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
        if known is not None and known[1] and _signature(known[0].place.file) == known[1]:
            return known[0]
        found = self._find(asked)
        # A name that had to be searched for may mean another note as soon as one comes.
        if len(self.roots) == 1 and asked.partition("#")[0] == found.location:
            with self._lock:
                if len(self._found) >= _MAX_FOUND:
                    self._found.clear()
                self._found[asked] = found, _signature(found.place.file)
        return found

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
            for root in self.roots:
                for base in (str(root.path), os.path.realpath(root.path)):
                    if asked == base or asked.startswith(base.rstrip(os.sep) + os.sep):
                        return [root], asked[len(base) :].replace(os.sep, "/").strip("/")
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
        if not path.strip("/#"):
            raise NotFound(f"{asked[:80]!r} names no note; give a path such as {self._example()!r}")
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
        raise NotFound(f"no note at {asked[:200]!r}; {self._nearest(roots, path)}")

    def _direct(self, root: Root, path: str) -> Iterator[Place]:
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
            now = _signature(root.path / self._config.documents_index)
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
        """Find notes by another spelling of their path, by the end of it, or by their file name."""
        wanted = _comparable(asked).strip("/")
        listings = [(root, self.listing(root)) for root in roots]
        for test in (_is_path, _is_end, _is_joined):
            places = []
            for root, path in ((root, path) for root, paths in listings for path in paths):
                if test(_comparable(path), wanted):
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
        now = _signature(place.file)
        with self._lock:
            packed = self._outlines.get(place.file)
            if packed is not None and now and packed.signature == now:
                self._outlines.move_to_end(place.file)
                return _unpacked(packed)
        return self.read(place)[0]

    def read(self, place: Place) -> tuple[Outline, tuple[str, ...]]:
        """Return outline and lines of a file, of one and the same content."""
        before = _signature(place.file)
        data = read_bytes(place, self._config)
        text = decode(data)
        digest = hashlib.blake2b(data, digest_size=16).digest()
        with self._lock:
            packed = self._outlines.get(place.file)
        is_known = packed is not None and packed.digest == digest
        outline = _unpacked(packed) if packed is not None and is_known else outline_of(place.path, text)
        body = packed.outline if packed is not None and is_known else pickle.dumps(outline, protocol=5)
        with self._lock:
            self._forget(place.file)
            self._outlines[place.file] = _Packed(before, digest, body)
            self._size += len(body)
            while self._size > _CACHE_BYTES:
                self._forget(next(iter(self._outlines)))
        return outline, text.lines

    def _forget(self, file: Path) -> None:
        packed = self._outlines.pop(file, None)
        self._size -= len(packed.outline) if packed else 0


def _unpacked(packed: _Packed) -> Outline:
    outline: Outline = pickle.loads(packed.outline)
    return outline


def _signature(file: Path) -> str:
    try:
        return signature(os.lstat(file))
    except OSError:
        return ""


def _splits(asked: str) -> Iterator[tuple[str, str]]:
    """Yield what may be the path and the section in it; a ``#`` may belong to a file's name."""
    yield asked, ""
    for place in reversed([place for place, sign in enumerate(asked) if sign == "#"][:20]):
        if asked[:place]:
            yield asked[:place], asked[place + 1 :]


def _comparable(path: str) -> str:
    return unicodedata.normalize("NFC", path).casefold()


def _is_path(path: str, wanted: str) -> bool:
    return path == wanted or path.rpartition(".")[0] == wanted


def _is_joined(path: str, wanted: str) -> bool:
    """Tell whether a name is a path as the graph of links writes it, where file names are not unique."""
    return path.rpartition(".")[0].replace("/", "_") == wanted


def _is_end(path: str, wanted: str) -> bool:
    return f"/{path}".endswith(f"/{wanted}") or f"/{path.rpartition('.')[0]}".endswith(f"/{wanted}")
