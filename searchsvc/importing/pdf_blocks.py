"""Lines in reading order -> paragraphs, list items, code, tables, headings and images."""

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from searchsvc.importing.pdf_layout import Line
from searchsvc.importing.pdf_markdown import HYPHENS
from searchsvc.importing.pdf_shapes import Word
from searchsvc.importing.pdf_tables import Table, aligned_rows, make_aligned

CAPTION = re.compile(
    r"(?:figure|fig\.|abb\.|abbildung|table|tab\.|tabelle|图|圖|表)\s*[\dA-ZIVX]", re.IGNORECASE
)
_BULLET = re.compile(r"([•◦▪▫‣∙·●○■□➢✓])\s*(?=\S)")
_DASH = re.compile(r"([-–—*])\s+(?=\S)")
_NUMBER = re.compile(r"(\(?(?:\d{1,3}|[a-z]|[ivx]{1,4})[.)])\s+(?=\S)")
_LEADERS = re.compile(r"[.·…]\s?[.·…]\s?[.·…]\s?[.·…]")
_ENTRY = re.compile(r"^(.*?\w.*?)\s*(?:[.·…]\s?){4,}\s*(\d{1,4}|[ivxlc]+)$")
_CLOSING = "\"'”’»)]」』"
_FINAL = tuple(".!?:;。！？：；…")
_USUAL_PITCH = 1.2
"""Font sizes from baseline to baseline, where a document tells none."""
_LOOSER = 1.22
"""Times the usual pitch: what is farther apart are two paragraphs."""
_LARGER = 1.08
"""Times the size of the body: from there on text is set larger on purpose."""
_HEADING_PITCH = 1.6
_LONGEST_GAP = 200
"""Spaces within a line of code."""
_LONG_WORD = 4
"""Letters: boxes of the last one may be wider than its place."""

Kind = Literal["text", "item", "entry", "code", "table", "heading", "image"]


@dataclass(frozen=True, slots=True)
class Body:
    """How the text of a document is set."""

    size: float
    bold: bool
    mono: bool
    pitch: float
    """Baseline to baseline, in font sizes."""

    def stands_out(self, line: Line) -> bool:
        """Return whether a line is set like a heading."""
        larger = line.size >= _LARGER * self.size
        return larger or (line.bold and not self.bold and line.size >= 0.95 * self.size)


@dataclass(slots=True)
class Block:
    """What stands between two empty lines of Markdown, or one list item."""

    kind: Kind
    page: int
    """Index, from 0, where it begins."""
    lines: list[Line] = field(default_factory=list)
    marker: str = ""
    level: int = 0
    table: Table | None = None
    piece: object = None
    end: tuple[int, int] = (0, 0)
    """Page and column where it ends."""

    @property
    def texts(self) -> list[str]:
        """Its lines, without the marker of an item."""
        texts = [line.text for line in self.lines]
        if self.marker:
            texts[0] = texts[0][len(self.marker) :].lstrip()
        return texts


def entry(text: str) -> tuple[str, str] | None:
    """Return a line of a table of contents as its title and page; none for other lines."""
    if not text[-1:].isalnum() or not _LEADERS.search(text):
        return None
    match = _ENTRY.match(text)
    return (match[1], match[2]) if match else None


def measure_body(pages: Sequence[Sequence[Line]]) -> Body:
    """Return how most characters of a document are set."""
    styles: Counter[tuple[float, bool, bool]] = Counter()
    pitches: list[float] = []
    for lines in pages:
        previous: Line | None = None
        for line in lines:
            styles[line.size, line.bold, line.mono] += len(line.text)
            if previous and line.text and previous.text and previous.column == line.column:
                pitch = (previous.y - line.y) / max(line.size, 1.0)
                if previous.size == line.size and 0.9 < pitch < 2.6:
                    pitches.append(round(pitch, 2))
            previous = line
    sizes: Counter[float] = Counter()
    for (size, _, _), count in styles.items():
        sizes[size] += count
    if not sizes:
        return Body(10.0, False, False, _USUAL_PITCH)
    size = sizes.most_common(1)[0][0]
    bold = sum(n for (s, b, _), n in styles.items() if s == size and b) * 2 > sizes[size]
    mono = sum(n for (_, _, m), n in styles.items() if m) * 2 > sum(sizes.values())
    return Body(size, bold, mono, statistics.mode(pitches) if pitches else _USUAL_PITCH)


def make_blocks(page: int, lines: Sequence[Line], body: Body) -> list[Block]:
    """Return the blocks of a page."""
    blocks: list[Block] = []
    pitches = _pitches(lines, body)
    at = 0
    while at < len(lines):
        line = lines[at]
        count, pitch = 1, pitches[line.size]
        if isinstance(line.piece, Table):
            blocks.append(Block("table", page, [line], table=line.piece))
        elif line.piece is not None:
            blocks.append(Block("image", page, [line], piece=line.piece))
        elif line.level:
            while at + count < len(lines) and lines[at + count].level and not lines[at + count].starts:
                count += 1
            blocks.append(Block("heading", page, list(lines[at : at + count]), level=line.level))
        elif line.mono and not body.mono:
            count = _code_lines(lines[at:])
            blocks.append(Block("code", page, list(lines[at : at + count])))
        elif entry(line.text):
            blocks.append(Block("entry", page, [line]))
        elif rows := aligned_rows(lines, at, pitch):
            count = rows
            blocks.append(
                Block("table", page, list(lines[at : at + count]), table=make_aligned(lines[at : at + rows]))
            )
        else:
            _add_text(blocks, page, line, pitch, body)
        blocks[-1].end = page, lines[at + count - 1].column
        at += count
    return blocks


def _pitches(lines: Sequence[Line], body: Body) -> dict[float, float]:
    """Return baseline to baseline, in font sizes, for each size on a page; the document's where unknown."""
    seen: dict[float, list[float]] = defaultdict(list)
    for previous, line in zip(lines, lines[1:], strict=False):
        if previous.size == line.size and previous.column == line.column and line.text:
            pitch = (previous.y - line.y) / line.size
            if 0.9 < pitch < 2.6:
                seen[line.size].append(round(pitch, 2))
    known = {line.size: body.pitch for line in lines}
    for size, pitches in seen.items():
        common, count = Counter(pitches).most_common(1)[0]
        # Two lines tell nothing: they may be two paragraphs.
        if count >= 4 and 2 * count > len(pitches):
            known[size] = min(common, 1.25 * body.pitch)
    return known


def _add_text(blocks: list[Block], page: int, line: Line, pitch: float, body: Body) -> None:
    """Add a line of text to the last block, or begin a block with it."""
    last = blocks[-1] if blocks else None
    if last and (last.kind not in ("text", "item") or not _goes_on(last, line, pitch, body)):
        last = None
    marker = "" if body.stands_out(line) and not line.size < _LARGER * body.size else _marker(line)
    if marker and _begins_item(blocks, last, line, marker):
        blocks.append(Block("item", page, [line], marker=marker))
    elif last:
        last.lines.append(line)
    else:
        blocks.append(Block("text", page, [line]))


def _marker(line: Line) -> str:
    for pattern in (_BULLET, _DASH, _NUMBER):
        if match := pattern.match(line.text):
            return match[1]
    # An o for a bullet stands far from its text; the word does not.
    return "o" if len(line.cells) > 1 and line.cells[0][2] == "o" else ""


def _begins_item(blocks: list[Block], last: Block | None, line: Line, marker: str) -> bool:
    """Return whether a marker is one, and not a word of a sentence that happens to begin a line."""
    if last is None or _BULLET.match(marker + " x") or marker == "o":
        return True
    previous = last.lines[-1]
    if last.kind == "item":
        return abs(line.x0 - last.lines[0].x0) < 0.5 * line.size or line.x0 > previous.x0 + 0.5 * line.size
    indented = line.x0 > previous.x0 + 0.5 * line.size
    return (
        indented
        or previous.text.endswith(":")
        or (previous.text.endswith(_FINAL) and _is_short(previous, line))
    )


def _goes_on(block: Block, line: Line, pitch: float, body: Body) -> bool:
    """Return whether a line goes on with the paragraph or item of the line above it."""
    previous = block.lines[-1]
    size = max(line.size, previous.size)
    fall = previous.y - line.y
    heading = body.stands_out(line)
    widest = max(_LOOSER * pitch, _HEADING_PITCH if heading else 0.0)
    if line.column != previous.column or not 0 < fall <= widest * size:
        return False
    if abs(line.size - previous.size) > 0.08 * size or line.bold != previous.bold:
        # A bold word or a formula may fill a line of a paragraph.
        return abs(line.size - previous.size) <= 0.2 * size and not heading and not body.stands_out(previous)
    if heading or (previous.text.endswith(HYPHENS) and line.text[:1].islower()):
        return True
    if block.kind == "item":
        if len(block.lines) == 1 and line.x0 < previous.x0 - 0.5 * size:
            return False
        if len(block.lines) > 1 and abs(line.x0 - previous.x0) > size:
            return False
    elif _is_indented(block, line, size):
        return False
    return not (_is_short(previous, line) and (ends_sentence(previous.text) or is_very_short(previous)))


def _is_indented(block: Block, line: Line, size: float) -> bool:
    """Return whether a line begins a paragraph by its indent; or a hanging one by having none."""
    previous = block.lines[-1]
    if len(block.lines) == 1:
        if line.text[0].islower() and not _is_short(previous, line) and not ends_sentence(previous.text):
            return False  # The first line hangs out: a term, and what it means.
        return (
            line.x0 > previous.x0 + 0.8 * size and abs(line.x1 + line.x0 - previous.x0 - previous.x1) > size
        )
    shift = line.x0 - previous.x0
    return abs(shift) > 0.8 * size and abs(line.x1 + line.x0 - previous.x0 - previous.x1) > size


def _is_short(previous: Line, line: Line) -> bool:
    """Return whether the first word of a line would have fitted into the line above."""
    first = line.text.split(" ", 1)[0]
    width = (line.x1 - line.x0) * (len(first) + 1) / max(1, len(line.text))
    return previous.x1 + width * 1.1 < previous.right - 0.2 * line.size


def is_very_short(line: Line) -> bool:
    """Return whether a line ends well before the right edge of its column."""
    return line.x1 - line.left < 0.6 * (line.right - line.left)


def ends_sentence(text: str) -> bool:
    """Return whether a text ends as a sentence does."""
    return text.rstrip(_CLOSING).endswith(_FINAL)


def _code_lines(lines: Sequence[Line]) -> int:
    count = 1
    for previous, line in zip(lines, lines[1:], strict=False):
        fall = previous.y - line.y
        if not line.mono or line.level or line.column != previous.column or not 0 < fall < 3.2 * line.size:
            break
        count += 1
    return count


def code_text(lines: Sequence[Line]) -> list[str]:
    """Return code with its indents and gaps, which are counted in widths of its letters."""
    words = [word for line in lines for word in line.words]
    width = _letter_width(words)
    left = min(word.x0 for word in words)
    falls = [a.y - b.y for a, b in zip(lines, lines[1:], strict=False)]
    usual = min((fall for fall in falls if fall > 0), default=0.0)
    texts: list[str] = []
    for index, line in enumerate(lines):
        if index and falls[index - 1] > 1.6 * usual:
            texts.append("")
        text, end = "", left
        for word in line.words:
            column = round((word.x0 - left) / max(width, 0.1))
            # Where letters are wider than the grid, as those of Chinese are, a space is still one.
            least = int(bool(text) and word.x0 - end > 0.5 * width)
            text, end = text + " " * min(max(column - len(text), least), _LONGEST_GAP), word.x1
            text += word.text.replace("\u00ad", "-")
        texts.append(text[:10_000])
    return texts


def _letter_width(words: Sequence[Word]) -> float:
    """Return from letter to letter in points: what most words of some length say."""
    widths = [(word.x1 - word.x0) / len(word.text) for word in words if len(word.text) >= _LONG_WORD]
    widths = widths or [(word.x1 - word.x0) / len(word.text) for word in words]
    return statistics.median_low(widths)
