"""How text looks: its size, weight and direction, asked once for each text object and each font."""

import ctypes
import math
import re
from dataclasses import dataclass
from typing import Any

from searchsvc.importing.pdf_markdown import WIDE
from searchsvc.importing.pdf_shapes import Box

_MONO = re.compile(
    r"courier|mono(?!type)|nimbusmon|sftt|ectt|consol|menlo|typewriter|cmtt|inconsolata|sourcecode"
    r"|fira ?code|andale",
    re.I,
)
_BOLD = re.compile(r"bold|black|heavy|semibold|demi(?!r)|cmbx|[-,]bd\b", re.I)
_DOWNWARDS = 4


@dataclass(frozen=True, slots=True)
class Style:
    """How the characters of a text object look."""

    size: float
    bold: bool
    mono: bool
    key: int
    """Quarter turns clockwise that make the letters upright, and 4 more when lines run downwards."""
    turn: int
    """Quarter turns clockwise that make the lines run to the right."""


class Styles:
    """What text looks like, asked once for each text object and each font."""

    def __init__(self, pdfium: Any, raw: Any, count: int) -> None:
        self._pdfium = pdfium
        self._raw = raw
        self._count = count
        self._matrix = pdfium.FS_MATRIX()
        self._fonts: dict[int, tuple[bool, bool]] = {}
        self._known: dict[tuple[float, bool, bool, int], Style] = {}

    def of(self, index: int, handle: Any) -> Style | None:
        """Return the style of a character's text object, equal ones as one object; none for text aslant."""
        matrix = self._matrix
        if not self._pdfium.FPDFText_GetMatrix(self._raw, index, matrix):
            return None
        # Set as 1 point and scaled by the matrix is as common as the other way round.
        size = abs(self._pdfium.FPDFText_GetFontSize(self._raw, index)) * math.hypot(matrix.c, matrix.d)
        angle = math.degrees(math.atan2(matrix.b, matrix.a))
        turn = round(angle / 90)
        if not 0.5 <= size <= 2000 or abs(angle - turn * 90) > 10:
            return None
        size = round(size, 1)
        key = turn % 4 + (_DOWNWARDS if self._runs_down(index, size) else 0)
        looks = size, *self._font(handle), key
        if looks not in self._known:
            self._known[looks] = Style(*looks, Box.turn_of(key))
        return self._known[looks]

    def _runs_down(self, index: int, size: float) -> bool:
        """Return whether letters of scripts that are set downwards, too, stand below each other."""
        if not WIDE.match(chr(self._pdfium.FPDFText_GetUnicode(self._raw, index))):
            return False
        a, b = self._matrix.a, self._matrix.b
        unit = math.hypot(a, b) or 1.0
        places = [self._place(at) for at in (index - 1, index, index + 1)]
        for first, then in zip(places, places[1:], strict=False):
            if first is not None and then is not None:
                dx, dy = then[0] - first[0], then[1] - first[1]
                along, up = (dx * a + dy * b) / unit, (dy * a - dx * b) / unit
                if abs(along) < 0.3 * size and -2.5 * size < up < -0.4 * size:
                    return True
        return False

    def _place(self, index: int) -> tuple[float, float] | None:
        if not 0 <= index < self._count or not self._pdfium.FPDFText_GetTextObject(self._raw, index):
            return None
        x, y = ctypes.c_double(), ctypes.c_double()
        self._pdfium.FPDFText_GetCharOrigin(self._raw, index, x, y)
        return x.value, y.value

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
