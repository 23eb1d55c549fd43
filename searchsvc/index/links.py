"""Link targets as written -> the notes and sections they mean.

Resolution follows Obsidian: exact path, relative path, then the end of a path by whole names, without
regard to letter case where case decides nothing, nearest folder first. Names are compared in Unicode's
composed form (NFC). What stays ambiguous is answered in a fixed order and said to be ambiguous.
"""

import posixpath
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile

from searchsvc.items import Link

_NOTE_SUFFIX = re.compile(r"\.(md|markdown|mdx|qmd)$", re.IGNORECASE)
_PAGE_SUFFIX = re.compile(r"\.html?$", re.IGNORECASE)
_UNCOMPARED = re.compile(r"[#^:|%\[\]\s]+")
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
            self._files.setdefault(_nfc(path), path)
            self._exact.setdefault(bare, path)
            self._by_name.setdefault(bare.rsplit("/", 1)[-1].casefold(), []).append(path)
            for alias in aliases:
                self._by_alias.setdefault(_nfc(alias).casefold(), []).append(path)

    def resolve(self, link: Link, source: str) -> Destination:
        """Return the destination of a link that stands in the note ``source``."""
        if not link.target:
            return Destination(source)
        target = _nfc(link.target)
        folder = source.rpartition("/")[0]
        if not link.wiki:
            found = self._page(target, folder)
            if found:
                return Destination(found)
        return self._wiki(target.strip("/"), _nfc(folder), rooted=target.startswith("/"))

    def _page(self, target: str, folder: str) -> str:
        """Resolve a Markdown link: a path relative to its note, or to the root with a leading slash."""
        joined = _joined("" if target.startswith("/") else _nfc(folder), target)
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
        named_so = [path for path in exact if f"/{_nfc(path)}".endswith(f"/{target}")]
        return _choose(named_so or exact or folded, folder)


def _choose(paths: list[str], folder: str) -> Destination:
    """Prefer the same folder, then the shallowest path, then path order."""
    if not paths:
        return Destination("")

    def nearness(path: str) -> tuple[bool, int, bool, str]:
        return _nfc(path.rpartition("/")[0]) != folder, path.count("/"), *_precedence(path)

    ordered = sorted(paths, key=nearness)
    doubtful = len(ordered) > 1 and nearness(ordered[0])[0]
    return Destination(ordered[0], tuple(ordered) if doubtful else ())


def _precedence(path: str) -> tuple[bool, str]:
    """Order notes of one name: the usual suffix first, then by path."""
    return not path.lower().endswith(".md"), path


def find_anchor(anchors: Sequence[Anchor], fragment: str, *, wiki: bool = True) -> Anchor | None:
    """Return the section that a link's heading means; without a heading, the first of the note.

    Accepts the heading text, with or without the signs that Obsidian drops in links, a path of
    headings (``A#B``), GitHub's anchor, and the author's own ``{#id}``. A heading may look like the
    anchor of another: then a wikilink means the text and a Markdown link the anchor.
    """
    if not fragment:
        return anchors[0] if anchors else None
    titled = [item for item in anchors if item.level]
    exact, wanted, slug = _folded(fragment), comparable(fragment), _nfc(fragment).lower()
    by_anchor = next((item for item in titled if slug in (item.anchor, item.custom_anchor.lower())), None)
    if by_anchor and not wiki:
        return by_anchor
    by_text = next((item for item in titled if _folded(item.title) == exact), None)
    if by_text is None and wanted:
        by_text = next((item for item in titled if comparable(item.title) == wanted), None)
    if by_text or by_anchor:
        return by_text or by_anchor
    return _by_path(titled, fragment.split("#")) if "#" in fragment else None


def _by_path(anchors: Sequence[Anchor], names: Sequence[str]) -> Anchor | None:
    """Follow headings downwards: each name is looked for below the section of the one before."""
    found, below = None, anchors
    for name in names:
        found = find_anchor(below, name) if comparable(name) else found
        if found is None:
            return None
        start = anchors.index(found) + 1
        below = list(takewhile(lambda item, level=found.level: item.level > level, anchors[start:]))  # type: ignore[misc]
    return found


@lru_cache(maxsize=20_000)
def comparable(heading: str) -> str:
    """Return a heading without letter case, emphasis and the signs that Obsidian drops in links."""
    return _UNCOMPARED.sub(" ", _MARKUP.sub("", _nfc(heading))).strip().casefold()


@lru_cache(maxsize=20_000)
def _folded(heading: str) -> str:
    return " ".join(_nfc(heading).split()).casefold()


def _joined(folder: str, target: str) -> str:
    """Return a path relative to a folder as one relative to the root; ``..`` above that leads nowhere."""
    path = posixpath.normpath(posixpath.join(folder, target.lstrip("/")))
    return "" if path == "." else path


def _bare(path: str) -> str:
    return _NOTE_SUFFIX.sub("", _nfc(path))


def _nfc(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFC", text)
