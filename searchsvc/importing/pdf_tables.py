"""Tables: those drawn with rules on a page, and those of which only the columns are aligned."""

import bisect
from collections.abc import Sequence
from dataclasses import dataclass

from searchsvc.importing.pdf_layout import Line, Run, join_words
from searchsvc.importing.pdf_text import PageText, Word

_SNAP = 2.0
"""Points: rules closer than that are one."""
_MAX_RULES = 4000
"""On a page; a drawing of more is no table."""
_MAX_CELLS = 20_000
_COLUMN_GAP = 1.0
"""Of the font size, between columns that nothing but white parts."""
_FEWEST_ROWS = 3


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells, all rows of the same length."""

    rows: tuple[tuple[str, ...], ...]


def take_ruled(page: PageText) -> list[Run]:
    """Take the words of ruled tables off a page and return each table as a piece for the layout."""
    if not page.across or not page.down or len(page.across) + len(page.down) > _MAX_RULES:
        return []
    taken: list[Run] = []
    for across, down in _connected(page.across, page.down):
        ys, xs = _snapped([y for _, _, y in across]), _snapped([x for _, _, x in down])
        if len(ys) < 3 or len(xs) < 3 or len(ys) * len(xs) > _MAX_CELLS:
            continue
        inside = [w for w in page.words if _in(w, xs, ys)]
        rows = _cells(inside, xs, ys)
        filled = sum(bool(cell) for row in rows for cell in row)
        if len(rows) < 2 or filled < 4 or len(rows[0]) < 2:
            continue
        gone = set(map(id, inside))
        page.words = [word for word in page.words if id(word) not in gone]
        taken.append(Run(xs[0], xs[-1], (ys[0] + ys[-1]) / 2, 0.0, piece=Table(rows)))
    return taken


def _in(word: Word, xs: list[float], ys: list[float]) -> bool:
    middle = (word.x0 + word.x1) / 2
    return xs[0] <= middle <= xs[-1] and ys[0] <= word.y + 0.3 * word.size <= ys[-1]


def _snapped(values: list[float]) -> list[float]:
    """Return values in order, those within the snap as one."""
    snapped: list[float] = []
    for value in sorted(values):
        if not snapped or value - snapped[-1] > _SNAP:
            snapped.append(value)
    return snapped


Rule = tuple[float, float, float]


def _connected(across: list[Rule], down: list[Rule]) -> list[tuple[list[Rule], list[Rule]]]:
    """Group rules that touch each other."""
    owner = list(range(len(across) + len(down)))

    def top(index: int) -> int:
        while owner[index] != index:
            owner[index] = owner[owner[index]]
            index = owner[index]
        return index

    order = sorted(range(len(across)), key=lambda index: across[index][2])
    heights = [across[index][2] for index in order]
    for column, (y0, y1, x) in enumerate(down, start=len(across)):
        # Only the horizontal rules within its height can touch a vertical one.
        low, high = bisect.bisect_left(heights, y0 - _SNAP), bisect.bisect_right(heights, y1 + _SNAP)
        for index in order[low:high]:
            if across[index][0] - _SNAP <= x <= across[index][1] + _SNAP:
                owner[top(index)] = top(column)
    groups: dict[int, tuple[list[Rule], list[Rule]]] = {}
    for index, rule in enumerate([*across, *down]):
        groups.setdefault(top(index), ([], []))[index >= len(across)].append(rule)
    return [group for group in groups.values() if group[0] and group[1]]


def _cells(words: list[Word], xs: list[float], ys: list[float]) -> tuple[tuple[str, ...], ...]:
    """Return the text of the cells between the rules, from the top; without empty rows and columns."""
    cells: dict[tuple[int, int], list[Word]] = {}
    for word in words:
        row = bisect.bisect_right(ys, word.y + 0.3 * word.size)
        column = bisect.bisect_right(xs, (word.x0 + word.x1) / 2)
        cells.setdefault((min(row, len(ys) - 1), min(column, len(xs) - 1)), []).append(word)
    columns = sorted({column for _, column in cells})
    rows = sorted({row for row, _ in cells}, reverse=True)
    return tuple(tuple(_cell(cells.get((row, column), [])) for column in columns) for row in rows)


def _cell(words: list[Word]) -> str:
    lines: list[list[Word]] = []
    for word in sorted(words, key=lambda word: -word.y):
        if lines and lines[-1][0].y - word.y <= 0.4 * word.size:
            lines[-1].append(word)
        else:
            lines.append([word])
    return " ".join(map(join_words, lines))


def aligned_rows(lines: Sequence[Line], start: int, pitch: float) -> int:
    """Return how many lines from ``start`` on are rows of one table; 0 when there is none.

    A line with cells under each other is a row; a line with one cell, not in the first column and close
    below, goes on with the row above. ``pitch`` is the usual distance of baselines by font size.
    """
    count = rows = 0
    columns: list[tuple[float, float]] = []
    for line in lines[start:]:
        previous = lines[start + count - 1] if count else line
        if line.piece is not None or line.mono or line.level or line.column != previous.column:
            break
        if previous.y - line.y > 2.2 * pitch * max(line.size, previous.size):
            break
        merged = _merged(columns, [(x0, x1) for x0, x1, _ in line.cells], line.size)
        spans = [_column(merged, x0) for x0, _, _ in line.cells]
        if len(merged) < max(2, len(columns)) or len(set(spans)) < len(spans):
            break
        if len(line.cells) < 2:
            close = previous.y - line.y <= 1.1 * pitch * line.size
            if not count or not close or spans[0] == 0 or len(merged) > len(columns):
                break
        else:
            rows += 1
        columns = merged
        count += 1
    while count and len(lines[start + count - 1].cells) < 2:
        count -= 1
    return count if rows >= _FEWEST_ROWS and not _is_list(lines[start : start + count], columns) else 0


def make_aligned(lines: Sequence[Line]) -> Table:
    """Return lines that are rows of a table as that table."""
    columns: list[tuple[float, float]] = []
    for line in lines:
        columns = _merged(columns, [(x0, x1) for x0, x1, _ in line.cells], line.size)
    rows: list[list[str]] = []
    for line in lines:
        if len(line.cells) > 1 or not rows:
            rows.append([""] * len(columns))
        for x0, _, text in line.cells:
            column = _column(columns, x0)
            rows[-1][column] = f"{rows[-1][column]} {text}".strip()
    return Table(tuple(map(tuple, rows)))


def _is_list(lines: Sequence[Line], columns: list[tuple[float, float]]) -> bool:
    """Return whether the first column holds markers of list items only, and there are but two."""
    first = [line.cells[0][2] for line in lines if line.cells]
    return (
        len(columns) == 2
        and all(len(text) <= 4 and not text[:-1].replace(".", "").isalpha() for text in first)
        and (all(not text[-1].isalnum() for text in first))
    )


def _merged(
    columns: list[tuple[float, float]], cells: list[tuple[float, float]], size: float
) -> list[tuple[float, float]]:
    """Return the columns that cells make together with those known, parted by enough white."""
    merged: list[tuple[float, float]] = []
    for x0, x1 in sorted([*columns, *cells]):
        if merged and x0 - merged[-1][1] < _COLUMN_GAP * size * 0.8:
            merged[-1] = merged[-1][0], max(merged[-1][1], x1)
        else:
            merged.append((x0, x1))
    return merged


def _column(columns: list[tuple[float, float]], x: float) -> int:
    return next((index for index, (x0, x1) in enumerate(columns) if x0 - 0.1 <= x <= x1 + 0.1), 0)
