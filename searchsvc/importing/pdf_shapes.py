"""What stands on a page of a PDF: words, rules and images, and how its points are turned.

All measures are points; x runs to the right and y upwards from the lower left corner of the page as it is
read: turned by its own rotation, and once more when most of its text runs in another direction.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Box:
    """The visible box of a page, and how points in it are turned."""

    left: float
    bottom: float
    right: float
    top: float

    @staticmethod
    def turn_of(key: int) -> int:
        """Return the quarter turns of a key: of letters, with 4 more for lines that run downwards."""
        return key if key < 4 else (key + 3) % 4

    def size(self, turn: int) -> tuple[float, float]:
        """Return width and height after that many quarter turns."""
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
        """Return a box after that many quarter turns clockwise of the page."""
        ax, ay = self.point(x0, y0, turn)
        bx, by = self.point(x1, y1, turn)
        return min(ax, bx), min(ay, by), max(ax, bx), max(ay, by)


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
    backwards: bool = False
    """Whether it is one letter of a script that runs from the right."""


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
    dots: list[tuple[float, float, float, float]] = field(default_factory=list)
    """Boxes of small shapes that are as wide as high: x0, y0, x1, y1."""
    turn: int = 0
    """Quarter turns clockwise by which pdfium's coordinates were turned."""
    upright: int = 0
    """Those that make letters and images upright; vertical text has others."""
    mirrored: bool = False
    """Whether the text runs from the right; then x runs to the left for words, rules and images."""
    characters: int = 0
    unread: int = 0
    """Characters of which the file does not say what they mean."""
    box: Box | None = None

    def height_at(self, x: float, y: float | None) -> float | None:
        """Return the height on the page as it is read of a point of pdfium; none for none."""
        return self.box.point(x, y, self.turn)[1] if self.box and y is not None else None


def most_common_size(words: list[Word]) -> float:
    """Return the font size of most characters, 10 when there are none."""
    sizes: Counter[float] = Counter()
    for word in words:
        sizes[word.size] += len(word.text)
    return sizes.most_common(1)[0][0] if sizes else 10.0
