"""A page of a PDF, as pdfium shows it -> its words, ruled lines and images."""

import ctypes
import unicodedata
from typing import Any

from searchsvc.importing.pdf_bullets import add_bullets
from searchsvc.importing.pdf_direction import mirror, turned_back
from searchsvc.importing.pdf_fonts import Style, Styles
from searchsvc.importing.pdf_objects import read_objects
from searchsvc.importing.pdf_shapes import Box, PageText, Word

_MAX_CHARACTERS = 500_000
"""Of one page; no page that a person can read holds more."""
_WORD_GAP = 0.15
"""Of the font size. Spaces of tightly set text are wider, kerning is narrower."""
_SPACES = frozenset((0x20, 0x09, 0xA0, 0x3000, *range(0x2000, 0x200B)))
_INKLESS = 0.01
_LINE_ENDS = (0x0A, 0x0D)
_SOFT_HYPHEN = "\u00ad"
_REPLACED = {
    0x02: "-",  # What pdfium makes of a hyphen at the end of a line.
    0xFFFE: "-",
    0x2010: "-",
    0x2011: "-",
    0xF0B7: "•",  # Bullets of the symbol fonts of word processors.
    0xF0A7: "▪",
    0xF0D8: "▪",
    0xF0FC: "•",
}
_FORMS = ((0xFB00, 0xFE00), (0xFE70, 0xFEFD))
"""Code points of ligatures and of the shapes that letters take within words."""
_ASCENT = 0.88
"""Of the size: so far is the top of the square of a letter from its baseline."""
_VERTICAL = 4
"""Added to the turn of text that is set downwards."""


def read_page(pdfium: Any, page: Any) -> PageText:
    """Return what stands on an open page; ``pdfium`` is the module ``pypdfium2.raw``."""
    box = Box(*page.get_bbox())
    text_page = page.get_textpage()
    try:
        reader = _Reader(pdfium, text_page.raw, box)
        reader.read(min(text_page.count_chars(), _MAX_CHARACTERS))
    finally:
        text_page.close()
    by_turn = _with_sideways(reader.words)
    # A page without text is shown as its own rotation says.
    own = page.get_rotation() // 90 % 4
    key = max(by_turn, key=lambda key: sum(len(word.text) for word in by_turn[key]), default=own)
    turn = box.turn_of(key)
    found = PageText(
        *box.size(turn),
        turn=turn,
        upright=key % 4,
        characters=reader.characters,
        unread=reader.unread,
        box=box,
    )
    found.words = by_turn.pop(key, [])
    found.aside = [by_turn[key] for key in sorted(by_turn)]
    read_objects(pdfium, page, box, found)
    mirror(found)
    add_bullets(found)
    return found


def _with_sideways(words: dict[int, list[Word]]) -> dict[int, list[Word]]:
    """Put letters that lie on their side among lines set downwards into those lines."""
    for key in [key for key in words if key >= _VERTICAL]:
        words[key] += words.pop(Box.turn_of(key), [])
    return words


class _Reader:
    """Reads the characters of a page into words, by the turns that make them upright."""

    def __init__(self, pdfium: Any, raw: Any, box: Box) -> None:
        self.words: dict[int, list[Word]] = {}
        self.characters = 0
        self.unread = 0
        self._pdfium, self._raw, self._box = pdfium, raw, box
        self._x, self._y = ctypes.c_double(), ctypes.c_double()
        self._last: Word | None = None
        self._last_style: Style | None = None
        self._last_key = 0
        self._last_place = (0, 0.0)

    def read(self, count: int) -> None:
        pdfium, raw = self._pdfium, self._raw
        unicode_of, object_of = pdfium.FPDFText_GetUnicode, pdfium.FPDFText_GetTextObject
        box_of, address_of = pdfium.FPDFText_GetLooseCharBox, ctypes.addressof
        styles, rect = Styles(pdfium, raw, count), pdfium.FS_RECTF()
        style, address, base, end = None, 0, 0.0, 0.0
        spaced, space = True, (0.0, 0.0)
        for index in range(count):
            code = unicode_of(raw, index)
            if code in _SPACES:
                # Spaces that pdfium puts in where it sees gaps do not count: the gap itself does.
                if not spaced and pdfium.FPDFText_IsGenerated(raw, index) != 1:
                    spaced = bool(box_of(raw, index, rect))
                    space = rect.left, rect.right - rect.left
                continue
            handle = object_of(raw, index)
            if not handle or code in _LINE_ENDS:
                continue
            here = address_of(handle.contents)
            if here != address:
                # All characters of an object stand on one baseline.
                address, style = here, styles.of(index, handle)
                base, end = self._line_of(index, style)
            if style is None or not box_of(raw, index, rect):
                continue
            if style.key:
                left, right = self._turned(index, rect, style)
            else:
                left, right = rect.left - self._box.left, rect.right - self._box.left
            if not (0 <= end and -1 <= left <= end):
                continue
            if spaced and index and not style.key:
                # Some programs show a space and go back over it for kerning, or move on to somewhere else;
                # what is far from its space is known by the gap.
                spaced = 0.25 * space[1] <= rect.left - space[0] <= space[1] + 0.5 * style.size
            letter = _LETTERS.get(code) or _letter(code)
            if letter:
                self._add(letter, left, right, base, style, spaced, (address, left), index)
                spaced = False
            elif letter is None:
                self.unread += 1

    def _line_of(self, index: int, style: Style | None) -> tuple[float, float]:
        """Return the baseline of a character and where its line must end; before 0 off the page."""
        if style is None or not self._pdfium.FPDFText_GetCharOrigin(self._raw, index, self._x, self._y):
            return 0.0, -1.0
        width, height = self._box.size(style.turn)
        _, base = self._box.point(self._x.value, self._y.value, style.turn)
        return base, (width + 1 if -1 <= base <= height + 1 else -1.0)

    def _turned(self, index: int, rect: Any, style: Style) -> tuple[float, float]:
        """Return where on its line a letter begins and ends, of text that is turned or set downwards."""
        if style.key < _VERTICAL:
            left, _, right, _ = self._box.box(rect.left, rect.bottom, rect.right, rect.top, style.turn)
            return left, right
        # The box of a letter of vertical text tells only of its ink, not of its square.
        self._pdfium.FPDFText_GetCharOrigin(self._raw, index, self._x, self._y)
        along, _ = self._box.point(self._x.value, self._y.value, style.turn)
        return along - _ASCENT * style.size, along + (1 - _ASCENT) * style.size

    def _flowed(
        self, left: float, right: float, base: float, style: Style
    ) -> tuple[float, float, float, int]:
        """Put a letter of vertical text, or one on its side, behind the one that the file has before it.

        Such letters stand higher or lower in their squares, by which they seem to be in each other's place.
        """
        last, size = self._last, style.size
        if last is None or self._last_key < _VERTICAL or style.turn != Box.turn_of(self._last_key):
            return left, right, base, style.key
        if abs(base - last.y) > 0.5 * size or not -1.5 * size < left - last.x1 < 0.5 * size:
            return left, right, base, style.key
        shift = max(last.x1 - left, 0.0)
        return left + shift, right + shift, last.y, self._last_key

    def _has_ink(self, index: int) -> bool:
        sides = [ctypes.c_double() for _ in range(4)]
        self._pdfium.FPDFText_GetCharBox(self._raw, index, *sides)
        return sides[1].value - sides[0].value > _INKLESS

    def _add(
        self,
        letter: str,
        left: float,
        right: float,
        base: float,
        style: Style,
        spaced: bool,
        place: tuple[int, float],
        index: int,
    ) -> None:
        last = self._last
        self.characters += 1
        if last is not None and place == self._last_place and not spaced:
            # One glyph for several letters.
            last.text = turned_back(last.text, letter) if last.backwards else last.text + letter
            return
        self._last_place = place
        if letter == _SOFT_HYPHEN and not self._has_ink(index):
            return
        if last is not None and not spaced and letter >= "\u0300" and unicodedata.combining(letter[0]):
            last.text += letter
            return
        key = style.key
        if key:
            left, right, base, key = self._flowed(left, right, base, style)
        backwards = letter >= "\u0590" and unicodedata.bidirectional(letter[0]) in ("R", "AL")
        if (
            last is not None
            and not spaced
            and style is self._last_style
            and -0.5 * style.size < left - last.x1 < _WORD_GAP * style.size
            and abs(base - last.y) < 0.1 * style.size
            and not backwards
            and not last.backwards
        ):
            last.text += letter
            last.x1 = max(last.x1, right)
            return
        self._last = Word(
            letter, left, right, base, style.size, style.bold, style.mono, spaced, backwards=backwards
        )
        self._last_style, self._last_key = style, key
        self.words.setdefault(key, []).append(self._last)


_LETTERS: dict[int, str] = {code: chr(code) for code in range(0x21, 0x7F)} | _REPLACED


def _letter(code: int) -> str | None:
    """Return what a character is in text; none for one that has no meaning outside its font."""
    if code < 0x20 or 0x7F <= code < 0xA0 or 0xD800 <= code < 0xF900 or 0xFFF0 <= code < 0x10000:
        return None
    # Left-to-right marks and zero widths are no text; they would only hide words from a search.
    if 0x200B <= code <= 0x200F or 0x202A <= code <= 0x202E or code in (0xFEFF, 0x2060) or code > 0xEFFFF:
        return ""
    letter = chr(code)
    if any(first <= code < end for first, end in _FORMS):
        letter = unicodedata.normalize("NFKC", letter).strip()
    _LETTERS[code] = letter
    return letter
