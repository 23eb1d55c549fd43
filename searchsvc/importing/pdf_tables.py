"""Tables: those drawn with rules on a page, and those of which only the columns are aligned."""

from collections.abc import Sequence
from dataclasses import dataclass

from searchsvc.importing.pdf_grid import Rows, connected
from searchsvc.importing.pdf_layout import Line, Run
from searchsvc.importing.pdf_shapes import PageText

_MAX_RULES = 4000
"""On a page; a drawing of more is no table."""
_COLUMN_GAP = 1.0
"""Of the font size, between columns that nothing but white parts."""
_FEWEST_ROWS = 3
_FILLED = 0.5


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells, all rows of the same length; lines of a cell are parted by line ends."""

    rows: Rows


def take_ruled(page: PageText) -> list[Run]:
    """Take the words of ruled tables off a page and return each table as a piece for the layout."""
    if not page.across or not page.down or len(page.across) + len(page.down) > _MAX_RULES:
        return []
    taken: list[Run] = []
    for grid in connected(page.across, page.down):
        if grid.is_drawing:
            continue
        inside = [word for word in page.words if grid.holds(word)]
        rows = grid.rows(inside, page.mirrored)
        if rows is None:
            continue
        gone = set(map(id, inside))
        page.words = [word for word in page.words if id(word) not in gone]
        middle = (grid.ys[0] + grid.ys[-1]) / 2
        taken.append(Run(grid.xs[0], grid.xs[-1], middle, 0.0, piece=Table(rows)))
    return taken


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
    if rows < _FEWEST_ROWS or _is_list(lines[start : start + count], columns):
        return 0
    filled = sum(len(line.cells) for line in lines[start : start + count])
    # Numbers along the axes of charts are aligned, too, and leave most cells empty.
    return count if filled > _FILLED * rows * len(columns) else 0


def continues(rows: Sequence[Line], lines: Sequence[Line]) -> bool:
    """Return whether lines are further rows of a table that nothing but white parts."""
    columns: list[tuple[float, float]] = []
    for line in rows:
        columns = _merged(columns, [(x0, x1) for x0, x1, _ in line.cells], line.size)
    for line in lines:
        cells = [(x0, x1) for x0, x1, _ in line.cells]
        if not 1 < len(cells) <= len(columns) or len(_merged(columns, cells, line.size)) != len(columns):
            return False
    return True


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
            rows[-1][column] = f"{rows[-1][column]}\n{text}".strip()
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
