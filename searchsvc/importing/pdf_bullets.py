"""Bullets that are drawn as shapes and not written: put in front of the words that they stand before."""

from searchsvc.importing.pdf_shapes import PageText, Word

_MOST = 100
"""On a page; more dots are a chart."""
_FARTHEST = 2.5
"""Font sizes between a bullet and its item."""
_SIDE = 3.0
"""Font sizes to the left of a bullet without any word."""


def add_bullets(page: PageText) -> None:
    """Add a bullet as a word for each dot at the beginning of a line."""
    if not page.words or not 0 < len(page.dots) <= _MOST:
        return
    added: list[Word] = []
    for x0, y0, x1, y1 in page.dots:
        middle = (y0 + y1) / 2
        beside = [word for word in page.words if word.y < middle < word.y + 0.75 * word.size]
        after = [word for word in beside if 0 < word.x0 - x1 < _FARTHEST * word.size]
        if not after:
            continue
        first = min(after, key=lambda word: word.x0)
        if y1 - y0 > 0.7 * first.size:
            continue
        if not any(word.x0 < x0 and x0 - word.x1 < _SIDE * word.size for word in beside):
            bullet = Word("•", x0, x1, first.y, first.size, first.bold, first.mono, True)
            added.append(bullet)
            first.spaced = True
    page.words += added
