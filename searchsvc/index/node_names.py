"""Short ids for the notes of a graph, and from what a caller writes back to the note it means."""

import difflib
import heapq
import posixpath
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import compress, count, repeat

from searchsvc.errors import NotFound, QueryError

_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\\s]+")
_NOTE_SUFFIX = re.compile(r"\.(md|markdown|mdx|qmd)$")
_SHOWN = 5
_MAX_QUOTED = 80
_MAX_COMPARED = 200
_CLOSE = 0.6

Spell = Callable[[str], str]
"""Returns ``root:path`` for a note or folder called by a name that the index does not know, else nothing."""


@dataclass(frozen=True, slots=True)
class Named:
    """What a note may be called by."""

    root: str
    path: str
    title: str = ""
    aliases: tuple[str, ...] = ()


def plain(text: str) -> str:
    """Return a text on one line, in composed letters, with single blanks."""
    if text.isascii() and text.isprintable() and "  " not in text:
        return text.strip()
    return _UNSEEN.sub(" ", unicodedata.normalize("NFC", text)).strip()


def fold(text: str) -> str:
    """Return what two spellings of one name have in common."""
    return plain(plain(text).casefold())


def quote(text: str) -> str:
    """Return what a caller wrote, for an error: on one line, and cut when it is long."""
    text = plain(text)
    return repr(text if len(text) <= _MAX_QUOTED else f"{text[:_MAX_QUOTED]}…")


def and_more(items: Sequence[str], shown: int = _SHOWN) -> str:
    """Join the first few items, and tell how many there are beyond."""
    more = len(items) - shown
    return ", ".join(items[:shown]) + (f" and {more} more" if more > 0 else "")


def make_ids(notes: Sequence[Named], *, several_roots: bool) -> list[str]:
    """Return an id for each note that no other note has, in whatever letter case it is compared.

    It is the stem; the path, for notes that share their stem; more than that for those that share the path
    too. Every note of a clash takes the longer form, so that the ids do not hang on the order of notes.
    Nor is an id ever the path of another note: a caller may give either.
    """
    forms = [_forms(note, several_roots=several_roots) for note in notes]
    level = [0] * len(notes)
    owners: dict[str, list[int]] = {}
    for place, note in enumerate(notes):
        owners.setdefault(fold(note.path), []).append(place)
    while True:
        holders: dict[str, list[int]] = {}
        for place, form in enumerate(forms):
            holders.setdefault(fold(form[level[place]]), []).append(place)
        clashing = [
            place
            for name, places in holders.items()
            if len(places) > 1 or owners.get(name, places) != places
            for place in places
        ]
        movable = [place for place in clashing if level[place] < len(forms[place]) - 1]
        if not movable:
            break
        for place in movable:
            level[place] += 1
    ids = [form[level[place]] for place, form in enumerate(forms)]
    taken = {*holders, *owners}
    for place in sorted(clashing, key=lambda place: (notes[place].root, notes[place].path)):
        numbered = (f"{forms[place][1]}-{number}" for number in count(1))
        ids[place] = next(text for text in numbered if fold(text) not in taken)
        taken.add(fold(ids[place]))
    return ids


def _forms(note: Named, *, several_roots: bool) -> list[str]:
    """Return what may be the id of a note, the shortest first."""
    bare = _bare(note.path)
    forms = [posixpath.basename(bare), bare]
    forms += [f"{note.root}/{bare}"] if several_roots else []
    forms += [note.path]
    forms += [f"{note.root}/{note.path}"] if several_roots else []
    return [plain(form.replace("/", "_")).lower() or "_" for form in forms]


class Names:
    """Finds the note that a caller means.

    Only ids are kept in a table: tables of all the other names would take more memory than the graph, and
    a look at every note takes no longer than a few milliseconds for each ten thousand.
    """

    def __init__(
        self, notes: Sequence[Named], ids: Sequence[str], hubs: Sequence[str], spell: Spell = lambda asked: ""
    ) -> None:
        """Take the notes with their ids in one order; ``hubs`` are ids to offer when nothing is near."""
        self._spell = spell
        self._notes = notes
        self._ids = ids
        self._hubs = hubs
        self._by_id = {fold(name): place for place, name in enumerate(ids)}
        self._roots = {note.root for note in notes}

    def find(self, asked: str) -> int:
        """Return the place of the note that an id, path, title, alias or section id names.

        Raises ``NotFound`` with the nearest ids, ``QueryError`` with the candidates when several fit.
        """
        for spelled in self._spellings(asked):
            places = self._called(spelled)
            if len(places) > 1:
                names = sorted(self._ids[place] for place in places)
                raise QueryError(
                    f"{quote(asked)} means {len(names)} notes; give one of these ids as node_id: "
                    f"{and_more(names)}"
                )
            if places:
                return places[0]
        inside = self._inside(asked)
        if inside:
            raise NotFound(
                f"{quote(asked)} is a folder, not a note; give the id of one of its {len(inside)} notes as "
                f"node_id: {and_more(inside)}"
            )
        near = self.nearest(asked)
        hubs = f"; most linked: {', '.join(self._hubs)}" if self._hubs else ""
        hint = f"nearest ids: {', '.join(near)}" if near else f"nor any like it{hubs}"
        raise NotFound(
            f"no note {quote(asked)}; {hint}; give an id as node_id, or find the note by its content "
            "with md_find"
        )

    def _spellings(self, asked: str) -> Iterable[str]:
        yield from _spellings(asked)
        if other := self._spell(asked):
            yield other

    def _inside(self, asked: str) -> list[str]:
        """Return the ids of the notes in a folder, or root, of this name; none where there is no such one."""
        wanted = fold(asked).replace(":", "/").strip("/") + "/"
        places = ((f"{fold(note.root)}/", fold(note.path)) for note in self._notes)
        inside = (path.startswith(wanted) or (root + path).startswith(wanted) for root, path in places)
        return list(compress(self._ids, inside))

    def _called(self, spelled: str) -> list[int]:
        """Return the notes that go by a name, looked for as an id first and as a title last."""
        folded = fold(spelled)
        if folded in self._by_id:
            return [self._by_id[folded]]
        asked = [("", spelled)]
        asked += [
            (root, spelled[len(root) + 1 :])
            for root in self._roots
            if spelled.startswith((f"{root}:", f"{root}/", f"{root}_"))
        ]
        paths = [plain(note.path) for note in self._notes]
        for root, name in asked:
            if found := self._those(root, (_is_called(path, name) for path in paths)):
                return found
        paths = [fold(path) for path in paths]
        for is_called in (_is_called, _is_form, _ends_in):
            for root, name in asked:
                if found := self._those(root, map(is_called, paths, repeat(fold(name)))):
                    return found
        return [
            place
            for place, note in enumerate(self._notes)
            if folded == fold(note.title) or folded in map(fold, note.aliases)
        ]

    def _those(self, root: str, called: Iterable[bool]) -> list[int]:
        """Return the places that were found true, of notes of one root if it is given."""
        return [place for place in compress(count(), called) if root in ("", self._notes[place].root)]

    def nearest(self, asked: str) -> list[str]:
        """Return the ids most like a name that no note has, by id, title and aliases."""
        wanted = fold(asked.partition("#")[0] or asked)[:_MAX_COMPARED]
        name = _NOTE_SUFFIX.sub("", wanted.rpartition("/")[2] or wanted)
        if not name:
            return []
        holding = [text for text in self._ids if name in fold(text)]
        near = heapq.nsmallest(_SHOWN, holding, key=lambda text: (len(text), text))
        if len(near) < _SHOWN:
            known = {
                fold(text): place
                for place, note in enumerate(self._notes)
                for text in (*note.aliases, note.title)
            } | self._by_id
            close = difflib.get_close_matches(name, known, n=_SHOWN, cutoff=_CLOSE)
            near += [self._ids[known[text]] for text in close]
        return list(dict.fromkeys(near))[:_SHOWN]


def _is_called(path: str, name: str) -> bool:
    """Tell whether a path is a name, but for the suffix of the file."""
    if not path.startswith(name):
        return False
    rest = path[len(name) :]
    return not rest or (rest[0] == "." and "." not in rest[1:] and "/" not in rest)


def _is_form(path: str, name: str) -> bool:
    return "_" in name and _is_called(path.replace("/", "_"), name)


def _ends_in(path: str, name: str) -> bool:
    """Tell whether a path ends in the names of another, whole names only."""
    path, name = f"/{path}", f"/{name}"
    at = path.rfind(name)
    return at >= 0 and _is_called(path[at:], name)


def _spellings(asked: str) -> Iterable[str]:
    """Yield what a caller may mean, the most literal first: a section id means its note."""
    text = asked.strip().replace("\\", "/")
    text = text.removeprefix("./").strip("/")
    inside = text.removeprefix("!").removeprefix("[[").removesuffix("]]")
    cut = [asked, text, inside, inside.partition("|")[0]]
    cut += [part for spelled in cut for part in (spelled.rpartition("#")[0], spelled.partition("#")[0])]
    yield from dict.fromkeys(spelled for spelled in map(plain, cut) if spelled)


def _bare(path: str) -> str:
    return posixpath.splitext(path)[0] or path
