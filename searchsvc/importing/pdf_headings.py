"""Headings: from the bookmarks of a document, or from how its text is set."""

import ctypes
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from searchsvc.importing.pdf_blocks import CAPTION, Block, Body
from searchsvc.importing.pdf_layout import Line

_MAX_BOOKMARKS = 50_000
_MAX_DEPTH = 6
_MAX_LINES = 5
"""Of one heading."""
_LONGEST = 200
_LONGEST_BOLD = 120
_LEVELS_BY_SIZE = 4
_LARGER_STILL = 1.1
_NUMBERING = re.compile(
    r"(?:(?:chapter|kapitel|section|appendix|part)\s+)?(\d{1,3}(?:\.\d{1,3})*|[A-Z](?:\.\d{1,3})+)[.:)]?\s+",
    re.I,
)
_XYZ, _FIT_H, _FIT_BH = 1, 3, 7
"""Kinds of destinations that say a height."""


@dataclass(frozen=True, slots=True)
class Bookmark:
    """An entry of the outline; x and y in points of pdfium, none where it points to the whole page."""

    title: str
    level: int
    page: int
    """Index, from 0."""
    x: float = 0.0
    y: float | None = None


def read_bookmarks(pdfium: Any, document: Any) -> list[Bookmark]:
    """Return the outline of a document in its order; entries without a page of it are left out."""
    found: list[Bookmark] = []
    for count, entry in enumerate(document.get_toc(max_depth=_MAX_DEPTH)):
        if count >= _MAX_BOOKMARKS:
            break
        title = clean(entry.get_title())
        target = entry.get_dest()
        page = target.get_index() if target is not None else None
        if title and page is not None and page < len(document):
            found.append(Bookmark(title[:_LONGEST], min(entry.level + 1, 6), page, *_place(pdfium, target)))
    return found


def _place(pdfium: Any, target: Any) -> tuple[float, float | None]:
    mode, values = target.get_view()
    if mode == _XYZ:
        has = [ctypes.c_int() for _ in range(3)]
        at = [ctypes.c_float() for _ in range(3)]
        if pdfium.FPDFDest_GetLocationInPage(target.raw, *has, *at) and has[1].value:
            return at[0].value if has[0].value else 0.0, at[1].value
    elif mode in (_FIT_H, _FIT_BH) and values:
        return 0.0, float(values[0])
    return 0.0, None


def clean(text: str) -> str:
    """Return text of a document's data as one line without control characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def fold(text: str) -> str:
    """Return the letters and digits of a text, by which two that look alike are equal."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))


def mark_bookmarks(pages: Sequence[list[Line]], bookmarks: Sequence[tuple[Bookmark, float | None]]) -> None:
    """Make headings of the lines that bookmarks name; where there are none, put the heading in.

    ``bookmarks`` come with the height on the page as it is read, in points from below.
    """
    for bookmark, y in bookmarks:
        lines = pages[bookmark.page]
        found = _find(lines, bookmark.title, y)
        if found is None:
            at = _place_for(lines, y)
            near = lines[min(at, len(lines) - 1)] if lines else Line("", 0, 0, 0, 10)
            made = Line(bookmark.title, near.x0, near.x1, near.y, near.size, column=near.column)
            made.level, made.starts = bookmark.level, True
            lines.insert(at, made)
            continue
        first, count = found
        lines[first].starts = True
        for line in lines[first : first + count]:
            line.level = bookmark.level


def _find(lines: Sequence[Line], title: str, y: float | None) -> tuple[int, int] | None:
    """Return the lines that say a title: those nearest to y, else the largest, else the first."""
    wanted = fold(title)
    plain = fold(_NUMBERING.sub("", title, count=1)) if _NUMBERING.match(title) else wanted
    best: tuple[float, ...] | None = None
    found: tuple[int, int] | None = None
    if not wanted:
        return None
    for first, line in enumerate(lines):
        text = ""
        for count in range(1, _MAX_LINES + 1):
            last = first + count - 1
            if last >= len(lines) or not lines[last].text or lines[last].level:
                break
            text = f"{text} {lines[last].text}".strip()
            folded = fold(text)
            if len(folded) > len(wanted) + 12:
                break
            bare = fold(_NUMBERING.sub("", text, count=1))
            if folded == wanted or (plain and plain in (folded, bare)):
                score = (abs(line.y + line.size - y) if y is not None else 0.0, -line.size, first)
                if best is None or score < best:
                    best, found = score, (first, count)
    return found


def _place_for(lines: Sequence[Line], y: float | None) -> int:
    """Return before which line a heading at a height stands: the first below it."""
    if y is None:
        return 0
    return next((index for index, line in enumerate(lines) if line.y <= y and not line.level), len(lines))


def find_headings(blocks: Sequence[Block], body: Body, above: int = 0) -> None:
    """Make headings of the blocks that are set like some; so many levels are taken already."""
    tiers, prose = _tiers(blocks, body)
    chosen: list[tuple[Block, tuple[int, int]]] = []
    for block in blocks:
        if block.kind not in ("text", "item") or not body.stands_out(block.lines[0]):
            continue
        size = block.lines[0].size
        text = " ".join(line.text for line in block.lines)
        tier = tiers.get(size, len(tiers)) if size >= 1.08 * body.size else len(tiers)
        if size in prose or not _is_heading(block, text, is_larger=tier < len(tiers)):
            continue
        match = _NUMBERING.match(text)
        chosen.append((block, (min(tier, _LEVELS_BY_SIZE), match[1].count(".") + 1 if match else 0)))
    depths: dict[int, set[int]] = defaultdict(set)
    for _, (tier, depth) in chosen:
        depths[tier].add(depth)
    # A heading without a number stands as high as the highest of its size.
    keys = [(tier, depth or min(depths[tier] - {0}, default=0)) for _, (tier, depth) in chosen]
    levels = {key: min(rank, 6) for rank, key in enumerate(sorted(set(keys)), start=1 + above)}
    for (block, _), key in zip(chosen, keys, strict=True):
        block.kind, block.level, block.marker = "heading", levels[key], ""


def _tiers(blocks: Sequence[Block], body: Body) -> tuple[dict[float, int], set[float]]:
    """Return the rank of each larger size, sizes less than half a point apart as one; and those of prose."""
    long: Counter[float] = Counter()
    short: Counter[float] = Counter()
    for block in blocks:
        if block.kind in ("text", "item") and block.lines[0].size >= 1.08 * body.size:
            (long if len(block.lines) > _MAX_LINES else short)[block.lines[0].size] += 1
    prose = {size for size in long if long[size] >= max(1, short[size])}
    ranks: dict[float, int] = {}
    previous, rank = 0.0, -1
    for size in sorted(set(short) - prose, reverse=True):
        if rank < 0 or previous - size >= 0.5:
            rank += 1
            previous = size
        ranks[size] = rank
    return ranks, prose


def _is_row(block: Block) -> bool:
    """Return whether a block looks like a row or two of a table."""
    cells = [len(line.cells) for line in block.lines]
    return max(cells) > 2 or (len(cells) > 1 and min(cells) > 1)


def add_larger(blocks: Sequence[Block], body: Body) -> bool:
    """Make headings of what bookmarks do not name and is set larger than all that they do: titles, parts.

    Return whether there is such.
    """
    sizes = [block.lines[0].size for block in blocks if block.kind == "heading"]
    _, prose = _tiers(blocks, body)
    least = _LARGER_STILL * max([*sizes, body.size])
    found = [
        block
        for block in blocks
        if block.kind == "text"
        and block.lines[0].size >= least
        and block.lines[0].size not in prose
        and _is_heading(block, " ".join(line.text for line in block.lines), is_larger=True)
    ]
    if not found:
        return False
    for block in blocks:
        if block.kind == "heading":
            block.level = min(block.level + 1, 6)
    for block in found:
        block.kind, block.level = "heading", 1
    return True


def _is_heading(block: Block, text: str, is_larger: bool) -> bool:
    if (
        _is_row(block)
        or sum(map(str.isalpha, text)) < 2
        or CAPTION.match(text)
        or len(block.lines) > _MAX_LINES
    ):
        return False
    if is_larger:
        return len(text) <= _LONGEST and not (text.endswith((".", ",", ";")) and len(text) > 80)
    if not all(line.bold for line in block.lines) or len(block.lines) > 2 or len(text) > _LONGEST_BOLD:
        return False
    return not text.endswith((",", ";", ":")) and (not text.endswith(".") or bool(_NUMBERING.match(text)))
