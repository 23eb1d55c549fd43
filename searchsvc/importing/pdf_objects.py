"""Rules and images of a page, also those within forms."""

import ctypes
import math
from collections.abc import Iterator
from typing import Any

from searchsvc.importing.pdf_shapes import Box, PageText, Placed

_MAX_OBJECTS = 50_000
_MAX_DEPTH = 4
"""Of forms within forms: deeper ones are pattern or mischief."""
_RULE = 3.0
"""Points: a filled box that is no thicker is a line."""
_SHORTEST_RULE = 8.0
_DOT, _LARGEST_DOT = 1.2, 7.0
_BOX_SEGMENTS = 6
_MAX_SEGMENTS = 2000
"""Of one path; more are a drawing."""
_WHITE = 250
_LINE_TO, _MOVE_TO = 0, 2
_PATH, _IMAGE, _FORM = 2, 3, 5
"""What pdfium calls the kinds of objects."""


Matrix = tuple[float, float, float, float, float, float]
_UNMOVED: Matrix = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)


def read_objects(pdfium: Any, page: Any, box: Box, found: PageText) -> None:
    """Add images and rules of a page to what was found."""
    bounds = [ctypes.c_float() for _ in range(4)]
    paths = _Paths(pdfium, box, found)
    for handle, kind, outer in _objects(pdfium, page):
        if kind not in (_PATH, _IMAGE) or not pdfium.FPDFPageObj_GetBounds(handle, *bounds):
            continue
        sides = [side.value for side in bounds]
        if not all(map(math.isfinite, sides)):
            continue
        placed = box.box(*_moved(sides, outer), found.turn)
        if kind == _IMAGE:
            found.images.append(Placed(*placed, handle))
        else:
            paths.add(handle, placed, outer)


class _Paths:
    """Takes the rules of paths that are drawn to be seen, and no curves or slanted lines."""

    def __init__(self, pdfium: Any, box: Box, found: PageText) -> None:
        self._pdfium, self._box, self._found = pdfium, box, found
        self._fill, self._stroke = ctypes.c_int(), ctypes.c_int()
        self._colour = [ctypes.c_uint() for _ in range(4)]

    def add(self, handle: Any, placed: tuple[float, float, float, float], outer: Matrix) -> None:
        """Add the rules of a path within a box of the page."""
        x0, y0, x1, y1 = placed
        segments = self._pdfium.FPDFPath_CountSegments(handle)
        if segments > _MAX_SEGMENTS or not self._is_seen(handle):
            return
        is_flat, is_thin = y1 - y0 <= _RULE, x1 - x0 <= _RULE
        if _DOT <= x1 - x0 <= _LARGEST_DOT and 0.6 < (y1 - y0) / (x1 - x0) < 1.6:
            self._found.dots.append(placed)
        elif is_flat or is_thin:
            self._add_rule(x0, y0, x1, y1)
        elif y1 - y0 >= _SHORTEST_RULE and not (segments <= _BOX_SEGMENTS and self._is_backdrop(x0, x1)):
            for rule in self._straight(handle, segments, outer):
                self._add_rule(*rule)

    def _is_backdrop(self, x0: float, x1: float) -> bool:
        return x1 - x0 >= 0.95 * self._found.width

    def _add_rule(self, x0: float, y0: float, x1: float, y1: float) -> None:
        if y1 - y0 <= _RULE and x1 - x0 >= _SHORTEST_RULE:
            self._found.across.append((x0, x1, (y0 + y1) / 2))
        elif x1 - x0 <= _RULE and y1 - y0 >= _SHORTEST_RULE:
            self._found.down.append((y0, y1, (x0 + x1) / 2))

    def _is_seen(self, handle: Any) -> bool:
        """Return whether a path is drawn, and not in white on what is white."""
        pdfium = self._pdfium
        if not pdfium.FPDFPath_GetDrawMode(handle, self._fill, self._stroke):
            return True
        if self._stroke.value:
            colour_of = pdfium.FPDFPageObj_GetStrokeColor
        elif self._fill.value:
            colour_of = pdfium.FPDFPageObj_GetFillColor
        else:
            return False
        if not colour_of(handle, *self._colour):
            return True
        *light, opaque = (part.value for part in self._colour)
        return opaque > 0 and min(light) < _WHITE

    def _straight(self, handle: Any, segments: int, outer: Matrix) -> list[tuple[float, float, float, float]]:
        """Return the lines of a path of many; none when one of them is a curve or aslant."""
        pdfium, own = self._pdfium, self._pdfium.FS_MATRIX()
        if not pdfium.FPDFPageObj_GetMatrix(handle, own):
            return []
        moved = _combined((own.a, own.b, own.c, own.d, own.e, own.f), outer)
        x, y = ctypes.c_float(), ctypes.c_float()
        found: list[tuple[float, float, float, float]] = []
        at = start = (0.0, 0.0)
        for index in range(segments):
            segment = pdfium.FPDFPath_GetPathSegment(handle, index)
            kind = pdfium.FPDFPathSegment_GetType(segment)
            if kind not in (_LINE_TO, _MOVE_TO) or not pdfium.FPDFPathSegment_GetPoint(segment, x, y):
                return []
            a, b, c, d, e, f = moved
            point = a * x.value + c * y.value + e, b * x.value + d * y.value + f
            ends = [(at, point)] if kind == _LINE_TO else []
            start = point if kind == _MOVE_TO else start
            if pdfium.FPDFPathSegment_GetClose(segment):
                ends.append((point, start))
            for one, other in ends:
                line = self._box.box(*one, *other, self._found.turn)
                if min(line[2] - line[0], line[3] - line[1]) > 0.5:
                    return []
                found.append(line)
            at = point
        return found


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
