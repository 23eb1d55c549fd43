"""Link targets as written -> the notes and sections they mean.

Resolution follows Obsidian: exact path, relative path, then the end of a path by whole names, without
regard to letter case where case decides nothing, nearest folder first. Names are compared in Unicode's
composed form (NFC); a wikilink may be encoded like an address, or end in a sign that begins no heading,
where no note is called so. What stays ambiguous is answered in a fixed order and said to be ambiguous.
"""

import posixpath
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from urllib.parse import unquote

from searchsvc.items import Link

_NOTE_SUFFIX = re.compile(r"\.(md|markdown|mdx|qmd)$", re.IGNORECASE)
_PAGE_SUFFIX = re.compile(r"\.html?$", re.IGNORECASE)
_UNCOMPARED = re.compile(r"[#^:|%\[\]\s]+")
_UNLINKED = re.compile(r"[\s!\"#$%&()*+,.:;<=>?@^`{|}~/\[\]\\]+")
"""What Obsidian passes over where it looks for the heading of a link, so that links survive without it."""
_MARKUP = re.compile(r"[*`]|==|~~")
_FOLDER_PAGES = ("index", "README", "readme", "_index")


@dataclass(frozen=True, slots=True)
class Anchor:
    """What a link can name of a section."""

    id: int
    """Of the section in the catalog."""
    level: int
    title: str
    anchor: str
    custom_anchor: str
    line_start: int
    line_end: int


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a link leads."""

    path: str
    """Of the note; empty when there is none."""
    candidates: tuple[str, ...] = ()
    """All notes that fit equally well, the chosen one first; empty when there is no doubt."""


class Resolver:
    """Resolves links among the notes of one root."""

    def __init__(self, notes: Iterable[tuple[str, Sequence[str]]]) -> None:
        """Take the path and aliases of every note."""
        self._files: dict[str, str] = {}
        self._exact: dict[str, str] = {}
        self._by_name: dict[str, list[str]] = {}
        self._by_alias: dict[str, list[str]] = {}
        for path, aliases in sorted(notes, key=lambda note: _precedence(note[0])):
            bare = _bare(path)
            self._files.setdefault(_spelled(path), path)
            self._exact.setdefault(bare, path)
            self._by_name.setdefault(bare.rsplit("/", 1)[-1].casefold(), []).append(path)
            for alias in aliases:
                self._by_alias.setdefault(_spelled(alias).casefold(), []).append(path)

    def resolve(self, link: Link, source: str) -> Destination:
        """Return the destination of a link that stands in the note ``source``."""
        if not link.target:
            return Destination(source)
        target = _spelled(link.target)
        folder = source.rpartition("/")[0]
        if not link.wiki:
            page = self._page(target, folder)
            if page:
                return Destination(page)
        written = [target, _spelled(unquote(target)) if link.wiki else target, target.replace("\\", "/")]
        written.append(target.rstrip("#"))
        for name in dict.fromkeys(written):
            found = self._wiki(name.strip("/"), _spelled(folder), rooted=name.startswith("/"))
            if found.path:
                return found
        return Destination("")

    def _page(self, target: str, folder: str) -> str:
        """Resolve a Markdown link: a path relative to its note, or to the root with a leading slash."""
        joined = _joined("" if target.startswith("/") else _spelled(folder), target)
        if joined in self._files:
            return self._files[joined]
        for bare in dict.fromkeys((_bare(joined), _PAGE_SUFFIX.sub("", joined))):
            pages = (bare, *(f"{bare}/{page}".strip("/") for page in _FOLDER_PAGES))
            for page in pages:
                if page in self._exact:
                    return self._exact[page]
        return ""

    def _wiki(self, target: str, folder: str, *, rooted: bool) -> Destination:
        for bare in dict.fromkeys((_bare(target), target)):
            if "/" in bare or rooted:
                for known, written in ((self._files, target), (self._exact, bare)):
                    for path in (written, _joined(folder, written)):
                        if path in known:
                            return Destination(known[path])
            found = self._by_tail(bare, target, folder)
            if found.path:
                return found
        return _choose(self._by_alias.get(target.casefold(), []), folder)

    def _by_tail(self, bare: str, target: str, folder: str) -> Destination:
        """Find notes whose path ends in the names of ``bare``.

        One that is called exactly as the link is written wins, then one of the same letter case.
        """
        named = self._by_name.get(bare.rsplit("/", 1)[-1].casefold(), [])
        wanted = f"/{bare}"
        exact = [path for path in named if f"/{_bare(path)}".endswith(wanted)]
        folded = [path for path in named if f"/{_bare(path)}".casefold().endswith(wanted.casefold())]
        named_so = [path for path in exact if f"/{_spelled(path)}".endswith(f"/{target}")]
        return _choose(named_so or exact or folded, folder)


def _choose(paths: list[str], folder: str) -> Destination:
    """Prefer the same folder, then the shallowest path, then path order."""
    if not paths:
        return Destination("")

    def nearness(path: str) -> tuple[bool, int, bool, str]:
        return _spelled(path.rpartition("/")[0]) != folder, path.count("/"), *_precedence(path)

    ordered = sorted(paths, key=nearness)
    doubtful = len(ordered) > 1 and nearness(ordered[0])[0]
    return Destination(ordered[0], tuple(ordered) if doubtful else ())


def _precedence(path: str) -> tuple[bool, str]:
    """Order notes of one name: the usual suffix first, then by path."""
    return not path.lower().endswith(".md"), path


class Anchors:
    """The sections of one note, found by what links call them."""

    def __init__(self, anchors: Sequence[Anchor]) -> None:
        """Take the sections in file order; of those that are called the same, the first counts."""
        self._all = anchors
        self._by_text: dict[str, int] = {}
        self._by_comparable: dict[str, int] = {}
        self._by_words: dict[str, int] = {}
        self._by_anchor: dict[str, int] = {}
        self._is_named = False

    def _name(self) -> None:
        """Note what each section is called, once; most links lead to a note and need no names."""
        if self._is_named:
            return
        self._is_named = True
        for place, item in enumerate(self._all):
            if item.level:
                self._by_text.setdefault(_folded(item.title), place)
                self._by_comparable.setdefault(comparable(item.title), place)
                self._by_words.setdefault(_words(item.title), place)
                self._by_anchor.setdefault(_spelled(item.anchor), place)
        for place, item in enumerate(self._all):
            for name in item.custom_anchor.split():
                self._by_anchor.setdefault(_spelled(name).lower(), place)
                if "%20" in name:
                    self._by_words.setdefault(_words(unquote(name)), place)
        for empty in (self._by_text, self._by_comparable, self._by_words, self._by_anchor):
            empty.pop("", None)

    def find(self, fragment: str, *, wiki: bool = True) -> Anchor | None:
        """Return the section that a link's heading means; without a heading, the first of the note.

        Accepts the heading text, with or without the signs that Obsidian drops in links, a path of
        headings (``A#B``), GitHub's anchor, and the author's own ids. A heading may look like the
        anchor of another: then a wikilink means the text and a Markdown link the anchor.
        """
        if not fragment:
            return self._all[0] if self._all else None
        self._name()
        by_anchor = self._by_anchor.get(_spelled(fragment).lower())
        by_text = self._by_text.get(_folded(fragment), self._by_comparable.get(comparable(fragment)))
        first, second = (by_text, by_anchor) if wiki else (by_anchor, by_text)
        place = second if first is None else first
        if place is not None:
            return self._all[place]
        below = self._below(fragment.split("#")) if "#" in fragment else None
        if below or not wiki:
            return below
        words = self._by_words.get(_words(fragment), self._by_words.get(_words(unquote(fragment))))
        return None if words is None else self._all[words]

    def of(self, link: Link) -> Anchor | None:
        """Return the section that a link to the note leads to, that of its block where it names one."""
        if link.block:
            self._name()
            block = self._by_anchor.get(f"^{link.block}".lower())
            if block is not None:
                return self._all[block]
        return self.find(link.heading, wiki=link.wiki)

    def _below(self, names: Sequence[str]) -> Anchor | None:
        """Follow a path of headings: each is looked for among those below the one before."""
        titled = [item for item in self._all if item.level]
        found, place = None, -1
        for name in filter(comparable, names):
            level = found.level if found else 0
            below = takewhile(_is_deeper(titled, level), range(place + 1, len(titled)))
            names_it = (at for at in below if _is_called(titled[at], name))
            place = next(names_it, -1)
            if place < 0:
                return None
            found = titled[place]
        return found


def _is_deeper(titled: Sequence[Anchor], level: int) -> Callable[[int], bool]:
    return lambda place: titled[place].level > level


def _is_called(item: Anchor, name: str) -> bool:
    return comparable(item.title) == comparable(name) or _spelled(item.anchor) == _spelled(name).lower()


@lru_cache(maxsize=20_000)
def comparable(heading: str) -> str:
    """Return a heading without letter case, emphasis and the signs that Obsidian drops in links."""
    return _UNCOMPARED.sub(" ", _MARKUP.sub("", _spelled(heading))).strip().casefold()


def _words(heading: str) -> str:
    return _UNLINKED.sub(" ", _spelled(heading)).strip().casefold()


@lru_cache(maxsize=20_000)
def _folded(heading: str) -> str:
    return " ".join(_spelled(heading).split()).casefold()


def _joined(folder: str, target: str) -> str:
    """Return a path relative to a folder as one relative to the root; ``..`` above that leads nowhere."""
    path = posixpath.normpath(posixpath.join(folder, target.lstrip("/")))
    return "" if path == "." else path


def _bare(path: str) -> str:
    return _NOTE_SUFFIX.sub("", _spelled(path))


def _spelled(text: str) -> str:
    """Return a name as names are compared: composed, with blanks that may be broken at, emoji of no style."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", text).replace("\xa0", " ").replace("\ufe0f", "")
