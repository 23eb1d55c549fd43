"""Running heads and feet, and page numbers: found over all pages and taken away."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from searchsvc.importing.pdf_layout import Line

_ZONE = 0.15
"""Of the height of a page, at its top and at its bottom."""
_OUTERMOST = 3
"""So many heights of lines at either end of a page may be of a running head."""
_FEWEST_PAGES = 3
_MOST_PAGES = 0.6
"""Of all pages: so many have a head where heads alternate."""
_SAME_HEIGHT = 3.0
_APART, _ROW = 1.4, 2.2
"""Font sizes to the next line: more than between lines of text, and than between rows of a table."""
_DIGITS = re.compile(r"\d+|\b[ivxlc]+\b", re.IGNORECASE)
_PAGE_NUMBER = re.compile(
    r"[\W_]*(?:(?:page|seite|pag\.?|página|p\.|s\.|第)\s*)?(?:\d{1,4}|[ivxlc]{1,7})"
    r"(?:\s*(?:/|of|von|de|sur|\|)\s*\d{1,4})?(?:\s*页)?[\W_]*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Candidate:
    page: int
    line: Line
    is_top: bool

    @property
    def key(self) -> tuple[bool, str]:
        return self.is_top, _DIGITS.sub("#", self.line.text.casefold())


def drop_running_heads(pages: Sequence[list[Line]], heights: Sequence[float], body: float) -> None:
    """Take running heads, feet and lone page numbers out of the lines of each page.

    A line near the edge is one when it stands at the same height on three pages, with the same text but for
    digits. A line where such ones stand, of the same size, is one too: heads name the chapter, and a short
    chapter has fewer than three pages. Large lines whose digits differ are headings ("Chapter 1").
    """
    found = [some for page, lines in enumerate(pages) for some in _candidates(page, lines, heights[page])]
    by_text: dict[tuple[bool, str], list[_Candidate]] = defaultdict(list)
    for some in found:
        by_text[some.key].append(some)
    dropped: set[int] = set()
    slots: dict[tuple[bool, float], list[float]] = defaultdict(list)
    for (is_top, _), alike in by_text.items():
        if _is_numbered_heading(alike, body):
            continue
        for group in _by_height(alike):
            group = [some for some in group if not _is_row_of_text(some, pages[some.page])]
            if len({some.page for some in group}) >= _FEWEST_PAGES:
                dropped.update(id(some.line) for some in group)
                if any(any(map(str.isalpha, some.line.text)) for some in group):
                    slots[is_top, group[0].line.size].append(group[0].line.y)
    dropped.update(_alternating([some for some in found if some.line.size <= 1.2 * body], pages))
    for some in found:
        ys = slots.get((some.is_top, some.line.size), ())
        if any(abs(some.line.y - y) <= 1 for y in ys) and _stands_apart(some, pages[some.page]):
            dropped.add(id(some.line))
        elif _PAGE_NUMBER.fullmatch(some.line.text) and _is_alone(some, pages[some.page]):
            dropped.add(id(some.line))
    for lines in pages:
        if dropped:
            lines[:] = [line for line in lines if id(line) not in dropped]


def _candidates(page: int, lines: Sequence[Line], height: float) -> list[_Candidate]:
    texts = [line for line in lines if line.text]
    ys = sorted({round(line.y) for line in texts}, reverse=True)
    top, bottom = set(ys[:_OUTERMOST]), set(ys[-_OUTERMOST:])
    found = []
    for line in texts:
        if line.y > (1 - _ZONE) * height and round(line.y) in top:
            found.append(_Candidate(page, line, True))
        elif line.y < _ZONE * height and round(line.y) in bottom:
            found.append(_Candidate(page, line, False))
    return found


def _is_numbered_heading(alike: list[_Candidate], body: float) -> bool:
    texts = {some.line.text for some in alike}
    return len(texts) > 1 and alike[0].line.size > 1.2 * body and any(map(str.isalpha, alike[0].line.text))


def _alternating(found: Sequence[_Candidate], pages: Sequence[Sequence[Line]]) -> set[int]:
    """Return the heads of documents of few pages, where left and right ones are on fewer than three each."""
    places: dict[tuple[bool, float, int], list[_Candidate]] = defaultdict(list)
    for some in found:
        if _is_alone(some, pages[some.page]) and _stands_apart(some, pages[some.page]):
            places[some.is_top, some.line.size, round(some.line.y)].append(some)
    dropped: set[int] = set()
    for alike in places.values():
        kinds = Counter(some.key for some in alike)
        enough = len(alike) >= max(_FEWEST_PAGES, _MOST_PAGES * len(pages))
        if enough and len(kinds) <= 2 and max(kinds.values()) > 1:
            dropped.update(id(some.line) for some in alike)
    return dropped


def _is_row_of_text(some: _Candidate, lines: Sequence[Line]) -> bool:
    """Return whether a line is code or a row of a table, which is the same at the top of many a page."""
    return (some.line.mono or len(some.line.cells) > 2) and not _stands_apart(some, lines, _ROW)


def _by_height(alike: list[_Candidate]) -> list[list[_Candidate]]:
    groups: list[list[_Candidate]] = []
    for some in sorted(alike, key=lambda some: some.line.y):
        if groups and some.line.y - groups[-1][0].line.y <= _SAME_HEIGHT:
            groups[-1].append(some)
        else:
            groups.append([some])
    return groups


def _stands_apart(some: _Candidate, lines: Sequence[Line], least: float = _APART) -> bool:
    """Return whether more white than between lines of text parts a line from the rest of its page."""
    others = [line.y for line in lines if line.text and abs(line.y - some.line.y) > 1]
    nearest = min((abs(y - some.line.y) for y in others), default=1e9)
    return nearest > least * some.line.size


def _is_alone(some: _Candidate, lines: Sequence[Line]) -> bool:
    """Return whether a line is the outermost of its page, with nothing beside it."""
    ys = [line.y for line in lines if line.text and line is not some.line]
    if not ys:
        return True
    return min(ys) > some.line.y + 1 if not some.is_top else max(ys) < some.line.y - 1
