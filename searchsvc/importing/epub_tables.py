"""Tables of XHTML -> Markdown tables where they are such, else text."""

import re
from dataclasses import dataclass
from typing import Any

_PARTS = ("tr", "td", "th", "tbody", "thead", "tfoot", "caption", "table")
_LISTS = ("ul", "ol")
_BLOCKS = (*_LISTS, "table", "dl", "pre", "blockquote")
_LISTED = 300
"""Characters that a list in a cell may have."""
CELL, SPAN, ROW, CAPTION = "\x0e", "\x0f", "\x10", "\x11"
"""Marks between the parts of a table while it is put together."""
_MAX_COLUMNS, _MAX_CELLS = 100, 200_000
_REPEATED = 200
"""A cell over several rows is repeated in each when it is no longer than this."""
_BAR = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True, slots=True)
class _Cell:
    text: str
    columns: int
    rows: int


def is_layout(table: Any) -> bool:
    """Tell whether a table cannot be one in Markdown: it holds blocks, or has one column or row."""
    if table.get("role") in ("presentation", "none") or table.find(_holds_too_much) is not None:
        return True
    rows = table.find_all("tr")
    return len(rows) < 2 or not any(len(row.find_all(["td", "th"], limit=2)) > 1 for row in rows)


def _holds_too_much(node: Any) -> bool:
    """Tell whether an element fits no cell: short lists do, where heads of columns say what they are."""
    if node.name not in _LISTS:
        return node.name in _BLOCKS
    table = node.find_parent("table")
    if table is None or table.find("th") is None or node.find(_BLOCKS) is not None:
        return True
    return len(node.get_text()) > _LISTED


def flatten_layout(table: Any) -> None:
    """Make a table and all tables in it plain blocks."""
    for node in [table, *table.find_all(_PARTS)]:
        node.name = "div"


class TableRules:
    """Rules of the converter for what makes a table."""

    def convert_td(self, el: Any, text: str, parent_tags: set[str]) -> str:
        """Convert a cell."""
        if "table" not in parent_tags:
            return f"\n\n{text.strip()}\n\n"
        columns, rows = (_span(el.get(name)) for name in ("colspan", "rowspan"))
        return f"{CELL}{columns},{rows}{SPAN}{' '.join(text.split())}"

    convert_th = convert_td

    def convert_tr(self, el: Any, text: str, parent_tags: set[str]) -> str:
        """Convert a row."""
        return ROW + text if "table" in parent_tags else f"\n\n{text.strip()}\n\n"

    def convert_caption(self, el: Any, text: str, parent_tags: set[str]) -> str:
        """Convert the caption of a table."""
        folded = " ".join(text.split())
        return f"{CAPTION}{folded}{CAPTION}" if "table" in parent_tags else f"\n\n{folded}\n\n"

    def convert_table(self, el: Any, text: str, parent_tags: set[str]) -> str:
        """Put a table together; its first row is the head, as Markdown wants one."""
        pieces = text.split(CAPTION)
        captions, body = [piece for piece in pieces[1::2] if piece], "".join(pieces[::2])
        # What stands between rows is no cell, but text of the book.
        lead, *parts = body.split(ROW)
        captions += [lead.strip()] if lead.strip() else []
        rows = _spread([_cells(row) for row in parts])
        width = max((len(row) for row in rows), default=0)
        lines = ["| " + " | ".join(row + [""] * (width - len(row))) + " |" for row in rows]
        if lines:
            lines.insert(1, "|" + " --- |" * width)
        return "\n\n" + "\n\n".join([*captions, "\n".join(lines)]) + "\n\n"


def _span(value: Any) -> int:
    text = str(value or "1").strip()
    return max(1, min(int(text), 1000)) if text.isascii() and text.isdigit() and len(text) < 9 else 1


def _cells(row: str) -> list[_Cell]:
    cells = []
    lead, *pieces = row.split(CELL)
    if lead.strip():
        pieces.insert(0, f"1,1{SPAN}{' '.join(lead.split())}")
    for piece in pieces:
        spans, _, text = piece.partition(SPAN)
        columns, _, rows = spans.partition(",")
        cells.append(_Cell(_BAR.sub(r"\\|", text.strip()), int(columns), int(rows)))
    return cells


def _spread(rows: list[list[_Cell]]) -> list[list[str]]:
    """Give every cell its column: one over several columns stands in the first, over several rows in each."""
    held: dict[int, tuple[int, str]] = {}
    spread: list[list[str]] = []
    left = _MAX_CELLS
    for row in rows:
        line: list[str] = []
        waiting = list(reversed(row))
        while (waiting or len(line) in held) and len(line) < _MAX_COLUMNS and left > 0:
            column = len(line)
            left -= 1
            if column in held:
                count, text = held.pop(column)
                if count > 1:
                    held[column] = (count - 1, text)
                line.append(text)
                continue
            cell = waiting.pop()
            for offset in range(min(cell.columns, _MAX_COLUMNS - column)):
                text = "" if offset else cell.text
                line.append(text)
                if cell.rows > 1:
                    held[column + offset] = (cell.rows - 1, text if len(text) <= _REPEATED else "")
        # What has no column left still is text of the book.
        if waiting and line:
            line[-1] = " ".join([line[-1], *(cell.text for cell in reversed(waiting))]).strip()
        if line:
            spread.append(line)
    return spread
