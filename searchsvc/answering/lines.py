"""Lines of our own in a reply: one line each whatever stands in a note, and cut to what they may cost."""

import re
import unicodedata
from collections.abc import Iterable

from searchsvc.items import Hit, Section
from searchsvc.tokens import cost

ELLIPSIS = "…"
_BREAK = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_JOINER = "\u200d"
_SKIN_TONES = range(0x1F3FB, 0x1F400)
_FLAG_LETTERS = range(0x1F1E6, 0x1F200)
_MIN_NOTICE = 8
"""Tokens below which a notice would say nothing."""


def one_line(text: str) -> str:
    """Put a blank for every line break, so that a text cannot pose as a line of ours."""
    return _BREAK.sub(" ", text)


def address(hit: Hit, limit: int | None = None) -> str:
    """Return what a list says of a hit: id, lines, cost, why; only as much as ``limit`` tokens hold.

    The reasons go first, then the end of the id: path and lines still lead to the section.
    """
    section = hit.section
    copies = [
        f"{name}: {', '.join(ids)}"
        for name, ids in (("same text", hit.twins), ("nearly the same text", hit.likes))
        if ids
    ]
    size = f" · L{section.line_start}-{section.line_end}{pages_of(section)} · {size_of(hit)}"
    name = one_line(hit.id)
    whole = one_line(" · ".join([name + size, *hit.why, *copies, *_explained(hit)]))
    if limit is None or cost(whole) <= limit:
        return whole
    return clip(name, limit - cost(size)) + size


def size_of(hit: Hit) -> str:
    """Return the tokens of a section's own lines, and what its id returns beyond them."""
    return f"{hit.cost} tok" + (f" +{hit.cost_below} in subsections" if hit.cost_below else "")


def pages_of(section: Section) -> str:
    """Return the pages of a section for a list; empty when its document has none."""
    return f" · {page_span(section.pages)}" if section.pages else ""


def page_span(pages: tuple[int, int]) -> str:
    """Return a range of pages as readers write it."""
    first, last = pages
    return f"p. {first}" if first == last else f"p. {first}-{last}"


def _explained(hit: Hit) -> list[str]:
    """Return rank and score by channel, and score by term, of a hit that was asked to be explained."""
    channels = [f"{name} #{at.rank} {at.score:.2f}" for name, at in hit.channels.items() if at.rank]
    terms = [f"{term} {score:.2f}" for term, score in hit.terms.items()]
    return [", ".join(part) for part in (channels, terms) if part]


def notice_lines(notices: Iterable[str], budget: int) -> list[str]:
    """Return notices as lines that cost at most ``budget`` tokens together."""
    lines = []
    for notice in notices:
        if budget < _MIN_NOTICE:
            break
        lines.append(clip(f"! {one_line(notice)}", budget - 1))
        budget -= cost(lines[-1]) + 1
    return lines


def clip(text: str, limit: int) -> str:
    """Return the beginning of a text, and an ellipsis when it is cut, for at most ``limit`` tokens."""
    if cost(text) <= limit:
        return text
    fits, too_long = -1, len(text)
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if cost(text[:middle] + ELLIPSIS) <= limit:
            fits = middle
        else:
            too_long = middle
    while fits > 0 and is_inside_character(text, fits):
        fits -= 1
    return text[:fits] + ELLIPSIS if fits >= 0 else ""


def is_inside_character(text: str, place: int) -> bool:
    """Tell whether a cut before ``place`` would split what a reader sees as one character."""
    if not 0 < place < len(text):
        return False
    before, after = text[place - 1], text[place]
    if before.isascii() and after.isascii():
        return False
    return (
        _JOINER in (before, after)
        or unicodedata.category(after).startswith("M")
        or ord(after) in _SKIN_TONES
        or (ord(before) in _FLAG_LETTERS and ord(after) in _FLAG_LETTERS)
    )
