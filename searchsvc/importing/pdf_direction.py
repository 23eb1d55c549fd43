"""Words that run from the right: turned into the order in which they are read.

A page that runs from the right is mirrored, so that all that looks for columns, indents and ragged ends can
take it for one that runs from the left. Its letters come one by one, and are joined here.
"""

import unicodedata
from collections.abc import Sequence

from searchsvc.importing.pdf_markdown import WIDE
from searchsvc.importing.pdf_shapes import PageText, Word

_JOINED_GAP = 0.15
"""Of the font size: wider gaps part words."""
_WIDE_GAP = 0.6
_LAM, _ALEFS = "\u0644", "\u0622\u0623\u0625\u0627"
"""They make one glyph in this order only."""
_ALLAH = "\u0627\u0644\u0644\u0647"
_BRACKETS, _OPENING = "()[]{}<>«»‹›", "([{<«‹"
_MIRRORED = str.maketrans(_BRACKETS, ")(][}{><»«›‹")
_Part = tuple[str, float, float, float, bool]
"""Text, x0, x1, size, and whether a space stands before it."""


def mirror(page: PageText) -> None:
    """Let x run from the right when most letters of a page do."""
    backwards = sum(word.backwards for word in page.words)
    if not backwards or 2 * backwards <= sum(len(word.text) for word in page.words):
        return
    page.mirrored = True
    for word in page.words:
        word.x0, word.x1 = page.width - word.x1, page.width - word.x0
    page.dots = [(page.width - x1, y0, page.width - x0, y1) for x0, y0, x1, y1 in page.dots]
    for image in page.images:
        image.x0, image.x1 = page.width - image.x1, page.width - image.x0
    page.across = [(page.width - x1, page.width - x0, y) for x0, x1, y in page.across]
    page.down = [(y0, y1, page.width - x) for y0, y1, x in page.down]


def turned_back(before: str, letter: str) -> str:
    """Return the letters of one glyph, one more of which comes; they may come in either order.

    pdfium turns around what a file says of a glyph, but not what it knows of one itself.
    """
    if unicodedata.combining(letter[0]) or (before.endswith(_LAM) and letter in _ALEFS):
        return before + letter
    text = letter + before
    return _ALLAH if text == _ALLAH[::-1] else text


def join_words(words: Sequence[Word], mirrored: bool = False) -> str:
    """Return words of one line as text in the order in which it is read."""
    ordered = sorted(words, key=_x0)
    if not mirrored and not any(word.backwards for word in ordered):
        return _joined([(word.text, word.x0, word.x1, word.size, word.spaced) for word in ordered])
    if mirrored:
        ordered.reverse()
    back = sum(word.backwards for word in ordered)
    ahead = sum(sum(map(str.isalpha, word.text)) for word in ordered if not word.backwards)
    from_right = back > ahead or (back == ahead and mirrored)
    parts = [_part(group, from_right) for group in _groups(ordered, from_right)]
    return _joined(_with_brackets(parts[::-1]) if from_right else parts)


def _with_brackets(parts: list[_Part]) -> list[_Part]:
    """Return parts of a line from the right with the brackets that are meant where the shapes are given.

    A shape that closes opens there; files that already say what is meant begin with one that opens.
    """
    marks = [text for text, *_ in parts if not any(map(str.isalnum, text))]
    first = next((sign for text in marks for sign in text if sign in _BRACKETS), "")
    if not first or first in _OPENING:
        return parts
    turned: list[_Part] = []
    for text, x0, x1, size, spaced in parts:
        shown = text if any(map(str.isalnum, text)) else text.translate(_MIRRORED)
        turned.append((shown, x0, x1, size, spaced))
    return turned


def _x0(word: Word) -> float:
    return word.x0


def _groups(words: Sequence[Word], from_right: bool) -> list[list[Word]]:
    """Part words, from the left, into those of the line's own direction and runs of the other one."""
    groups: list[list[Word]] = []
    open_until = 0
    for at, word in enumerate(words):
        if at < open_until:
            groups[-1].append(word)
            continue
        groups.append([word])
        if _is_foreign(word, from_right):
            open_until = at + 1
            for further in range(at + 1, len(words)):
                if _is_foreign(words[further], from_right):
                    open_until = further + 1
                elif words[further].backwards or any(map(str.isalpha, words[further].text)):
                    break
    return groups


def _is_foreign(word: Word, from_right: bool) -> bool:
    return not word.backwards and any(map(str.isalpha, word.text)) if from_right else word.backwards


def _part(group: list[Word], from_right: bool) -> _Part:
    if len(group) == 1:
        word = group[0]
        return word.text, word.x0, word.x1, word.size, word.spaced
    if not from_right:
        group = group[::-1]
    text = _joined([(word.text, word.x0, word.x1, word.size, word.spaced) for word in group])
    return (
        text,
        min(map(_x0, group)),
        max(word.x1 for word in group),
        max(word.size for word in group),
        group[0].spaced,
    )


def _gap(before: str, after: str) -> float:
    """Return the gap in font sizes that parts two words; scripts without spaces are spread to fill a line."""
    return _WIDE_GAP if before >= "\u2e80" and WIDE.match(before[-1]) and WIDE.match(after) else _JOINED_GAP


def _joined(parts: Sequence[_Part]) -> str:
    texts: list[str] = []
    last_x0 = last_x1 = last_size = 0.0
    for text, x0, x1, size, spaced in parts:
        if texts:
            gap = x0 - last_x1 if x0 >= last_x0 else last_x0 - x1
            size_here = max(last_size, size)
            if gap >= _gap(texts[-1], text) * size_here or (spaced and gap > -0.1 * size_here):
                texts.append(" ")
        texts.append(text)
        last_x0, last_x1, last_size = x0, x1, size
    return " ".join("".join(texts).split())
