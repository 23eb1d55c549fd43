"""A page of a PDF, as pdfium shows it -> its words, ruled lines and images.

All measures are points; x runs to the right and y upwards from the lower left corner of the page as it is
read: turned by its own rotation, and once more when most of its text runs in another direction.
"""

import ctypes
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

_MAX_CHARACTERS = 500_000
"""Of one page; no page that a person can read holds more."""
_MAX_OBJECTS = 50_000
_MAX_DEPTH = 4
"""Of forms within forms: deeper ones are pattern or mischief."""
_WORD_GAP = 0.15
"""Of the font size. Spaces of tightly set text are wider, kerning is narrower."""
_MONO = re.compile(
    r"courier|mono(?!type)|nimbusmon|sftt|ectt|consol|menlo|typewriter|cmtt|inconsolata|sourcecode"
    r"|fira ?code|andale",
    re.I,
)
_BOLD = re.compile(r"bold|black|heavy|semibold|demi(?!r)|cmbx|[-,]bd\b", re.I)
_SPACES = frozenset((0x20, 0x09, 0xA0, 0x3000, *range(0x2000, 0x200B)))
_LIGATURES = {
    0xFB00: "ff",
    0xFB01: "fi",
    0xFB02: "fl",
    0xFB03: "ffi",
    0xFB04: "ffl",
    0xFB05: "st",
    0xFB06: "st",
}
_REPLACED = {
    **_LIGATURES,
    0x02: "-",  # What pdfium makes of a hyphen at the end of a line.
    0xFFFE: "-",
    0x2010: "-",
    0x2011: "-",
    0xF0B7: "•",  # Bullets of the symbol fonts of word processors.
    0xF0A7: "▪",
    0xF0D8: "▪",
    0xF0FC: "•",
}
_RULE = 3.0
"""Points: a filled box that is no thicker is a line."""
_SHORTEST_RULE = 8.0
_TEXT, _PATH, _IMAGE, _FORM = 1, 2, 3, 5
"""What pdfium calls the kinds of objects."""


@dataclass(slots=True)
class Word:
    """Letters without a space between them, of one font; ``y`` is the baseline, ``size`` that of the font."""

    text: str
    x0: float
    x1: float
    y: float
    size: float
    bold: bool
    mono: bool
    spaced: bool
    """Whether a space stands before it in the file."""


@dataclass(slots=True)
class Placed:
    """An image where it stands on a page."""

    x0: float
    y0: float
    x1: float
    y1: float
    handle: Any
    """Of pdfium; valid while the page is open."""


@dataclass(slots=True)
class PageText:
    """What stands on a page."""

    width: float
    height: float
    words: list[Word] = field(default_factory=list)
    aside: list[list[Word]] = field(default_factory=list)
    """Words that run in other directions than most, each direction turned upright."""
    across: list[tuple[float, float, float]] = field(default_factory=list)
    """Horizontal rules: x0, x1, y."""
    down: list[tuple[float, float, float]] = field(default_factory=list)
    """Vertical rules: y0, y1, x."""
    images: list[Placed] = field(default_factory=list)
    turn: int = 0
    """Quarter turns clockwise by which pdfium's coordinates were turned."""
    characters: int = 0
    unread: int = 0
    """Characters of which the file does not say what they mean."""
    box: "_Box | None" = None

    def height_at(self, x: float, y: float | None) -> float | None:
        """Return the height on the page as it is read of a point of pdfium; none for none."""
        return self.box.point(x, y, self.turn)[1] if self.box and y is not None else None


@dataclass(frozen=True, slots=True)
class _Style:
    size: float
    bold: bool
    mono: bool
    turn: int
    """Quarter turns clockwise that make the text upright; -1 for text aslant."""


@dataclass(frozen=True, slots=True)
class _Box:
    """The visible box of a page, and how points in it are turned."""

    left: float
    bottom: float
    right: float
    top: float

    def size(self, turn: int) -> tuple[float, float]:
        width, height = self.right - self.left, self.top - self.bottom
        return (height, width) if turn % 2 else (width, height)

    def point(self, x: float, y: float, turn: int) -> tuple[float, float]:
        """Return the point after ``turn`` quarter turns clockwise of the page."""
        if turn == 0:
            return x - self.left, y - self.bottom
        if turn == 1:
            return y - self.bottom, self.right - x
        if turn == 2:
            return self.right - x, self.top - y
        return self.top - y, x - self.left

    def box(self, x0: float, y0: float, x1: float, y1: float, turn: int) -> tuple[float, float, float, float]:
        ax, ay = self.point(x0, y0, turn)
        bx, by = self.point(x1, y1, turn)
        return min(ax, bx), min(ay, by), max(ax, bx), max(ay, by)


def read_page(pdfium: Any, page: Any) -> PageText:
    """Return what stands on an open page; ``pdfium`` is the module ``pypdfium2.raw``."""
    box = _Box(*page.get_bbox())
    text_page = page.get_textpage()
    try:
        by_turn, characters, unread = _words(pdfium, text_page, box)
    finally:
        text_page.close()
    # A page without text is shown as its own rotation says.
    own = page.get_rotation() // 90 % 4
    turn = max(by_turn, key=lambda key: sum(len(word.text) for word in by_turn[key]), default=own)
    found = PageText(*box.size(turn), turn=turn, characters=characters, unread=unread, box=box)
    found.words = by_turn.pop(turn, [])
    found.aside = [by_turn[key] for key in sorted(by_turn)]
    _read_objects(pdfium, page, box, found)
    return found


def _words(pdfium: Any, text_page: Any, box: _Box) -> tuple[dict[int, list[Word]], int, int]:
    """Return the words by the turns that make them upright, how many characters, how many unread."""
    raw = text_page.raw
    count = min(text_page.count_chars(), _MAX_CHARACTERS)
    unicode_of, object_of, box_of = (
        pdfium.FPDFText_GetUnicode,
        pdfium.FPDFText_GetTextObject,
        pdfium.FPDFText_GetLooseCharBox,
    )
    origin_of = pdfium.FPDFText_GetCharOrigin
    styles, rect = _Styles(pdfium, raw), pdfium.FS_RECTF()
    x, y = ctypes.c_double(), ctypes.c_double()
    words: dict[int, list[Word]] = {}
    last: Word | None = None
    last_turn, spaced, characters, unread = -1, True, 0, 0
    for index in range(count):
        code = unicode_of(raw, index)
        if code in _SPACES:
            # Spaces that pdfium puts in where it sees gaps do not count: the gap itself does.
            spaced = spaced or pdfium.FPDFText_IsGenerated(raw, index) != 1
            continue
        handle = object_of(raw, index)
        if not handle or code in (0x0A, 0x0D):
            continue
        style = styles.of(index, handle)
        if style.turn < 0 or not box_of(raw, index, rect) or not origin_of(raw, index, x, y):
            continue
        left, _, right, _ = box.box(rect.left, rect.bottom, rect.right, rect.top, style.turn)
        _, base = box.point(x.value, y.value, style.turn)
        if not _inside(left, base, *box.size(style.turn)):
            continue
        letter = _REPLACED.get(code) or _letter(code)
        if not letter:
            unread += 1
            continue
        characters += 1
        if (
            last is not None
            and not spaced
            and style.turn == last_turn
            and abs(base - last.y) < 0.1 * style.size
            and -0.5 * style.size < left - last.x1 < _WORD_GAP * style.size
            and last.size == style.size
            and last.bold == style.bold
            and last.mono == style.mono
        ):
            last.text += letter
            last.x1 = max(last.x1, right)
        else:
            last = Word(letter, left, right, base, style.size, style.bold, style.mono, spaced)
            last_turn = style.turn
            words.setdefault(style.turn, []).append(last)
        spaced = False
    return words, characters, unread


def _inside(x: float, y: float, width: float, height: float) -> bool:
    return -1 <= x <= width + 1 and -1 <= y <= height + 1


def _letter(code: int) -> str:
    """Return what a character is in text; empty for one that has no meaning outside its font."""
    if code < 0x20 or 0x7F <= code < 0xA0 or 0xD800 <= code < 0xF900 or 0xFFF0 <= code < 0x10000:
        return ""
    # Left-to-right marks and zero widths are no text; they would only hide words from a search.
    return "" if 0x200B <= code <= 0x200F or code in (0xFEFF, 0x2060) or code > 0xEFFFF else chr(code)


class _Styles:
    """What text looks like, asked once for each text object and each font."""

    def __init__(self, pdfium: Any, raw: Any) -> None:
        self._pdfium = pdfium
        self._raw = raw
        self._matrix = pdfium.FS_MATRIX()
        self._fonts: dict[int, tuple[bool, bool]] = {}
        self._address = 0
        self._style = _Style(0.0, False, False, -1)

    def of(self, index: int, handle: Any) -> _Style:
        address = ctypes.addressof(handle.contents)
        if address != self._address:
            self._address = address
            self._style = self._read(index, handle)
        return self._style

    def _read(self, index: int, handle: Any) -> _Style:
        matrix = self._matrix
        if not self._pdfium.FPDFText_GetMatrix(self._raw, index, matrix):
            return _Style(0.0, False, False, -1)
        # Set as 1 point and scaled by the matrix is as common as the other way round.
        size = abs(self._pdfium.FPDFText_GetFontSize(self._raw, index)) * math.hypot(matrix.c, matrix.d)
        if not 0.5 <= size <= 2000:
            return _Style(0.0, False, False, -1)
        bold, mono = self._font(handle)
        angle = math.degrees(math.atan2(matrix.b, matrix.a))
        turn = round(angle / 90)
        aslant = abs(angle - turn * 90) > 10
        return _Style(round(size, 1), bold, mono, -1 if aslant else turn % 4)

    def _font(self, handle: Any) -> tuple[bool, bool]:
        font = self._pdfium.FPDFTextObj_GetFont(handle)
        if not font:
            return False, False
        address = ctypes.addressof(font.contents)
        if address not in self._fonts:
            buffer = ctypes.create_string_buffer(256)
            self._pdfium.FPDFFont_GetBaseFontName(font, buffer, 256)
            name = buffer.value.decode("utf-8", "replace")
            flags = self._pdfium.FPDFFont_GetFlags(font)
            is_bold = bool(_BOLD.search(name)) or self._pdfium.FPDFFont_GetWeight(font) >= 600
            is_mono = bool(_MONO.search(name)) or (flags > 0 and bool(flags & 1))
            self._fonts[address] = is_bold, is_mono
        return self._fonts[address]


def _read_objects(pdfium: Any, page: Any, box: _Box, found: PageText) -> None:
    """Add images and rules of a page to what was found."""
    bounds = [ctypes.c_float() for _ in range(4)]
    for handle, kind, outer in _objects(pdfium, page):
        if kind not in (_PATH, _IMAGE) or not pdfium.FPDFPageObj_GetBounds(handle, *bounds):
            continue
        sides = [side.value for side in bounds]
        if not all(map(math.isfinite, sides)):
            continue
        x0, y0, x1, y1 = box.box(*_moved(sides, outer), found.turn)
        if kind == _IMAGE:
            found.images.append(Placed(x0, y0, x1, y1, handle))
        else:
            _add_rules(found, x0, y0, x1, y1, pdfium.FPDFPath_CountSegments(handle))


def _add_rules(found: PageText, x0: float, y0: float, x1: float, y1: float, segments: int) -> None:
    if segments > 6:
        return  # A drawing.
    is_flat, is_thin = y1 - y0 <= _RULE, x1 - x0 <= _RULE
    if is_flat and x1 - x0 >= _SHORTEST_RULE:
        found.across.append((x0, x1, (y0 + y1) / 2))
    elif is_thin and y1 - y0 >= _SHORTEST_RULE:
        found.down.append((y0, y1, (x0 + x1) / 2))
    elif segments >= 4 and x1 - x0 < 0.95 * found.width and y1 - y0 >= _SHORTEST_RULE:
        found.across += [(x0, x1, y0), (x0, x1, y1)]
        found.down += [(y0, y1, x0), (y0, y1, x1)]


Matrix = tuple[float, float, float, float, float, float]
_UNMOVED: Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)


def _objects(pdfium: Any, page: Any) -> Iterator[tuple[Any, int, Matrix]]:
    """Yield objects with their kind and how the forms around them move them, at most so many."""
    raw = page.raw
    stack: list[tuple[Any, Matrix, int]] = [
        (pdfium.FPDFPage_GetObject(raw, index), _UNMOVED, 0)
        for index in range(min(pdfium.FPDFPage_CountObjects(raw), _MAX_OBJECTS))
    ][::-1]
    seen = 0
    while stack and seen < _MAX_OBJECTS:
        handle, outer, depth = stack.pop()
        seen += 1
        if not handle:
            continue
        kind = pdfium.FPDFPageObj_GetType(handle)
        if kind != _FORM:
            yield handle, kind, outer
        elif depth < _MAX_DEPTH:
            matrix = pdfium.FS_MATRIX()
            if pdfium.FPDFPageObj_GetMatrix(handle, matrix):
                own = (matrix.a, matrix.b, matrix.c, matrix.d, matrix.e, matrix.f)
                inner = _combined(own, outer)
                inside = range(min(pdfium.FPDFFormObj_CountObjects(handle), _MAX_OBJECTS - len(stack)))
                stack += [(pdfium.FPDFFormObj_GetObject(handle, i), inner, depth + 1) for i in inside][::-1]


def _combined(first: Matrix, then: Matrix) -> Matrix:
    a, b, c, d, e, f = first
    g, h, i, j, k, m = then
    return a * g + b * i, a * h + b * j, c * g + d * i, c * h + d * j, e * g + f * i + k, e * h + f * j + m


def _moved(sides: list[float], by: Matrix) -> tuple[float, float, float, float]:
    x0, y0, x1, y1 = sides
    a, b, c, d, e, f = by
    xs = [a * x + c * y + e for x in (x0, x1) for y in (y0, y1)]
    ys = [b * x + d * y + f for x in (x0, x1) for y in (y0, y1)]
    return min(xs), min(ys), max(xs), max(ys)


def most_common_size(words: list[Word]) -> float:
    """Return the font size of most characters, 10 when there are none."""
    sizes: Counter[float] = Counter()
    for word in words:
        sizes[word.size] += len(word.text)
    return sizes.most_common(1)[0][0] if sizes else 10.0
