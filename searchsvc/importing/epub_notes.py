"""Footnotes of a book: which links refer to a note, and which elements are the notes.

EPUB 3 says so. EPUB 2 has only links: a short mark leads to a paragraph that links back to it.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from searchsvc.importing.epub_links import Place, resolve
from searchsvc.importing.epub_marks import HEADINGS, kinds, short_text

REFERENCE, DEFINITION = "x-reference", "x-definition"
"""Attributes that ``mark`` sets, to the number of the note."""
_REFERENCES = frozenset(("noteref", "doc-noteref"))
_NOTES = frozenset(("footnote", "endnote", "rearnote", "note", "doc-footnote", "doc-endnote"))
_MARK = re.compile(r"[\[(]?(?:\d{1,4}|[*†‡§¶]{1,4}|[a-z]|[ivxlc]{1,7})[\])]?\.?", re.IGNORECASE)
_BACK = re.compile(
    r"(?:[\[(]?(?:\d{1,4}|[*†‡§¶]{1,4}|[a-z]|[ivxlc]{1,7})[\])]?[.:]?|\W{1,3}\ufe0e?|\^|back|return)",
    re.IGNORECASE,
)
_INLINE = frozenset(("a", "span", "sup", "sub", "small", "b", "i", "em", "strong", "font", "u"))
_BLOCKS = frozenset(("p", "li", "dd", "div", "section", "td", "blockquote"))
_MAX_UP, _FAR_UP = 8, 60


@dataclass(slots=True)
class _Link:
    """A link that may refer to a note."""

    path: str
    order: int
    """Among all links of its document."""
    position: tuple[int, int]
    """In the order of reading."""
    target: Place
    sources: set[Place]
    is_typed: bool
    leads: bool
    """Whether it begins its block."""
    block: tuple[int, ...]
    """The block it stands in."""


@dataclass(slots=True)
class Notes:
    """The notes of a book."""

    references: dict[tuple[str, int], int] = field(default_factory=dict)
    """Document and number of a link among all links -> number of the note."""
    blocks: dict[str, dict[str, int]] = field(default_factory=dict)
    """Document -> id in the note -> number of the note."""


def find_notes(documents: Iterable[tuple[str, Any]], known: Callable[[Place], Place | None]) -> Notes:
    """Look through all documents; notes are numbered in the order of their first reference."""
    links: list[_Link] = []
    blocks: dict[Place, tuple[tuple[int, ...], bool, tuple[int, int]]] = {}
    backs: dict[tuple[int, ...], set[Place]] = {}
    for index, (path, soup) in enumerate(documents):
        _survey(index, path, soup, known, links, blocks, backs)
    notes, numbers = Notes(), dict[tuple[int, ...], int]()
    for link in links:
        block, is_note, position = blocks.get(link.target, ((), False, (0, 0)))
        if not block or block == link.block:
            continue
        mutual = bool(backs.get(block, set()) & link.sources) and (position > link.position or not link.leads)
        if not (link.is_typed or is_note or mutual):
            continue
        number = numbers.setdefault(block, len(numbers) + 1)
        notes.references[link.path, link.order] = number
        notes.blocks.setdefault(link.target.path, {})[link.target.anchor] = number
    return notes


def _survey(
    index: int,
    path: str,
    soup: Any,
    known: Callable[[Place], Place | None],
    links: list[_Link],
    blocks: dict[Place, tuple[tuple[int, ...], bool, tuple[int, int]]],
    backs: dict[tuple[int, ...], set[Place]],
) -> None:
    """Collect of one document: links that look like references, blocks with ids, links by block."""
    names: dict[int, int] = {}
    with_headings = _with_headings(soup)
    order = -1
    for count, node in enumerate(soup.find_all(True)):
        names[id(node)] = count
        anchor = node.get("id") or (node.get("name") if node.name == "a" else None)
        if anchor and (found := note_block(node, with_headings)) is not None:
            key = (index, names.get(id(found), count))
            blocks.setdefault(Place(path, str(anchor)), (key, bool(kinds(found) & _NOTES), (index, count)))
        if node.name != "a":
            continue
        order += 1
        target = known(resolve(path, node.get("href") or "#")) if node.get("href") else None
        if target is None or not target.anchor:
            continue
        block = _block_of(node)
        key = (index, names.get(id(block), count))
        backs.setdefault(key, set()).add(target)
        for above in _notes_above(node):
            backs.setdefault((index, names[id(above)]), set()).add(target)
        is_typed = bool(kinds(node) & _REFERENCES)
        if is_typed or _MARK.fullmatch(short_text(node)):
            places = {Place(path, name) for name in _names_about(node)}
            leads = _leads(node, block)
            links.append(_Link(path, order, (index, count), target, places, is_typed, leads, key))


def _with_headings(soup: Any) -> set[int]:
    """Return the identities of all elements that hold a heading."""
    found = set[int]()
    for heading in soup.find_all(list(HEADINGS)):
        above = heading.parent
        while above is not None and id(above) not in found:
            found.add(id(above))
            above = above.parent
    return found


def note_block(node: Any, with_headings: set[int]) -> Any:
    """Return the element that is the note when a link leads to ``node``; ``None`` when that is no note."""
    for _ in range(_MAX_UP):
        if node is None or node.name in HEADINGS or node.name in ("body", "html", "[document]"):
            return None
        if kinds(node) & _NOTES or node.name in _BLOCKS:
            return None if id(node) in with_headings and not kinds(node) & _NOTES else node
        if node.name not in _INLINE:
            return None
        node = node.parent
    return None


def _block_of(node: Any) -> Any:
    above = node.parent
    for _ in range(_MAX_UP):
        if above is None or above.name not in _INLINE:
            break
        above = above.parent
    return above


def _notes_above(node: Any) -> list[Any]:
    """Return blocks further up, in which a link back may stand in a paragraph of its own."""
    found, above = [], node.parent
    for _ in range(_MAX_UP):
        if above is None or above.name in ("body", "[document]"):
            break
        if above.name in _BLOCKS:
            found.append(above)
        above = above.parent
    return found


def _names_about(node: Any) -> set[str]:
    """Return the ids by which a note may link back to a reference: its own, those around it and in it."""
    names = {node.get("id"), node.get("name")}
    above = node.parent
    for _ in range(_MAX_UP):
        if above is None or above.name not in _INLINE:
            break
        names.add(above.get("id"))
        above = above.parent
    before = node.previous_sibling
    if before is not None and not isinstance(before, str) and not before.get_text().strip():
        names |= {before.get("id"), before.get("name")}
    names |= {inner.get("id") for inner in node.find_all(True, limit=4)}
    return {str(name) for name in names if name}


def _leads(node: Any, block: Any) -> bool:
    if block is None:
        return False
    before = node.find_previous(string=re.compile(r"\S"))
    return before is None or not any(above is block for above in islice(before.parents, _FAR_UP))


def is_backlink(node: Any) -> bool:
    """Tell whether the text of a link in a note says nothing but the way back."""
    return bool(_BACK.fullmatch(short_text(node)))


def mark(path: str, soup: Any, notes: Notes) -> None:
    """Write the numbers of notes on the references and notes of a document."""
    for order, link in enumerate(soup.find_all("a")):
        if number := notes.references.get((path, order)):
            link[REFERENCE] = number
    wanted = notes.blocks.get(path)
    if not wanted:
        return
    with_headings = _with_headings(soup)
    for node in soup.find_all(True):
        name = node.get("id") or (node.get("name") if node.name == "a" else None)
        if name in wanted and (block := note_block(node, with_headings)) is not None:
            block.attrs.setdefault(DEFINITION, wanted[name])
