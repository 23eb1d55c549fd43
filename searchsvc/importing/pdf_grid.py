"""Rules that touch each other -> the cells of a table, or nothing where they are a drawing.

Boxes, frames, panels and diagrams are made of the same lines as tables. What tells them apart is text: a
table has cells of it, closed above and below, in two rows and two columns at least, side by side.
"""

import bisect
from collections import Counter, defaultdict
from collections.abc import Sequence

from searchsvc.importing.pdf_direction import join_words
from searchsvc.importing.pdf_shapes import Word

_SNAP = 3.0
"""Points: rules closer than that are one; boxes of cells may stand a little apart."""
_MAX_CELLS = 20_000
_GAP = 0.1
"""Of width and of height: boxes of a diagram stand farther apart, cells of a table do not."""
_ONE_BODY = 3
"""Lines in each column of a table of which only the head is ruled off."""

Rule = tuple[float, float, float]
Rows = tuple[tuple[str, ...], ...]
_Slot = tuple[int, int]
"""Row, from below, and column."""


class Grid:
    """Rules that touch each other, and what they close in."""

    def __init__(self, across: Sequence[Rule], down: Sequence[Rule]) -> None:
        # Tables may be open at their sides: the rules end where they end.
        self.xs = _snapped([*(x for _, _, x in down), *(x for x0, x1, _ in across for x in (x0, x1))])
        self.ys = _snapped([*(y for _, _, y in across), *(y for y0, y1, _ in down for y in (y0, y1))])
        self._across, self._down = _by_place(across, self.ys), _by_place(down, self.xs)
        self.is_drawing = len(self.xs) < 3 or len(self.ys) < 3 or len(self.xs) * len(self.ys) > _MAX_CELLS

    def holds(self, word: Word) -> bool:
        """Return whether a word stands within."""
        x, y = _middle(word)
        return self.xs[0] <= x <= self.xs[-1] and self.ys[0] <= y <= self.ys[-1]

    def rows(self, words: Sequence[Word], mirrored: bool) -> Rows | None:
        """Return the text of the cells from the top, without empty rows and columns; none for a drawing.

        Lines of one cell are parted by a line end.
        """
        owner = self._merged()
        regions: dict[_Slot, list[_Slot]] = defaultdict(list)
        for slot, region in owner.items():
            regions[region].append(slot)
        texts: dict[_Slot, list[Word]] = defaultdict(list)
        for word in words:
            x, y = _middle(word)
            slot = _between(self.ys, y), _between(self.xs, x)
            texts[owner[slot]].append(word)
        corners = {region: _corner(slots) for region, slots in regions.items()}
        real = [corners[region] for region in texts if self._is_cell(regions[region])]
        if not _is_table(real) or self._has_gaps(texts, regions):
            return None
        placed = {corners[region]: some for region, some in texts.items()}
        columns = sorted({column for _, column in placed})
        heights = sorted({row for row, _ in placed}, reverse=True)
        lines = [[_lines(placed.get((row, column), [])) for column in columns] for row in heights]
        return _split_body(lines, mirrored)

    def _merged(self) -> dict[_Slot, _Slot]:
        """Return for each slot the first one of those that no rule parts from it."""
        rows, columns = len(self.ys) - 1, len(self.xs) - 1
        owner: dict[_Slot, _Slot] = {}
        for start in ((row, column) for row in range(rows) for column in range(columns)):
            if start in owner:
                continue
            owner[start] = start
            stack = [start]
            while stack:
                row, column = stack.pop()
                for other, parted in (
                    ((row + 1, column), self._is_ruled_across(row + 1, column)),
                    ((row - 1, column), self._is_ruled_across(row, column)),
                    ((row, column + 1), self._is_ruled_down(row, column + 1)),
                    ((row, column - 1), self._is_ruled_down(row, column)),
                ):
                    inside = 0 <= other[0] < rows and 0 <= other[1] < columns
                    if inside and not parted and other not in owner:
                        owner[other] = start
                        stack.append(other)
        return owner

    def _is_ruled_across(self, at: int, column: int) -> bool:
        middle = (self.xs[column] + self.xs[column + 1]) / 2
        return _covers(self._across.get(at), middle)

    def _is_ruled_down(self, row: int, at: int) -> bool:
        middle = (self.ys[row] + self.ys[row + 1]) / 2
        return _covers(self._down.get(at), middle)

    def _is_cell(self, slots: Sequence[_Slot]) -> bool:
        """Return whether slots are a rectangle with a rule above and one below."""
        rows, columns = {row for row, _ in slots}, {column for _, column in slots}
        if len(slots) != len(rows) * len(columns):
            return False
        return all(
            self._is_ruled_across(min(rows), column) and self._is_ruled_across(max(rows) + 1, column)
            for column in columns
        )

    def _has_gaps(self, texts: dict[_Slot, list[Word]], regions: dict[_Slot, list[_Slot]]) -> bool:
        """Return whether white without text parts rows, and columns, too."""
        filled = [slot for region in texts for slot in regions[region] if self._is_cell(regions[region])]
        rows, columns = {row for row, _ in filled}, {column for _, column in filled}
        high = sum(self.ys[row + 1] - self.ys[row] for row in range(min(rows), max(rows)) if row not in rows)
        wide = sum(
            self.xs[column + 1] - self.xs[column]
            for column in range(min(columns), max(columns))
            if column not in columns
        )
        return high > _GAP * (self.ys[-1] - self.ys[0]) and wide > _GAP * (self.xs[-1] - self.xs[0])


def connected(across: Sequence[Rule], down: Sequence[Rule]) -> list[Grid]:
    """Return the rules that touch each other, each group as a grid."""
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
    return [Grid(*group) for group in groups.values() if group[0] and group[1]]


def _middle(word: Word) -> tuple[float, float]:
    return (word.x0 + word.x1) / 2, word.y + 0.3 * word.size


def _between(values: Sequence[float], value: float) -> int:
    return min(max(bisect.bisect_right(values, value) - 1, 0), len(values) - 2)


def _snapped(values: list[float]) -> list[float]:
    """Return values in order, those within the snap as one."""
    snapped: list[float] = []
    for value in sorted(values):
        if not snapped or value - snapped[-1] > _SNAP:
            snapped.append(value)
    return snapped


def _by_place(rules: Sequence[Rule], places: Sequence[float]) -> dict[int, list[tuple[float, float]]]:
    """Return from where to where there are rules, in order, by the number of the line that they are on."""
    found: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for start, end, place in sorted(rules):
        spans = found[max(bisect.bisect_right(places, place) - 1, 0)]
        if spans and start - _SNAP <= spans[-1][1]:
            spans[-1] = spans[-1][0], max(spans[-1][1], end + _SNAP)
        else:
            spans.append((start - _SNAP, end + _SNAP))
    return found


def _covers(spans: list[tuple[float, float]] | None, value: float) -> bool:
    if not spans:
        return False
    at = bisect.bisect_right(spans, (value, float("inf"))) - 1
    return at >= 0 and value <= spans[at][1]


def _corner(slots: Sequence[_Slot]) -> _Slot:
    """Return the upper left one."""
    return max(row for row, _ in slots), min(column for _, column in slots)


def _is_table(cells: Sequence[_Slot]) -> bool:
    rows, columns = Counter(row for row, _ in cells), Counter(column for _, column in cells)
    return sum(count > 1 for count in rows.values()) > 1 and sum(count > 1 for count in columns.values()) > 1


def _lines(words: Sequence[Word]) -> list[list[Word]]:
    lines: list[list[Word]] = []
    for word in sorted(words, key=lambda word: -word.y):
        if lines and lines[-1][0].y - word.y <= 0.4 * word.size:
            lines[-1].append(word)
        else:
            lines.append([word])
    return lines


def _split_body(rows: list[list[list[list[Word]]]], mirrored: bool) -> Rows:
    """Return the text of rows of cells of lines; a body without rules has one row for each of its lines."""
    written: list[tuple[str, ...]] = []
    for row in rows:
        bases = [tuple(round(line[0].y) for line in cell) for cell in row]
        if len(rows) == 2 and len(bases[0]) >= _ONE_BODY and len(set(bases)) == 1:
            written += [tuple(join_words(cell[at], mirrored) for cell in row) for at in range(len(bases[0]))]
        else:
            written.append(tuple("\n".join(join_words(line, mirrored) for line in cell) for cell in row))
    return tuple(written)
