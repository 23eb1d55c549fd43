"""Short ids for the notes of a graph, and from what a caller writes back to the note it means."""

import difflib
import heapq
import posixpath
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count

from searchsvc.errors import NotFound, QueryError

_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\\s]+")
_SHOWN = 5
_MAX_QUOTED = 80
_MAX_COMPARED = 200
_CLOSE = 0.5


@dataclass(frozen=True, slots=True)
class Named:
    """What a note may be called by."""

    root: str
    path: str
    title: str = ""
    aliases: tuple[str, ...] = ()


def plain(text: str) -> str:
    """Return a text on one line, in composed letters, with single blanks."""
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
        numbered = (f"{ids[place]}-{number}" for number in count(1))
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
    """Finds the note that a caller means."""

    def __init__(self, notes: Sequence[Named], ids: Sequence[str], hubs: Sequence[str]) -> None:
        """Take the notes with their ids in one order; ``hubs`` are ids to offer when nothing is near."""
        self._ids = ids
        self._hubs = hubs
        self._by_id = {fold(name): place for place, name in enumerate(ids)}
        self._as_written: dict[str, list[int]] = {}
        self._by_path: dict[str, list[int]] = {}
        self._by_form: dict[str, list[int]] = {}
        self._by_stem: dict[str, list[int]] = {}
        self._by_title: dict[str, list[int]] = {}
        for place, note in enumerate(notes):
            bare = _bare(note.path)
            spellings = [note.path, bare]
            spellings += [f"{note.root}{sign}{text}" for sign in ":/" for text in (note.path, bare)]
            _add(self._as_written, place, map(plain, spellings))
            _add(self._by_path, place, map(fold, spellings))
            _add(self._by_form, place, (fold(text.replace("/", "_")) for text in spellings))
            _add(self._by_stem, place, map(fold, map(posixpath.basename, (note.path, bare))))
            _add(self._by_title, place, map(fold, (note.title, *note.aliases)))

    def find(self, asked: str) -> int:
        """Return the place of the note that an id, path, title, alias or section id names.

        Raises ``NotFound`` with the nearest ids, ``QueryError`` with the candidates when several fit.
        """
        for spelled in _spellings(asked):
            places = self._called(spelled)
            if len(places) > 1:
                names = sorted(self._ids[place] for place in places)
                raise QueryError(
                    f"{quote(asked)} means {len(names)} notes; give one of these ids as node_id: "
                    f"{and_more(names)}"
                )
            if places:
                return places[0]
        raise NotFound(
            f"no note {quote(asked)}; nearest ids: {and_more(self.nearest(asked))}; "
            "give one of them as node_id, or find the note by its content with md_find"
        )

    def _called(self, spelled: str) -> list[int]:
        """Return the notes that go by a name, looked for as an id first and as a title last."""
        folded = fold(spelled)
        if folded in self._by_id:
            return [self._by_id[folded]]
        if spelled in self._as_written:
            return self._as_written[spelled]
        for names in (self._by_path, self._by_form, self._by_stem):
            if folded in names:
                return names[folded]
        return self._ending(folded) or self._by_title.get(folded, [])

    def _ending(self, folded: str) -> list[int]:
        """Return the notes whose path ends in these names, of which there are several."""
        tail = f"/{folded}"
        if "/" not in folded:
            return []
        found = (place for text, places in self._by_path.items() if text.endswith(tail) for place in places)
        return list(dict.fromkeys(found))

    def nearest(self, asked: str) -> list[str]:
        """Return the ids most like a name that no note has; the hubs when there are none."""
        wanted = fold(asked.partition("#")[0] or asked)[:_MAX_COMPARED]
        name = wanted.rpartition("/")[2] or wanted
        holding = [text for text in self._ids if name in fold(text)] if name else []
        near = heapq.nsmallest(_SHOWN, holding, key=lambda text: (len(text), text))
        if len(near) < _SHOWN and name:
            known: dict[str, int] = {title: places[0] for title, places in self._by_title.items()}
            known |= self._by_id
            close = difflib.get_close_matches(name, known, n=_SHOWN, cutoff=_CLOSE)
            near += [self._ids[known[text]] for text in close]
        return list(dict.fromkeys(near))[:_SHOWN] or list(self._hubs[:_SHOWN])


def _add(names: dict[str, list[int]], place: int, spellings: Iterable[str]) -> None:
    for spelled in dict.fromkeys(spellings):
        if spelled:
            names.setdefault(spelled, []).append(place)


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
