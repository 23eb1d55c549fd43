"""Words of a page -> its lines in the order in which they are read.

Everything that stands on a page is a *run*: words close together on one baseline, or an image or table as
one piece. Where a strip of white parts runs over many lines there are columns; a run that crosses the
strip, such as a heading above both columns, ends it. The widest such part is split, and what lies above,
left, right and below of it is looked at in the same way. Points; y upwards.
"""

import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from searchsvc.importing.pdf_direction import join_words
from searchsvc.importing.pdf_markdown import WIDE
from searchsvc.importing.pdf_shapes import Word, most_common_size

_RUN_GAP = 0.8
"""Of the font size; wider ones part columns and cells. Gutters of journals begin at one."""
_SAME_LINE = 0.4
"""Of the font size, between baselines: a superscript is still of its line."""
_RAISED = 0.7
"""Of the font size: so high a mark of a footnote may stand above its line."""
_FEW_MARKS = 6
"""Words on the height of a mark of a footnote: others are a line."""
_MOST_RAISED = 300
_COLUMN_LINES = 3
_COLUMN_WIDTH = 8.0
_COLUMN_LETTERS = 16
"""A line on average; cells of a table hold less."""
_DENSITY = 1.2
"""Letters to the width of the font size: justified lines have 1.4 at least, rows of a table less."""
_COLUMN_FILL = 0.4
"""Of the usual width of a line, a line on average; cells are ragged."""
_STRIP = 0.5
"""Of the font size: the least white between columns."""
_MAX_SPLITS = 12
_CLOSE = 1.6
"""Font sizes from baseline to baseline: lines farther apart are of two paragraphs."""
_BULLETS = "•◦▪▫‣∙·●○■□➢✓–"


@dataclass(slots=True)
class Run:
    """Words side by side without a wide gap, or one ``piece`` that is no text."""

    x0: float
    x1: float
    y: float
    size: float
    words: list[Word] = field(default_factory=list)
    piece: object = None


@dataclass(slots=True)
class Line:
    """A line of text, or one piece that is no text, as it stands on its page."""

    text: str
    x0: float
    x1: float
    y: float
    """Of the baseline; of the middle of a piece."""
    size: float
    bold: bool = False
    mono: bool = False
    left: float = 0.0
    right: float = 0.0
    """Edges of the column that it stands in."""
    column: int = 0
    """Counted over the page in reading order."""
    cells: tuple[tuple[float, float, str], ...] = ()
    """Its parts between wide gaps: x0, x1, text."""
    words: tuple[Word, ...] = ()
    """Of a line of typewriter letters, from the left: in code every gap counts."""
    piece: object = None
    level: int = 0
    """1 to 6 for a line that is (a part of) a heading."""
    starts: bool = False
    """Whether a heading begins with it."""


def lay_out(words: list[Word], pieces: Sequence[Run] = (), mirrored: bool = False) -> list[Line]:
    """Return the lines of a page in reading order; ``mirrored`` where x runs to the left."""
    words = _with_initials(words)
    _lower_marks(words)
    runs = [*_runs(words), *pieces]
    lines: list[Line] = []
    for column, rows in enumerate(_ordered(runs, _MAX_SPLITS)):
        texts = [run for row in rows for run in row if run.words]
        left = min((run.x0 for run in texts), default=0.0)
        right = max((run.x1 for run in texts), default=0.0)
        for row in rows:
            lines += _lines(row, left, right, column, mirrored)
    return lines


def _rows(runs: list[Run]) -> list[list[Run]]:
    """Group runs by baseline, from the top; each row from the left."""
    rows: list[list[Run]] = []
    at = size = 0.0
    for run in sorted(runs, key=lambda run: -run.y):
        near = bool(rows) and run.piece is None and at - run.y <= _SAME_LINE * max(size, run.size)
        # Next to a large line of another column two lines of one column may both be near.
        if near and not any(
            run.x0 < other.x1 - 1 and run.x1 > other.x0 + 1 and _overlap(run, other) for other in rows[-1]
        ):
            rows[-1].append(run)
            if run.size > size:
                at, size = run.y, run.size
        else:
            rows.append([run])
            # Nothing joins the row of an image.
            at, size = (run.y, run.size) if run.piece is None else (float("inf"), 0.0)
    for row in rows:
        row.sort(key=lambda run: run.x0)
    return rows


def _lower_marks(words: list[Word]) -> None:
    """Put marks of footnotes, which are raised, on the baseline of the word beside them."""
    lines = Counter(round(word.y, 1) for word in words)
    raised = [word for word in words if len(word.text) <= 3 and lines[round(word.y, 1)] <= _FEW_MARKS]
    for mark in raised[:_MOST_RAISED]:
        is_number = not any(map(str.isalpha, mark.text))
        near = [
            word
            for word in words
            if 0.2 * word.size < mark.y - word.y <= _RAISED * word.size
            and mark.size < (1.0 if is_number else 0.85) * word.size
        ]
        if before := next((word for word in near if abs(mark.x0 - word.x1) < 0.15 * word.size), None):
            mark.y = before.y
        elif after := next((word for word in near if -0.15 < (word.x0 - mark.x1) / word.size < 0.8), None):
            # The mark of the footnote itself: no part of its first word.
            mark.y, after.spaced = after.y, True


def _overlap(one: Run, other: Run) -> bool:
    """Return whether one stands over the other; boxes of letters side by side may touch."""
    common = min(one.x1, other.x1) - max(one.x0, other.x0)
    return common > 1 and 2 * common > min(one.x1 - one.x0, other.x1 - other.x0)


def _runs(words: list[Word]) -> list[Run]:
    singles = [Run(word.x0, word.x1, word.y, word.size, [word]) for word in words]
    runs: list[Run] = []
    for row in _rows(singles):
        current = row[0]
        for single in row[1:]:
            size = min(current.words[-1].size, single.size)
            # Spaces of a large heading are wide, gutters beside it are not.
            if single.x0 - current.x1 < min(_RUN_GAP * size, max(12.0, 0.4 * size)):
                if single.size > current.size:
                    current.y, current.size = single.y, single.size
                current.words += single.words
                current.x1 = max(current.x1, single.x1)
            else:
                runs.append(current)
                current = single
        runs.append(current)
    return runs


def _with_initials(words: list[Word]) -> list[Word]:
    """Put an initial that is several lines high in front of the word that it begins."""
    body = most_common_size(words)
    initials = [
        word for word in words if len(word.text) == 1 and word.text.isalpha() and word.size > 2 * body
    ]
    for initial in initials[:20]:
        top = initial.y + 0.8 * initial.size
        beside = [
            word
            for word in words
            if word.size < 1.5 * body
            and initial.y - 2 <= word.y <= top
            and 0 <= word.x0 - initial.x1 + 0.2 * body <= 1.5 * body
        ]
        lines = {round(word.y) for word in beside}
        if len(lines) < 2:
            continue
        first = max(beside, key=lambda word: word.y)
        first.text, first.spaced = initial.text + first.text, True
        words = [word for word in words if word is not initial]
    return words


def _ordered(runs: list[Run], splits: int) -> list[list[list[Run]]]:
    """Return the rows of each column in reading order."""
    if not runs:
        return []
    rows = _rows(runs)
    found = _widest_split(rows) if splits else None
    if found is None:
        return [rows]
    first, end = _trimmed(rows, *found)
    x = found[2]
    above = [run for row in rows[:first] for run in row]
    within = [run for row in rows[first:end] for run in row]
    below = [run for row in rows[end:] for run in row]
    left = [run for run in within if run.x1 <= x]
    right = [run for run in within if run.x1 > x]
    return [part for some in (above, left, right, below) for part in _ordered(some, splits - 1)]


def _trimmed(rows: list[list[Run]], first: int, end: int, x: float) -> tuple[int, int]:
    """Leave out short lines above and below columns that only happen to end before the strip between them.

    Above, that is the last line of a paragraph over both columns; below, a heading over what comes next.
    """

    def is_left(row: list[Run]) -> bool:
        return all(run.x1 <= x for run in row)

    def fall(at: int) -> float:
        upper, lower = rows[at - 1][0], rows[at][0]
        return (upper.y - lower.y) / max(upper.size, lower.size, 1.0)

    while 0 < first < end - _COLUMN_LINES and is_left(rows[first]) and fall(first) < _CLOSE < fall(first + 1):
        first += 1
    last = end
    while first + _COLUMN_LINES < last < len(rows) and is_left(rows[last - 1]):
        last -= 1
        if fall(last) > _CLOSE:
            end = last
    return first, end


def _widest_split(rows: list[list[Run]]) -> tuple[int, int, float] | None:
    """Return the rows (from, to) that a strip of white at x parts into columns, those with most lines."""
    places = {round(run.x1) + 1.0 for row in rows for run in row}
    # A page number in the middle of the strip ends it, as a heading would.
    strip = _STRIP * statistics.median(run.size for row in rows for run in row)
    best: tuple[int, float] = (0, 0.0)
    found: tuple[int, int, float] | None = None
    for x in sorted(places):
        first = 0
        for end in range(len(rows) + 1):
            if end < len(rows) and not any(run.x0 < x + strip and x < run.x1 for run in rows[end]):
                continue
            if end - first >= _COLUMN_LINES:
                score = _score(rows[first:end], x)
                if score > best:
                    best, found = score, (first, end, x)
            first = end + 1
    return found


def _score(rows: list[list[Run]], x: float) -> tuple[int, float]:
    """Return how well x parts rows into columns of prose: lines of the shorter one, width of the strip."""
    left = [run for row in rows for run in row if run.x1 <= x and run.words]
    right = [run for row in rows for run in row if run.x1 > x and run.words]
    if min(len(left), len(right)) < _COLUMN_LINES:
        return 0, 0.0
    gap = min(run.x0 for run in right) - max(run.x1 for run in left)
    left_lines, right_lines = _prose_lines(left), _prose_lines(right)
    if min(left_lines, right_lines) < _COLUMN_LINES:
        return 0, 0.0
    return min(left_lines, right_lines), gap


def _prose_lines(runs: list[Run]) -> int:
    """Return how many lines a column has, 0 when its runs look like cells, code or list markers."""
    rows: dict[int, tuple[float, float, int]] = {}
    for run in runs:
        letters = sum(len(word.text) + len(WIDE.findall(word.text)) for word in run.words)
        x0, x1, before = rows.get(round(run.y), (run.x0, run.x1, 0))
        rows[round(run.y)] = min(x0, run.x0), max(x1, run.x1), before + letters
    size = statistics.median(run.size for run in runs)
    widths = sorted(x1 - x0 for x0, x1, _ in rows.values())
    # Not the widest: a heading may go over two of three columns.
    usual, lines = widths[int(0.8 * (len(widths) - 1))], len(rows)
    letters = sum(letters for _, _, letters in rows.values())
    if usual < _COLUMN_WIDTH * size or letters < max(_COLUMN_LETTERS * lines, _DENSITY * sum(widths) / size):
        return 0
    if sum(widths) < _COLUMN_FILL * lines * usual or all(word.mono for run in runs for word in run.words):
        return 0
    return lines


def _lines(row: list[Run], left: float, right: float, column: int, mirrored: bool) -> list[Line]:
    """Return a row as one line of text, after the pieces in it."""
    lines = [
        Line("", run.x0, run.x1, run.y, run.size, left=left, right=right, column=column, piece=run.piece)
        for run in row
        if run.piece is not None
    ]
    texts = [run for run in row if run.words]
    if not texts:
        return lines
    words = sorted((word for run in texts for word in run.words), key=lambda word: word.x0)
    text = join_words(words, mirrored)
    # A soft hyphen that is shown within a line is a hyphen.
    text = text[:-1].replace("\u00ad", "-") + text[-1:]
    cells = tuple((run.x0, run.x1, join_words(run.words, mirrored)) for run in texts)
    if len(cells) > 1 and cells[0][2] in _BULLETS:
        cells = ((cells[0][0], cells[1][1], f"{cells[0][2]} {cells[1][2]}"), *cells[2:])
    if _is_justified(cells, left, right, texts[0].size):
        cells = ((cells[0][0], cells[-1][1], text),)
    if not text:
        return lines
    lettered = [word for word in words if any(map(str.isalnum, word.text))] or words
    size = _line_size(lettered, text)
    y = max(words, key=lambda word: word.size).y
    bold, mono = all(word.bold for word in lettered), all(word.mono for word in words)
    line = Line(
        text, words[0].x0, max(word.x1 for word in words), y, size, bold, mono, left, right, column, cells
    )
    if mono:
        line.words = tuple(words)
    return [*lines, line]


def _is_justified(
    cells: tuple[tuple[float, float, str], ...], left: float, right: float, size: float
) -> bool:
    """Return whether the wide gaps of a line are those of words that were spread over a narrow column."""
    if len(cells) < 2 or cells[0][0] > left + 2 * size or cells[-1][1] < right - 1:
        return False
    if len(cells) == 2 and right - left > 20 * size:
        return False
    gaps = [after[0] - before[1] for before, after in zip(cells, cells[1:], strict=False)]
    return max(gaps) < 3 * size and max(gaps) - min(gaps) < 1 and not any(" " in text for _, _, text in cells)


def _line_size(words: list[Word], text: str) -> float:
    sizes: Counter[float] = Counter()
    for word in words:
        sizes[word.size] += len(word.text)
    if text.upper() == text:
        return max(sizes)  # Small capitals: the size is that of the large ones.
    return sizes.most_common(1)[0][0]
